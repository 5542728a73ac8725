"""A shell over libzookeeper_st, the single-threaded C client library, through ctypes.

Debian ships the library, but not the shell cli_st that upstream builds with it. This one reads the same commands (create,
get, set, ls, exists, delete, quit; ephemeral, sequential, multi and burst besides) and answers a line for each; the program's own loop drives the
library, as the single-threaded API wants it.

usage: single_threaded.py host:port[,host:port...] [timeout in milliseconds [library authority,certificate,key,password]]

With a library of one's own, and files in PEM, it connects by TLS.

Besides the answers it reports events, and of the states that the library tells. Hosts are tried in the order in which they stand.
"""
import ctypes
import os
import select
import sys

library = ctypes.CDLL(sys.argv[3] if len(sys.argv) > 3 else "libzookeeper_st.so.2")
READABLE, WRITABLE = 2, 1
CONNECTED_STATE, SESSION_EVENT = 3, -1
STATES = {1: "connecting", 2: "associating", 3: "connected", 999: "not connected", -112: "expired", -113: "refused"}
EVENTS = {1: "created", 2: "deleted", 3: "changed", 4: "children"}


class Stat(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("czxid", "mzxid", "ctime", "mtime")]
    _fields_ += [(name, ctypes.c_int32) for name in ("version", "cversion", "aversion")]
    _fields_ += [("ephemeralOwner", ctypes.c_int64), ("dataLength", ctypes.c_int32), ("numChildren", ctypes.c_int32)]
    _fields_ += [("pzxid", ctypes.c_int64)]


class Strings(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32), ("data", ctypes.POINTER(ctypes.c_char_p))]


class Timeval(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("microseconds", ctypes.c_long)]


class Op(ctypes.Structure):
    """The result of create, the longest; filled by the library."""

    _fields_ = [("type", ctypes.c_int32), ("path", ctypes.c_char_p), ("data", ctypes.c_char_p), ("length", ctypes.c_int32)]
    _fields_ += [("buffer", ctypes.c_char_p), ("buffer_length", ctypes.c_int32), ("acl", ctypes.c_void_p)]
    _fields_ += [("flags", ctypes.c_int32), ("ttl", ctypes.c_int64)]


class OpResult(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("value", ctypes.c_char_p), ("length", ctypes.c_int32), ("stat", ctypes.c_void_p)]


WATCHER = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p
)
VOID_COMPLETION = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p)
STAT_COMPLETION = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.POINTER(Stat), ctypes.c_void_p)
DATA_COMPLETION = ctypes.CFUNCTYPE(
    None, ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_int, ctypes.POINTER(Stat), ctypes.c_void_p
)
STRINGS_COMPLETION = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.POINTER(Strings), ctypes.c_void_p)
STRING_COMPLETION = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)

library.zookeeper_init.restype = ctypes.c_void_p
open_acl = ctypes.c_char.in_dll(library, "ZOO_OPEN_ACL_UNSAFE")
is_connected = False
kept = []


def say(line):
    print(line, flush=True)


def stat_text(stat):
    return "version %d children %d" % (stat[0].version, stat[0].numChildren) if stat else "no stat"


@WATCHER
def on_event(handle, kind, state, path, context):
    global is_connected
    if kind == SESSION_EVENT:
        is_connected = state == CONNECTED_STATE
        say(STATES.get(state, "state %d" % state))
    else:
        say("event %s %s" % (EVENTS.get(kind, kind), path.decode()))


@VOID_COMPLETION
def on_done(code, data):
    say("rc %d" % code)


@STAT_COMPLETION
def on_stat(code, stat, data):
    say("rc %d %s" % (code, stat_text(stat)))


@DATA_COMPLETION
def on_data(code, value, length, stat, data):
    say("rc %d %s %s" % (code, value[:length].decode() if length > 0 else "nothing", stat_text(stat)))


@STRINGS_COMPLETION
def on_strings(code, strings, data):
    names = [strings[0].data[i].decode() for i in range(strings[0].count)] if code == 0 else []
    say("rc %d %s" % (code, " ".join(sorted(names))))


@STRING_COMPLETION
def on_string(code, value, data):
    say("rc %d %s" % (code, value.decode() if value else "nothing"))


def send_multi(handle, name, data):
    """A multi: creates the znode and a child, checks and sets the first. It fails as a whole the second time."""
    ops, results = (Op * 4)(), (OpResult * 4)()
    below = name + b"/below"
    for i, path in enumerate([name, below]):
        library.zoo_create_op_init(ctypes.byref(ops[i]), path, data, len(data), ctypes.byref(open_acl), 0, None, 0)
    library.zoo_check_op_init(ctypes.byref(ops[2]), name, 0)
    library.zoo_set_op_init(ctypes.byref(ops[3]), name, data, len(data), 0, None)

    @VOID_COMPLETION
    def on_multi(code, context):
        say("rc %d of %s" % (code, " ".join(str(result.code) for result in results)))

    # Keeps alive what the library points to until the reply.
    kept.append((ops, results, below, name, data, on_multi))
    return library.zoo_amulti(handle, len(ops), ops, results, on_multi, None)


def burst(handle, name, count):
    """Starts `count` reads; prints after the last reply."""
    left = count

    @DATA_COMPLETION
    def on_answer(code, value, length, stat, context):
        nonlocal left
        left -= 1
        if left == 0:
            say("rc %d after %d" % (code, count))

    kept.append(on_answer)
    return max(library.zoo_aget(handle, name, 0, on_answer, None) for _ in range(count))


def run(handle, line):
    """Passes a command to the library; its completion prints the answer."""
    command, path, value = (line.split(" ", 2) + ["", ""])[:3]
    name, data = path.encode(), value.encode()
    modes = {"create": 0, "ephemeral": 1, "sequential": 2}
    if command in modes:
        code = library.zoo_acreate(
            handle, name, data, len(data), ctypes.byref(open_acl), modes[command], on_string, None
        )
    elif command == "get":
        code = library.zoo_aget(handle, name, 1, on_data, None)
    elif command == "set":
        code = library.zoo_aset(handle, name, data, len(data), -1, on_stat, None)
    elif command == "ls":
        code = library.zoo_aget_children(handle, name, 1, on_strings, None)
    elif command == "exists":
        code = library.zoo_aexists(handle, name, 1, on_stat, None)
    elif command == "delete":
        code = library.zoo_adelete(handle, name, -1, on_done, None)
    elif command == "multi":
        code = send_multi(handle, name, data)
    elif command == "burst":
        code = burst(handle, name, int(value))
    else:
        say("unknown command %s" % command)
        return
    if code != 0:
        say("rc %d at once" % code)


def main():
    library.zoo_set_debug_level(1)
    library.zoo_deterministic_conn_order(1)
    timeout_ms = int(sys.argv[2]) if len(sys.argv) > 2 else 30000
    hosts = sys.argv[1].encode()
    if len(sys.argv) > 4:
        library.zookeeper_init_ssl.restype = ctypes.c_void_p
        made = library.zookeeper_init_ssl(hosts, sys.argv[4].encode(), on_event, timeout_ms, None, None, 0)
    else:
        made = library.zookeeper_init(hosts, on_event, timeout_ms, None, None, 0)
    handle = ctypes.c_void_p(made)
    typed = b""
    while True:
        fd, interest, wait = ctypes.c_int(-1), ctypes.c_int(0), Timeval()
        library.zookeeper_interest(handle, ctypes.byref(fd), ctypes.byref(interest), ctypes.byref(wait))
        readers = [0] if is_connected else []
        writers = []
        if fd.value != -1:
            if interest.value & READABLE:
                readers.append(fd.value)
            if interest.value & WRITABLE:
                writers.append(fd.value)
        timeout = wait.seconds + wait.microseconds / 1e6
        readable, writable, _ = select.select(readers, writers, [], timeout)
        events = (READABLE if fd.value in readable else 0) | (WRITABLE if fd.value in writable else 0)
        library.zookeeper_process(handle, events)
        if 0 not in readable:
            continue
        chunk = os.read(0, 4096)
        typed += chunk
        *lines, typed = typed.split(b"\n")
        for line in lines:
            if line == b"quit":
                library.zookeeper_close(handle)
                say("bye")
                return
            run(handle, line.decode())
        if not chunk:
            return


main()

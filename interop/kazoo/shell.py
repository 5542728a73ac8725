"""A shell over kazoo: reads commands, answers each with a line, and prints every state change and event.

usage: shell.py hosts timeout-in-seconds

commands: create, ephemeral, watch (once, with kazoo's own means to watch across lost connections), set, quit. Hosts are tried
in the order in which they stand.
"""
import sys

from session import connect, say


def run(line):
    command, path, value = (line.split(" ", 2) + ["", ""])[:3]
    if command == "create":
        say("created %s" % client.retry(client.create, path, value.encode()))
    elif command == "ephemeral":
        say("created %s" % client.retry(client.create, path, value.encode(), ephemeral=True))
    elif command == "watch":
        watch(path)
    elif command == "set":
        say("set version %d" % client.retry(client.set, path, value.encode()).version)
    else:
        say("unknown command %s" % command)


def watch(path):
    seen = []

    def on_data(data, stat):
        seen.append(data)
        if len(seen) == 1:
            say("watches %s, which is %s" % (path, data.decode()))
            return True
        say("changed %s" % path)
        return False

    client.DataWatch(path, on_data)


client = connect(timeout=float(sys.argv[2]), randomize_hosts=False)
say("state %s" % client.state)
client.add_listener(lambda state: say("state %s" % state))
for line in sys.stdin:
    if line.strip() == "quit":
        break
    run(line.rstrip("\n"))
client.stop()

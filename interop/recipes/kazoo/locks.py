"""kazoo's locks, semaphore and election, for the tests of mixed fleets.

Each thing that is held has a name; a fenced counter is a znode that is read and written while it is held.
"""
from driver import client, event, serve

held = {}


def acquire(name, kind, path, identifier=""):
    recipes = {"mutex": client.Lock, "read": client.ReadLock, "write": client.WriteLock}
    lock = recipes[kind](path, identifier)
    lock.acquire()
    held[name] = lock
    return lock.node


def lease(name, path, count, identifier=""):
    semaphore = client.Semaphore(path, identifier, max_leases=int(count))
    semaphore.acquire()
    held[name] = semaphore
    return semaphore.create_path.rsplit("/", 1)[1]


def release(name):
    held.pop(name).release()


def contenders(kind, path):
    recipes = {"mutex": client.Lock, "write": client.WriteLock}
    return ",".join(recipes[kind](path).contenders())


def lead(path, identifier):
    """Leads once, until the znode /stop-<identifier> appears."""
    election = client.Election(path, identifier)

    def leading():
        event("leading " + identifier)
        gone = client.handler.event_object()
        if not client.exists("/stop-" + identifier, watch=lambda _: gone.set()):
            gone.wait()

    election.run(leading)


def count(kind, path, counter, rounds):
    """Increments a counter `rounds` times, under a lock, by reading and writing it."""
    for _ in range(int(rounds)):
        if kind == "lease":
            lock = client.Semaphore(path, max_leases=1)
        else:
            lock = client.WriteLock(path) if kind == "write" else client.Lock(path)
        with lock:
            data, _ = client.get(counter)
            client.set(counter, str(int(data) + 1).encode())


def lead_count(path, identifier, counter, rounds):
    """Leads `rounds` times, each time incrementing a counter in a transaction that checks the leader's own znode."""
    election = client.Election(path, identifier)

    def leading():
        data, _ = client.get(counter)
        transaction = client.transaction()
        transaction.check(election.lock.path + "/" + election.lock.node, -1)
        transaction.set_data(counter, str(int(data) + 1).encode())
        for result in transaction.commit():
            if isinstance(result, Exception):
                raise result

    for _ in range(int(rounds)):
        election.run(leading)


serve(
    acquire=acquire,
    lease=lease,
    release=release,
    contenders=contenders,
    lead=lead,
    count=count,
    lead_count=lead_count,
)

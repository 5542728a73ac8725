"""kazoo's queues and barriers, for queues.long.test.ts and barriers.test.ts."""
from driver import client, serve
from kazoo.recipe.barrier import Barrier, DoubleBarrier
from kazoo.recipe.queue import LockingQueue, Queue

# One object for each path, like in an application, because they are stateful.
_made = {}


def made(kind, path, *arguments):
    key = (kind, path)
    if key not in _made:
        _made[key] = kind(client, path, *arguments)
    return _made[key]


def text(value):
    return "" if value is None else value.decode()


serve(
    put=lambda path, value, priority: made(Queue, path).put(value.encode(), int(priority)),
    get=lambda path: text(made(Queue, path).get()),
    lockingPut=lambda path, value, priority: made(LockingQueue, path).put(value.encode(), int(priority)),
    lockingGet=lambda path, seconds: text(made(LockingQueue, path).get(float(seconds))),
    lockingConsume=lambda path: made(LockingQueue, path).consume(),
    lockingRelease=lambda path: made(LockingQueue, path).release(),
    set=lambda path: made(Barrier, path).create(),
    remove=lambda path: made(Barrier, path).remove(),
    wait=lambda path: made(Barrier, path).wait(60),
    enter=lambda path, count: made(DoubleBarrier, path, int(count)).enter(),
    leave=lambda path: made(DoubleBarrier, path).leave(),
)

"""kazoo's parties and partitioner, for groups.long.test.ts."""
import threading
import time

from driver import client, event, serve
from kazoo.recipe.partitioner import SetPartitioner
from kazoo.recipe.party import Party, ShallowParty

_made = {}


def made(kind, path, identifier):
    key = (kind, path, identifier)
    if key not in _made:
        _made[key] = kind(client, path, identifier)
    return _made[key]


def members(kind, path):
    return ",".join(sorted(kind(client, path)))


_stopped = set()


def partition(path, items, identifier, boundary):
    """Participates until stopped; reports its partition."""
    partitioner = SetPartitioner(
        client, path, items.split(","), identifier=identifier, time_boundary=float(boundary)
    )

    def run():
        told = False
        while path not in _stopped and not partitioner.failed:
            if partitioner.release:
                event("released %s" % path)
                told = False
                partitioner.release_set()
            elif partitioner.acquired:
                if not told:
                    told = True
                    event("share %s %s" % (path, ",".join(sorted(partitioner))))
                time.sleep(0.05)
            else:
                partitioner.wait_for_acquire(0.05)
        partitioner.finish()
        event("finished %s" % path)

    threading.Thread(target=run, daemon=True).start()


serve(
    join=lambda path, identifier: made(Party, path, identifier).join(),
    leave=lambda path, identifier: made(Party, path, identifier).leave(),
    members=lambda path: members(Party, path),
    shallowJoin=lambda path, identifier: made(ShallowParty, path, identifier).join(),
    shallowLeave=lambda path, identifier: made(ShallowParty, path, identifier).leave(),
    shallowMembers=lambda path: members(ShallowParty, path),
    partition=partition,
    stop=lambda path: _stopped.add(path),
)

"""A long transaction, after which the server pauses its client while another one writes: the client stays connected."""
import threading

from session import connect, say

TIMEOUT_S = 24.0
PARTS = 4096 + 16_000

client, other = connect(TIMEOUT_S), connect()
states = []
client.add_listener(states.append)
written = 0
is_over = threading.Event()


def write():
    global written
    while not is_over.is_set():
        other.set("/", b"")
        written += 1


writer = threading.Thread(target=write)
writer.start()
transaction = client.transaction()
for _ in range(PARTS):
    transaction.check("/", version=-1)
results = transaction.commit()
assert len(results) == PARTS and results[-1] is True, results[-1]
before = written
client.get("/")
# Without a pause there are one or two. On a busy machine a write takes half a second, and the pause ten.
assert written - before >= 10, written - before
is_over.set()
writer.join()
assert states == [], states
say("done")
for each in (client, other):
    each.stop()

"""DataWatch and ChildrenWatch follow what another client does."""
import queue

from session import connect, say

client = connect()
other = connect()
events = queue.Queue()


def expect(expected):
    found = events.get(timeout=60)
    assert found == expected, (found, expected)


other.create("/watched", b"0")


@client.DataWatch("/watched/data")
def on_data(data, stat, event):
    events.put(("data", data, None if event is None else event.type))


expect(("data", None, None))


@client.ChildrenWatch("/watched")
def on_children(children):
    events.put(("children", sorted(children)))


expect(("children", []))
other.create("/watched/data", b"1")
# The two watches have a table each; which of the two callbacks runs first is kazoo's choice.
first, second = events.get(timeout=60), events.get(timeout=60)
assert sorted([first, second], key=str) == [("children", ["data"]), ("data", b"1", "CREATED")], (first, second)
for n in range(2, 6):
    other.set("/watched/data", b"%d" % n)
    expect(("data", b"%d" % n, "CHANGED"))
other.create("/watched/x")
expect(("children", ["data", "x"]))
other.delete("/watched/x")
expect(("children", ["data"]))
other.delete("/watched/data")
first, second = events.get(timeout=60), events.get(timeout=60)
assert sorted([first, second], key=str) == [("children", []), ("data", None, "DELETED")], (first, second)
client.stop()
other.stop()
say("done")

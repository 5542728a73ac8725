"""All create modes of kazoo."""
from kazoo.exceptions import NoChildrenForEphemeralsError, NodeExistsError, NoNodeError, NotEmptyError

from session import connect, say

client = connect()
me = client.client_id[0]

assert client.create("/modes", b"root") == "/modes"
try:
    client.create("/modes")
    raise AssertionError("created twice")
except NodeExistsError:
    pass
try:
    client.create("/modes/a/b/c")
    raise AssertionError("created without a parent")
except NoNodeError:
    pass
assert client.create("/modes/a/b/c", b"deep", makepath=True) == "/modes/a/b/c"

path = client.create("/modes/ephemeral", b"e", ephemeral=True)
data, stat = client.get(path)
assert (data, stat.ephemeralOwner) == (b"e", me), stat
try:
    client.create(path + "/child")
    raise AssertionError("an ephemeral got a child")
except NoChildrenForEphemeralsError:
    pass

names = [client.create("/modes/a/n-", b"", sequence=True) for _ in range(3)]
# The parent already had one child: b.
assert names == ["/modes/a/n-%010d" % n for n in (1, 2, 3)], names
path = client.create("/modes/a/e-", b"", sequence=True, ephemeral=True)
assert path == "/modes/a/e-0000000004", path
assert client.exists(path).ephemeralOwner == me

path, stat = client.create("/modes/with-stat", b"12345", include_data=True)
assert (path, stat.version, stat.dataLength, stat.czxid) == ("/modes/with-stat", 0, 5, stat.mzxid), stat

assert client.create("/modes/empty", b"") == "/modes/empty"
assert client.get("/modes/empty")[0] == b""
assert client.create("/modes/\u00fc-\u4e2d", b"names") == "/modes/\u00fc-\u4e2d"
assert client.get("/modes/\u00fc-\u4e2d")[0] == b"names"
assert client.set("/modes/empty", b"x" * 100_000).version == 1
assert client.get("/modes/empty")[0] == b"x" * 100_000

assert client.ensure_path("/modes/ensured/x")
assert sorted(client.get_children("/modes/ensured")) == ["x"]
children, stat = client.get_children("/modes/ensured", include_data=True)
assert (children, stat.numChildren) == (["x"], 1)
try:
    client.delete("/modes/ensured")
    raise AssertionError("a znode with children was deleted")
except NotEmptyError:
    pass
client.delete("/modes", recursive=True)
assert client.exists("/modes") is None
client.stop()
say("done")

"""Transactions: all or nothing, with a result for each operation."""
from kazoo.exceptions import BadVersionError, NodeExistsError, RolledBackError, RuntimeInconsistency

from session import connect, say

client = connect()
client.create("/tx")

transaction = client.transaction()
transaction.create("/tx/a", b"1")
transaction.create("/tx/a/s-", b"", sequence=True)
transaction.set_data("/tx/a", b"2", version=0)
transaction.check("/tx/a", version=1)
transaction.create("/tx/e", b"", ephemeral=True)
transaction.delete("/tx/e")
results = transaction.commit()
assert results[0] == "/tx/a", results
assert results[1] == "/tx/a/s-0000000000", results
assert results[2].version == 1, results
assert results[3] is True and results[4] == "/tx/e" and results[5] is True, results
assert client.get("/tx/a")[0] == b"2"
assert client.get_children("/tx") == ["a"]

transaction = client.transaction()
transaction.create("/tx/b")
transaction.check("/tx/a", version=7)
transaction.create("/tx/c")
results = transaction.commit()
assert [type(result) for result in results] == [RolledBackError, BadVersionError, RuntimeInconsistency], results
assert client.exists("/tx/b") is None

with client.transaction() as transaction:
    transaction.create("/tx/a")
assert client.get("/tx/a")[0] == b"2"
transaction = client.transaction()
transaction.create("/tx/a")
assert isinstance(transaction.commit()[0], NodeExistsError)
client.stop()
say("done")

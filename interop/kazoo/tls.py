"""A session over TLS with a certificate: writes, a watch, 300 KB of data, and an ACL for the certificate's subject."""
import sys
import threading

from kazoo.client import KazooClient
from kazoo.security import make_acl

hosts, directory = sys.argv[1], sys.argv[2]
client = KazooClient(
    hosts,
    timeout=30,
    use_ssl=True,
    keyfile=directory + "/client.key",
    certfile=directory + "/client.crt",
    ca=directory + "/ca.pem",
)
client.start(timeout=60)

changed = threading.Event()
client.create("/kazoo-tls", b"one")
client.get("/kazoo-tls", watch=lambda event: changed.set())
client.set("/kazoo-tls", b"two")
assert changed.wait(60)
client.create("/kazoo-tls/big", b"x" * 300_000)
assert len(client.get("/kazoo-tls/big")[0]) == 300_000
client.create("/kazoo-tls/mine", b"", acl=[make_acl("x509", "CN=kazoo,O=Test", all=True)])
client.set("/kazoo-tls/mine", b"still")
client.stop()
print("done", flush=True)

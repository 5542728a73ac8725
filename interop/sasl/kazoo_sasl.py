"""Logs in with DIGEST-MD5, restricts a znode to itself, and prints its identity."""
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import make_acl


def connect(**login):
    options = {"sasl_options": {"mechanism": "DIGEST-MD5", **login}} if login else {}
    client = KazooClient(sys.argv[1], timeout=20, **options)
    client.start(timeout=60)
    return client


bob = connect(username="bob", password="bobsecret")
bob.create("/kazoo-of-bob", b"x", acl=[make_acl("sasl", "bob", all=True)])
assert bob.get("/kazoo-of-bob")[0] == b"x"
ann = connect(username="ann", password="annsecret")
for client in (ann, connect()):
    try:
        client.get("/kazoo-of-bob")
        raise AssertionError("let in")
    except NoAuthError:
        pass
try:
    connect(username="bob", password="wrong").get("/")
    raise AssertionError("let in")
# If its thread is faster than the caller, kazoo reports the refusal as a timeout.
except (KazooException, KazooTimeoutError):
    pass
print("done", flush=True)

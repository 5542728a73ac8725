"""Logs in with GSSAPI and prints its identity from an ACL."""
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.security import make_acl

client = KazooClient(sys.argv[1], timeout=20, sasl_options={"mechanism": "GSSAPI"})
try:
    client.start(timeout=30)
    client.create("/kazoo-" + sys.argv[2], b"x", acl=[make_acl("auth", "", all=True)])
    print("acl", client.get_acls("/kazoo-" + sys.argv[2])[0][0].id, flush=True)
except (KazooException, client.handler.timeout_exception) as error:
    print("refused", repr(error), flush=True)
print("done", flush=True)

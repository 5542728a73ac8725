"""ACLs and digest authentication."""
from kazoo.exceptions import InvalidACLError, NoAuthError
from kazoo.security import ACL, CREATOR_ALL_ACL, Id, make_acl, make_digest_acl

from session import connect, say

owner = connect()
owner.add_auth("digest", "alice:secret")
stranger = connect()
acl = make_digest_acl("alice", "secret", all=True)

owner.create("/guarded", b"secret", acl=[acl])
acls, stat = owner.get_acls("/guarded")
assert acls == [acl] and stat.aversion == 0, acls
for forbidden in (
    lambda: stranger.get("/guarded"),
    lambda: stranger.set("/guarded", b"x"),
    lambda: stranger.get_children("/guarded"),
    lambda: stranger.create("/guarded/x"),
    lambda: stranger.set_acls("/guarded", [acl]),
):
    try:
        forbidden()
        raise AssertionError("a stranger was let in")
    except NoAuthError:
        pass

# Without ADMIN the digest is masked.
owner.set_acls("/guarded", [acl, make_acl("world", "anyone", read=True)], version=0)
acls, stat = stranger.get_acls("/guarded")
assert acls[0].id.id == "alice:x" and stat.aversion == 1, acls
assert stranger.get("/guarded")[0] == b"secret"

owner.create("/mine", acl=CREATOR_ALL_ACL)
assert owner.get_acls("/mine")[0][0].id.scheme == "digest"
owner.create("/by-address", acl=[ACL(31, Id("ip", "127.0.0.0/8"))])
stranger.set("/by-address", b"x")
for bad in (ACL(31, Id("nobody", "x")), ACL(31, Id("ip", "1.2.3"))):
    try:
        stranger.create("/bad", acl=[bad])
        raise AssertionError("a bad list was taken")
    except InvalidACLError:
        pass

again = connect(auth_data=[("digest", "alice:secret")])
assert again.get("/mine")[0] == b""
superuser = connect(auth_data=[("digest", "super:test")])
superuser.delete("/guarded")
for client in (owner, stranger, again, superuser):
    client.stop()
say("done")

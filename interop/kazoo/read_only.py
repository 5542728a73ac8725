"""Continues at a server without a quorum, and moves to one with a quorum later.

usage: read_only.py hosts path

Says what it reads, what becomes of a write, and, once a server with a quorum has taken it, of another one.
"""
import sys
import time

from kazoo.exceptions import NotReadOnlyCallError
from kazoo.protocol.states import KeeperState
from session import connect, say

path = sys.argv[2]
client = connect(timeout=10.0, read_only=True)
say("state %s" % client.client_state)
say("read %s" % client.get(path)[0].decode())
try:
    client.set(path, b"refused")
    say("written")
except NotReadOnlyCallError:
    say("refused")
sys.stdin.readline()
while client.client_state != KeeperState.CONNECTED:
    time.sleep(0.05)
client.retry(client.set, path, b"kazoo")
say("state %s" % client.client_state)
client.stop()

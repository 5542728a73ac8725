"""Acquires a lock, reports it, and releases it on command."""
import sys

from session import connect, say

client = connect()
lock = client.Lock("/lock", sys.argv[2])
say("waiting")
with lock:
    say("acquired")
    assert lock.contenders()[0] == sys.argv[2]
    sys.stdin.readline()
say("released")
client.stop()

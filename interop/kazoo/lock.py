"""Takes a lock, says so, and gives it back when it is told to."""
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

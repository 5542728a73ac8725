"""Creates ephemerals with a short session timeout and waits to be killed."""
import sys

from session import connect, say

client = connect(timeout=1.0)
client.create("/held")
for n in range(3):
    client.create("/held/%d" % n, b"", ephemeral=True)
say("holding")
sys.stdin.readline()

"""Keeps its session over a restart of its server."""
import sys
import threading

from kazoo.client import KazooState

from session import connect, say

client = connect(timeout=40.0)
suspended, connected, changed = threading.Event(), threading.Event(), threading.Event()


def on_state(state):
    if state == KazooState.LOST:
        say("lost")
    elif state == KazooState.SUSPENDED:
        suspended.set()
    elif suspended.is_set():
        connected.set()


client.add_listener(on_state)
session = client.client_id[0]
client.create("/reconnect", b"before")
client.create("/reconnect/mine", b"", ephemeral=True)
# Kazoo drops plain watches with their connection; DataWatch survives reconnects.
client.DataWatch("/reconnect", lambda data, stat: changed.set() if data == b"after" else None)
say("ready")
sys.stdin.readline()

assert suspended.wait(60) and connected.wait(60)
assert client.client_id[0] == session
assert client.exists("/reconnect/mine").ephemeralOwner == session
other = connect()
other.set("/reconnect", b"after")
assert changed.wait(60)
assert client.get("/reconnect")[0] == b"after"
other.stop()
# Stopping reports the session as lost.
client.remove_listener(on_state)
client.stop()
say("done")

"""Writes continuously until a line is read; retries unanswered requests until they are known to be applied.

usage: writer.py hosts root timeout-in-seconds

Write number n creates root/n with the data n, and then sets root/register to n. The root and an ephemeral below it are made
first. Says "acknowledged N" as it continues, and at the end its session and every state that it was notified of.
"""
import sys
import threading

from kazoo.exceptions import ConnectionLoss, NodeExistsError

from session import connect, say

root = sys.argv[2]
client = connect(timeout=float(sys.argv[3]))
states = [client.state]
client.add_listener(states.append)
asked_to_end = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), asked_to_end.set()), daemon=True).start()


def until_answered(write, *args, **options):
    while True:
        try:
            return write(*args, **options)
        except ConnectionLoss:
            # It may have been applied. The next attempt waits for a connection.
            client.retry(client.exists, root)


def create(path, data, **options):
    try:
        until_answered(client.create, path, data, **options)
    except NodeExistsError:
        # No other client creates it, so it was an attempt whose reply was lost.
        pass


create(root, b"")
create(root + "/register", b"")
create(root + "/mine", b"", ephemeral=True)
session = client.client_id[0]
say("session 0x%x" % session)
count = 0
while not asked_to_end.is_set():
    create("%s/%06d" % (root, count), b"%d" % count)
    until_answered(client.set, root + "/register", b"%d" % count)
    count += 1
    if count % 10 == 0:
        say("acknowledged %d" % count)
say("wrote %d, session 0x%x, states %s" % (count, client.client_id[0], " ".join(states)))
# Keeps the session open until the test has checked the tree.
sys.stdin.readline()
client.stop()

"""The Python side of `interop/recipes/harness.ts`: reads commands as lines and runs each in its own thread.

    from driver import client, event, serve

    def acquire(path):
        ...
        return 12

    serve(acquire=acquire)
"""
import sys
import threading

from kazoo.client import KazooClient

client = KazooClient(hosts=sys.argv[1], timeout=30.0)
arguments = sys.argv[2:]

_printing = threading.Lock()


def _print(line):
    with _printing:
        print(line, flush=True)


def event(text):
    """Reports an event to the test."""
    _print("event " + text)


def serve(**commands):
    """Runs commands until the input ends; then closes the session."""
    client.start(timeout=60)
    event("ready")
    for line in sys.stdin:
        number, verb, *words = line.split()
        threading.Thread(
            target=_run, args=(number, commands[verb], words), daemon=True
        ).start()
    client.stop()
    client.close()


def _run(number, command, words):
    try:
        answer = command(*words)
        _print("%s ok %s" % (number, "" if answer is None else answer))
    except BaseException as error:
        _print("%s error %s: %s" % (number, type(error).__name__, error))

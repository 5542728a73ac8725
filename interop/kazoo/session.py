"""A kazoo client for a script: `connect()` takes the address from the command line."""
import sys

from kazoo.client import KazooClient


def connect(timeout=30.0, **options):
    client = KazooClient(hosts=sys.argv[1], timeout=timeout, **options)
    client.start(timeout=60)
    return client


def say(line):
    """Reports an event to the test."""
    print(line, flush=True)

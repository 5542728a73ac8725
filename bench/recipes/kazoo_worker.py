"""Runs kazoo's recipes in a separate process; worker-process.mjs describes the protocol on stdin and stdout.

    python3 kazoo_worker.py HOST:PORT
"""
import resource
import sys
import threading
import time
import traceback

# Each session has three threads of kazoo and one of ours.
threading.stack_size(512 * 1024)
_, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (_hard, _hard))

from kazoo.client import KazooClient  # noqa: E402
from kazoo.recipe.barrier import DoubleBarrier  # noqa: E402
from kazoo.recipe.queue import LockingQueue, Queue  # noqa: E402

# Maximum number of items in a queue, and their data.
WINDOW = 100
ITEM_BYTES = 100

# kazoo's Queue has no blocking get: a consumer that finds no item polls again after this many seconds.
LOOK_AGAIN = 0.001

sessions = []


class Run:
    """The active participants and their counters."""

    def __init__(self):
        self.is_stopping = False
        self.error = None
        self.threads = []
        self.turns = []
        self.mark()

    def begin(self, participate):
        """`participate` gets an event to set at each turn, and runs until `is_stopping`."""
        turn = threading.Event()

        def body():
            try:
                participate(turn)
            except BaseException:
                self.error = traceback.format_exc()

        thread = threading.Thread(target=body, daemon=True)
        self.threads.append(thread)
        thread.start()
        return turn

    def count(self, latency):
        self.cycles += 1
        if latency is not None:
            self.latencies.append(latency)

    def mark(self):
        self.cycles = 0
        self.latencies = []
        self.marked = time.perf_counter()

    def read(self):
        self.check()
        elapsed = time.perf_counter() - self.marked
        latencies = ",".join(str(round(latency * 1e6)) for latency in list(self.latencies))
        return "%d %d %s" % (self.cycles, elapsed * 1e6, latencies)

    def wait(self, turns):
        for turn in turns:
            while not turn.wait(1):
                self.check()

    def stop(self):
        self.is_stopping = True
        for thread in self.threads:
            while thread.is_alive():
                thread.join(1)
                self.check()
        self.check()

    def check(self):
        if self.error is not None:
            raise RuntimeError(self.error)


class Relay:
    """Counts hand-overs of an exclusive resource that each holder releases at once."""

    def __init__(self, run):
        self.run = run
        self.released = None
        self.is_taken = False

    def take(self, turn):
        if self.is_taken:
            raise RuntimeError("two have it")
        self.is_taken = True
        self.run.count(None if self.released is None else time.perf_counter() - self.released)
        turn.set()
        self.is_taken = False
        self.released = time.perf_counter()


def run_locks(run, clients, path):
    relay = Relay(run)

    def contend(client):
        lock = client.Lock(path)

        def participate(turn):
            while not run.is_stopping:
                lock.acquire()
                relay.take(turn)
                lock.release()

        return participate

    return [run.begin(contend(client)) for client in clients]


def run_elections(run, clients, path):
    relay = Relay(run)

    def campaign(client):
        election = client.Election(path)

        def participate(turn):
            while not run.is_stopping:
                election.run(relay.take, turn)

        return participate

    return [run.begin(campaign(client)) for client in clients]


def run_barriers(run, clients, path):
    """The members also synchronize locally: before they leave, and before the next round."""
    over = threading.Event()

    def count():
        run.count(None)
        if run.is_stopping:
            over.set()

    inside = threading.Barrier(len(clients))
    outside = threading.Barrier(len(clients), count)

    def go_through(client):
        # Its constructor looks up the host name, so it is created once.
        barrier = DoubleBarrier(client, path, len(clients))

        def participate(turn):
            while not over.is_set():
                barrier.enter()
                if not barrier.participating:
                    raise RuntimeError("it did not let us in")
                inside.wait()
                barrier.leave()
                outside.wait()
                turn.set()

        return participate

    return [run.begin(go_through(client)) for client in clients]


def run_queues(run, clients, path, with_leases):
    """Half of the clients put, the other half take."""
    half = len(clients) // 2
    pending = set()
    window = threading.Semaphore(WINDOW)
    serial = [0]
    counting = threading.Lock()
    kind = LockingQueue if with_leases else Queue

    def produce(client):
        queue = kind(client, path)

        def participate(_):
            while not run.is_stopping:
                if not window.acquire(timeout=0.1):
                    continue
                with counting:
                    serial[0] += 1
                    value = str(serial[0]).zfill(ITEM_BYTES).encode()
                    pending.add(value)
                queue.put(value)

        return participate

    def consume(client):
        queue = kind(client, path)

        def participate(turn):
            while not run.is_stopping:
                value = queue.get(0.5) if with_leases else queue.get()
                if value is None:
                    if not with_leases:
                        time.sleep(LOOK_AGAIN)
                    continue
                if with_leases and not queue.consume():
                    raise RuntimeError("the lease was lost")
                with counting:
                    pending.remove(value)
                    run.count(None)
                window.release()
                turn.set()

        return participate

    for client in clients[:half]:
        run.begin(produce(client))
    return [run.begin(consume(client)) for client in clients[half:]]


KINDS = {
    "lock": run_locks,
    "election": run_elections,
    "barrier": run_barriers,
    "queue": lambda run, clients, path: run_queues(run, clients, path, False),
    "queue-leases": lambda run, clients, path: run_queues(run, clients, path, True),
}

current = None


def start(kind, path, count):
    global current
    connect(int(count))
    current = Run()
    current.wait(KINDS[kind](current, sessions[: int(count)], path))


def connect(count):
    started = []
    while len(sessions) < count:
        client = KazooClient(hosts=sys.argv[1], timeout=60.0)
        started.append(client.start_async())
        sessions.append(client)
    for connected in started:
        if not connected.wait(120):
            raise RuntimeError("no session within two minutes")


VERBS = {
    "start": start,
    "mark": lambda: current.mark(),
    "read": lambda: current.read(),
    "stop": lambda: current.stop(),
}


def main():
    for line in sys.stdin:
        verb, *words = line.split()
        try:
            answer = VERBS[verb](*words)
            print("ok %s" % ("" if answer is None else answer), flush=True)
        except BaseException:
            print("error %s" % traceback.format_exc().replace("\n", " "), flush=True)
    for client in sessions:
        client.stop()


main()

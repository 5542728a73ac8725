// Runs our recipes in a separate process; worker-process.mjs describes the protocol on stdin and stdout.
//
//   node meerkat.mjs HOST:PORT
import { createInterface } from 'node:readline';
import { connect, text } from '@meerkat/client';
import { DoubleBarrier, Election, Mutex, Queue } from '@meerkat/recipes';

/** Maximum number of items in a queue, and their data. */
const WINDOW = 100;
const ITEM_BYTES = 100;

const [servers] = process.argv.slice(2);
const sessions = [];

/** Promise.withResolvers, which exists since Node.js 22. */
function withResolvers() {
  let resolve;
  let reject;
  const promise = new Promise((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

/** The active participants and their counters. */
class Run {
  isStopping = false;
  stopping = new AbortController();
  #ended = [];
  #failed = withResolvers();
  #cycles = 0;
  #latenciesUs = [];
  #markedMs = performance.now();

  constructor() {
    this.#failed.promise.catch(() => {});
  }

  /** @param participate gets a function to call at each turn, and runs until `isStopping` */
  begin(participate) {
    const turn = withResolvers();
    this.#ended.push(participate(turn.resolve).catch(this.#failed.reject));
    return turn.promise;
  }

  /** @param latencyMs null when the cycle has no latency */
  count(latencyMs) {
    this.#cycles++;
    if (latencyMs !== null) this.#latenciesUs.push(Math.round(latencyMs * 1000));
  }

  mark() {
    this.#cycles = 0;
    this.#latenciesUs = [];
    this.#markedMs = performance.now();
  }

  read() {
    return `${this.#cycles} ${Math.round((performance.now() - this.#markedMs) * 1000)} ${this.#latenciesUs.join(',')}`;
  }

  stop() {
    this.isStopping = true;
    this.stopping.abort();
    return this.orFailure(Promise.all(this.#ended));
  }

  orFailure(promise) {
    return Promise.race([this.#failed.promise, promise]);
  }
}

/** All clients contend for an exclusive resource that each holder releases at once. */
function contend(run, clients, makeAcquire) {
  let releasedMs = null;
  let isTaken = false;
  return clients.map((client) => {
    const acquire = makeAcquire(client);
    return run.begin(async (onTurn) => {
      while (!run.isStopping) {
        const held = await acquire();
        if (isTaken) throw new Error('two have it');
        isTaken = true;
        run.count(releasedMs === null ? null : performance.now() - releasedMs);
        onTurn();
        isTaken = false;
        releasedMs = performance.now();
        await held.release();
      }
    });
  });
}

/** The members also synchronize locally: before they leave, and before the next round. */
function goThrough(run, clients, path) {
  const meet = makeMeeting(clients.length);
  let isOver = false;
  return clients.map((client, i) => {
    const barrier = new DoubleBarrier(client, path, clients.length);
    return run.begin(async (onTurn) => {
      while (!isOver) {
        const inside = await barrier.enter();
        await meet(() => {});
        await inside.leave();
        await meet(() => {
          run.count(null);
          isOver = run.isStopping;
        });
        onTurn(i);
      }
    });
  });
}

/** @returns a function that waits until `count` callers wait; `last` is called once per meeting */
function makeMeeting(count) {
  let next = withResolvers();
  let waiting = 0;
  return (last) => {
    const { promise, resolve } = next;
    if (++waiting === count) {
      last();
      waiting = 0;
      next = withResolvers();
      resolve();
    }
    return promise;
  };
}

/** Half of the clients put, the other half take. */
function produceAndConsume(run, clients, path, leases) {
  const half = clients.length / 2;
  const pending = new Set();
  const window = makeWindow(run, WINDOW);
  let serial = 0;
  const makeQueue = (client) => new Queue(client, path, { codec: text, leases });
  for (const client of clients.slice(0, half)) {
    const queue = makeQueue(client);
    run.begin(async () => {
      while (await window.take()) {
        const value = String(++serial).padStart(ITEM_BYTES, '0');
        pending.add(value);
        await queue.put(value);
      }
    });
  }
  return clients.slice(half).map((client) => {
    const queue = makeQueue(client);
    return run.begin(async (onTurn) => {
      for await (const item of queue.items({ signal: run.stopping.signal })) {
        if (!pending.delete(item.value)) throw new Error(`${item.value} was taken twice`);
        await item.done();
        window.releaseSlot();
        run.count(null);
        onTurn();
      }
    });
  });
}

function makeWindow(run, size) {
  let free = size;
  const waiting = [];
  run.stopping.signal.addEventListener('abort', () => {
    for (const wake of waiting.splice(0)) wake();
  });
  return {
    /** @returns false when the run stops */
    take: async () => {
      while (!run.isStopping && free === 0) await new Promise((resolve) => waiting.push(resolve));
      if (run.isStopping) return false;
      free--;
      return true;
    },
    releaseSlot: () => {
      free++;
      waiting.shift()?.();
    },
  };
}

const KINDS = {
  lock: (run, clients, path) =>
    contend(run, clients, (client) => {
      const mutex = new Mutex(client, path);
      return () => mutex.acquire();
    }),
  election: (run, clients, path) =>
    contend(run, clients, (client) => {
      const election = new Election(client, path);
      return () => election.campaign();
    }),
  barrier: goThrough,
  queue: (run, clients, path) => produceAndConsume(run, clients, path, false),
  'queue-leases': (run, clients, path) => produceAndConsume(run, clients, path, true),
};

let run = null;

const VERBS = {
  start: async (kind, path, count) => {
    const missing = Math.max(0, Number(count) - sessions.length);
    const connecting = Array.from({ length: missing }, () => connect(servers, { sessionTimeoutMs: 60_000 }));
    sessions.push(...(await Promise.all(connecting)));
    run = new Run();
    await run.orFailure(Promise.all(KINDS[kind](run, sessions.slice(0, Number(count)), path)));
  },
  mark: () => run.mark(),
  read: () => run.orFailure(Promise.resolve(run.read())),
  stop: () => run.stop().then(() => undefined),
};

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, ...words] = line.split(' ');
  try {
    console.log(`ok ${(await VERBS[verb](...words)) ?? ''}`);
  } catch (error) {
    console.log(`error ${error.stack.replaceAll('\n', ' ')}`);
  }
}
await Promise.all(sessions.map((client) => client.close()));

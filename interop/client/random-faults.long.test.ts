import { type Client, type ClientState, connect, type Stat, type WatchStream } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';
import { assert, describe, expect, test } from 'vitest';
import { Random } from '../differential/random.ts';
import { EventLog } from './event-log.ts';
import { QUICK } from './fault-site.ts';
import { outcomeOf } from './outcome.ts';
import { StateLog } from './state-log.ts';
import { WriteLedger } from './write-ledger.ts';

const SEEDS = [1, 2, 3];
const CLIENTS = 3;
const FAULTS = 50;

/** Allowed state transitions. */
const TRANSITIONS: Readonly<Record<ClientState, readonly ClientState[]>> = {
  connecting: ['connected', 'lost', 'closed', 'auth-failed'],
  connected: ['suspended', 'closed', 'auth-failed'],
  'read-only': [],
  suspended: ['connected', 'lost', 'closed', 'auth-failed'],
  lost: ['connected', 'closed', 'auth-failed'],
  closed: [],
  'auth-failed': [],
};

/**
 * Clients that write, read, watch and own ephemeral znodes, on connections that break, freeze and stall, with a server
 * that stops, crashes, freezes and expires sessions. Then all faults are healed and the results are checked.
 */
describe('clients under random faults', () => {
  test.each(SEEDS)('keep all guarantees (seed %i)', async (seed) => {
    const random = new Random(seed);
    await using server = await TestServer.start({ tickTimeMs: 50 });
    const observer = await connect(server.connectString, { sessionTimeoutMs: 60_000, backOff: QUICK });
    for (const path of ['/poked', ...Array.from({ length: CLIENTS }, (_, i) => `/client-${i}`)]) {
      await observer.create(path, '0');
    }
    const workers = await Promise.all(
      Array.from({ length: CLIENTS }, (_, i) => Worker.start(server, i, random.pick([300, 500, 800, 5000]))),
    );

    const faults = new Faults(server, workers, random);
    for (let i = 0; i < FAULTS; i++) {
      for (const worker of workers) worker.act(random);
      await faults.next();
      await pause(random.below(25));
    }
    await faults.heal();
    await observer.whenConnected();

    for (const worker of workers) await worker.client.whenConnected();
    await observer.set('/poked', 'the last time');
    for (const worker of workers) await worker.check(observer);
    for (const worker of workers) await worker.close();
    // A session that is closed while disconnected ends by its timeout.
    while ((await observer.children('/')).children.some((name) => name.startsWith('ephemeral'))) await pause(10);
    await observer.close();
  });
});

class Worker {
  readonly client: Client;
  readonly proxies: readonly TcpProxy[];
  readonly states: StateLog;
  readonly #index: number;
  readonly #ledger: WriteLedger;
  readonly #ephemerals: { readonly path: string; readonly stat: Stat }[] = [];
  /** All requests except the writes of the ledger. */
  readonly #asked: Promise<unknown>[] = [];
  readonly #readVersions: number[] = [];
  #made = 0;
  readonly #poked: Promise<void>;
  readonly #observed: Promise<void>;
  readonly #stream: WatchStream;
  readonly #events: EventLog;

  static async start(server: TestServer, index: number, sessionTimeoutMs: number): Promise<Worker> {
    const proxies = [await TcpProxy.start({ target: server.port }), await TcpProxy.start({ target: server.port })];
    const servers = proxies.map(({ connectString }) => connectString);
    const client = await connect({
      servers,
      sessionTimeoutMs,
      attemptTimeoutMs: 150,
      backOff: { minMs: 1, maxMs: 20 },
    });
    return new Worker(client, proxies, index);
  }

  private constructor(client: Client, proxies: readonly TcpProxy[], index: number) {
    this.client = client;
    this.proxies = proxies;
    this.states = new StateLog(client);
    this.#index = index;
    this.#ledger = new WriteLedger(client, this.#parent);
    this.#poked = this.#followByOneShots();
    this.#observed = this.#followByObservation();
    for (const following of [this.#poked, this.#observed]) following.catch(() => {});
    this.#stream = client.watch(this.#parent, { recursive: true, bufferMax: 100_000 });
    this.#events = new EventLog(this.#stream);
  }

  get #parent(): string {
    return `/client-${this.#index}`;
  }

  /** Starts a few requests of every kind without waiting for them. */
  act(random: Random): void {
    const { client } = this;
    for (let i = random.below(8); i > 0; i--) {
      switch (random.below(8)) {
        case 0:
          this.#asked.push(outcomeOf(client.moveTo(null, { timeoutMs: 2000 })));
          break;
        case 1: {
          const path = `/ephemeral-${this.#index}-${this.#made++}`;
          const made = outcomeOf(client.create(path, '', { mode: 'ephemeral' })).then((outcome) => {
            if (outcome.ok) this.#ephemerals.push({ path, stat: outcome.value.stat });
          });
          this.#asked.push(made);
          break;
        }
        case 2: {
          const abort = new AbortController();
          void this.#ledger.write({ signal: abort.signal });
          if (random.oneIn(2)) abort.abort();
          else setTimeout(() => abort.abort(), random.below(10));
          break;
        }
        case 3:
          void this.#ledger.write({ timeoutMs: random.below(30) });
          break;
        case 4: {
          const read = random.pick(['local', 'linearizable'] as const);
          const made = outcomeOf(client.children(this.#parent, { read })).then((outcome) => {
            // A client never reads an older state, on any of its connections.
            if (outcome.ok) this.#readVersions.push(outcome.value.stat.cversion);
          });
          this.#asked.push(made);
          break;
        }
        default:
          void this.#ledger.write();
      }
    }
  }

  async check(observer: Client): Promise<void> {
    await this.#ledger.settled();
    await Promise.all(this.#asked);
    await this.#ledger.check(observer);
    await this.#poked;
    await this.#observed;
    const sorted = [...this.#readVersions].sort((a, b) => a - b);
    expect(this.#readVersions).toEqual(sorted);
    await this.#checkEphemerals(observer);
    await this.#checkStream(observer);
    this.#checkStates();
  }

  /** Checks that ephemerals exist exactly as long as their session. */
  async #checkEphemerals(observer: Client): Promise<void> {
    const { client } = this;
    for (;;) {
      // A pending cut may hit the current connection.
      await client.whenConnected();
      if (!(await outcomeOf(client.sync())).ok) continue;
      const id = client.session?.id;
      const wrong: string[] = [];
      for (const { path, stat } of this.#ephemerals) {
        const isThere = (await observer.exists(path)) !== null;
        if (isThere !== (stat.ephemeralOwner === id))
          wrong.push(`${path} of ${stat.ephemeralOwner} is there: ${isThere}`);
      }
      if (client.session?.id !== id) continue;
      assert(wrong.length === 0, `the session is ${id}, but ${wrong.join(', ')}`);
      return;
    }
  }

  /** Checks that the stream reported a gap wherever it missed changes. */
  async #checkStream(observer: Client): Promise<void> {
    const { events } = this.#events;
    for (let isReceived = false; !isReceived; ) {
      const from = events.length;
      const { path } = await observer.create(`${this.#parent}/marker-`, '', { sequential: true });
      const event = await this.#events.until((each) => each.type === 'gap' || each.path === path, from);
      isReceived = event.type !== 'gap';
    }
    const { children } = await observer.children(this.#parent);
    const stats = await Promise.all(children.map((name) => observer.exists(`${this.#parent}/${name}`)));
    const czxids = new Map(children.map((name, i) => [`${this.#parent}/${name}`, stats[i]?.czxid ?? 0n]));
    const sorted = [...czxids].sort(([, a], [, b]) => (a < b ? -1 : 1));
    // Compares the created znodes with the reported events, in order.
    let next = 0;
    let isAfterGap = true;
    for (const event of events) {
      if (event.type === 'gap') isAfterGap = true;
      if (event.type !== 'created') continue;
      const czxid = czxids.get(event.path);
      assert(czxid !== undefined, `${event.path} was told and is not there`);
      expect(event.zxid).toBe(czxid);
      const index = sorted.findIndex(([path]) => path === event.path);
      assert(index >= next, `${event.path} was told twice, or too late`);
      assert(index === next || isAfterGap, `${sorted[next]?.[0]} was not told before ${event.path}, and no gap`);
      next = index + 1;
      isAfterGap = false;
    }
    expect(next).toBe(sorted.length);
    await this.#stream.close();
  }

  async close(): Promise<void> {
    await this.client.close();
    for (const proxy of this.proxies) await proxy.stop();
  }

  #checkStates(): void {
    let previous: ClientState = 'connected';
    let sessionId: bigint | null = null;
    for (const change of this.states.changes) {
      assert(change.previous === previous, `${change.state} follows ${change.previous}, not ${previous}`);
      assert(TRANSITIONS[previous].includes(change.state), `${change.state} after ${previous}`);
      previous = change.state;
      if (change.state !== 'connected') continue;
      if (sessionId !== null) expect(change.sameSession).toBe(change.sessionId === sessionId);
      sessionId = change.sessionId;
    }
  }

  /** Reads and waits for a change in a loop, until the last value is read. */
  async #followByOneShots(): Promise<void> {
    for (;;) {
      const outcome = await outcomeOf(this.client.get('/poked', { watch: true }));
      if (!outcome.ok) await this.client.whenConnected();
      else if (new TextDecoder().decode(outcome.value.data) === 'the last time') return;
      else await outcome.value.changed;
    }
  }

  async #followByObservation(): Promise<void> {
    for await (const { data } of this.client.observe('/poked')) {
      if (data !== undefined && new TextDecoder().decode(data) === 'the last time') return;
    }
  }
}

/** Injects faults one after the other; a fault that heals later may overlap with the next one. */
class Faults {
  readonly #server: TestServer;
  readonly #workers: readonly Worker[];
  readonly #random: Random;
  #healing: Promise<unknown>[] = [];

  constructor(server: TestServer, workers: readonly Worker[], random: Random) {
    this.#server = server;
    this.#workers = workers;
    this.#random = random;
  }

  async next(): Promise<void> {
    const random = this.#random;
    const worker = random.pick(this.#workers);
    const proxy = random.pick(worker.proxies);
    const picked = random.pick(['toServer', 'toClient', 'both'] as const);
    const direction = picked === 'both' ? undefined : picked;
    switch (random.below(12)) {
      case 0:
      case 1:
        await proxy.cut({ how: random.pick(['reset', 'end'] as const) });
        return;
      case 2:
      case 3:
      case 4: {
        const rule = { direction: direction ?? 'toServer', bytes: random.below(300) };
        const open = proxy.connections.at(-1);
        if (open !== undefined && random.oneIn(2)) open.cutAfter(rule).catch(() => {});
        else proxy.cutAfter(rule).catch(() => {});
        return;
      }
      case 5:
      case 6:
        proxy.freeze(direction);
        this.#later(random.below(400), async () => proxy.thaw(direction));
        return;
      case 7:
        proxy.delay(random.below(30), direction);
        return;
      case 8:
        await proxy.refuse({ how: random.pick(['refuse', 'close'] as const) });
        this.#later(random.below(100), () => proxy.accept());
        return;
      case 9: {
        await this.#healed();
        const id = worker.client.session?.id;
        const lives = this.#server.sessions().some((session) => session.id === id);
        // It may end by itself concurrently.
        if (id !== undefined && lives) await this.#server.expireSession(id).catch(() => {});
        return;
      }
      case 10:
        await this.#healed();
        if (random.oneIn(2)) await this.#server.kill({ losesUnsynced: random.oneIn(2) });
        await this.#server.restart();
        return;
      default:
        await this.#healed();
        this.#server.pause();
        await pause(random.below(150));
        this.#server.resume();
    }
  }

  async heal(): Promise<void> {
    await this.#healed();
    for (const { proxies } of this.#workers) {
      for (const proxy of proxies) {
        proxy.thaw();
        proxy.delay(0);
        await proxy.accept();
      }
    }
  }

  #later(ms: number, heal: () => Promise<void>): void {
    this.#healing.push(pause(ms).then(heal));
  }

  async #healed(): Promise<void> {
    await Promise.all(this.#healing.splice(0));
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

import { type Client, connect, text } from '@meerkat/client';
import { Mutex } from '@meerkat/recipes';
import { afterEach, expect, onTestFailed, test } from 'vitest';
import { Op, RawClient } from '../harness/raw-client.ts';
import { OPEN_ACL, record } from '../harness/record-builder.ts';
import { Ensemble, type Member } from './ensemble.ts';

const LONG_MS = 240_000;
/** Four ticks. */
const SESSION_MS = 2000;
const LOCK = '/locks/one';
/** An ephemeral of the reader. */
const READER = '/reader';

let ensemble: Ensemble | null = null;
afterEach(async () => {
  for (const { server } of ensemble?.members ?? []) server.resume();
  await ensemble?.dispose();
  ensemble = null;
});

/** A raw client that never closes its connection, and keeps sending requests. */
class Reader {
  readonly #client: RawClient;
  /** Send times of all answered requests. */
  readonly answeredMs: number[] = [];
  readonly #timer: NodeJS.Timeout;

  static async start(port: number): Promise<Reader> {
    const client = await RawClient.connect(port, { timeoutMs: SESSION_MS });
    await client.demand(Op.create, record().ustring(READER).buffer('').acls(OPEN_ACL).int(1).build());
    return new Reader(client);
  }

  private constructor(client: RawClient) {
    this.#client = client;
    this.#timer = setInterval(() => {
      const sentMs = performance.now();
      const body = record().ustring('/value').bool(false).build();
      client.request(Op.getData, body).then(
        () => this.answeredMs.push(sentMs),
        () => {},
      );
    }, 50);
    void client.closed.then(() => clearInterval(this.#timer));
  }

  get closed(): Promise<void> {
    return this.#client.closed;
  }

  end(): void {
    clearInterval(this.#timer);
    this.#client.destroy();
  }
}

test.each([
  // Its leader does not drop it meanwhile.
  ['follower', 20],
  ['leader', 4],
] as const)(
  'a %s that is paused for longer than a session never causes two holders of a lock, nor answers an expired session',
  async (role, syncLimit) => {
    ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'meerkat' }, { kind: 'meerkat' }], { syncLimit });
    onTestFailed(() => console.log(ensemble?.logs));
    const leader = await ensemble.leader();
    const stopped = role === 'leader' ? leader : ensemble.members.find((member) => member !== leader)!;
    const others = ensemble.members.filter((member) => member !== stopped);
    await using first = await clientOf([stopped]);
    await using second = await clientOf(others);
    // A server knows it one leader ping after the last voter has joined.
    await expect.poll(() => first.hasLeasedAnswers()).toBe(true);
    await first.create('/value', 'of the first');
    const held = await new Mutex(first, LOCK, { marginMs: 0 }).acquire();
    const waiting = new Mutex(second, LOCK, { marginMs: 0 }).acquire();
    const reader = await Reader.start(stopped.server.port);

    await stopped.server.pause();
    const taken = await waiting;
    const takenMs = performance.now();
    expect(held.isHeld, 'the first holder is sure while there is a second one').toBe(false);
    while ((await second.exists(READER)) !== null) await second.sync();
    const endedMs = performance.now();
    await second.set('/value', 'of the second');

    stopped.server.resume();
    await reader.closed;
    const lastMs = Math.max(...reader.answeredMs);
    reader.end();
    // A client that gets a reply relies on its session for one timeout after it sent the request.
    expect(lastMs + SESSION_MS).toBeLessThan(endedMs);
    expect(takenMs).toBeLessThanOrEqual(endedMs);
    expect(taken.isHeld).toBe(true);
    await second.sync();
    expect((await second.get('/value', { codec: text })).data).toBe('of the second');
    await expect(held.guarded.set('/value', 'of the first')).rejects.toThrow();
    await taken.release();
  },
  LONG_MS,
);

function clientOf(members: readonly Member[]): Promise<Client> {
  const servers = members.map(({ server }) => `127.0.0.1:${server.port}`).join(',');
  return connect(servers, { sessionTimeoutMs: SESSION_MS });
}

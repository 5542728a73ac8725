/**
 * The safety properties of latches and barriers, checked against the committed history. In every seed, under any faults
 * of servers, links and replies, while callers cancel:
 *
 * 1. each count is applied once and returns the remaining count; one of unknown outcome at most once; one that reports
 *    'not-applied', never;
 * 2. a caller that has waited for a latch has seen it open, and it opens in the txn of the last count;
 * 3. a call that waited for, checked, set or removed a barrier found it in that state at some moment of the call;
 * 4. a call removes at most one barrier, and none if it says so.
 */
import { type CallOptions, type Client, isZooKeeperError } from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect } from 'vitest';
import { committedIn, untilWhole } from '../testing/aftermath.ts';
import type { Fleet } from '../testing/fleet.ts';
import { simulate } from '../testing/simulate.ts';
import { Barrier } from './barrier.ts';
import { CountDownLatch } from './count-down-latch.ts';

const CLIENTS = 3;
const EACH = 8;
const FAULT_MS = 10_000;

/** A call, from one zxid to another, and its result. */
interface Call {
  readonly client: Client;
  readonly method: 'count' | 'open' | 'wait' | 'isSet' | 'set' | 'remove';
  readonly from: number;
  readonly until: number;
  /** What it resolved with, or the outcome of its error. */
  readonly result: unknown;
}

const BARRIER: ReadonlySet<string> = new Set(['wait', 'isSet', 'set', 'remove']);
const OUTCOMES: ReadonlySet<unknown> = new Set(['not-applied', 'unknown']);

class Checker {
  readonly calls: Call[] = [];
  readonly #clientOf: Map<bigint, Client> = new Map();

  follow(client: Client): void {
    const note = (): void => {
      if (client.session !== null) this.#clientOf.set(client.session.id, client);
    };
    note();
    client.onState(note);
  }

  check(tree: CommittedTree): void {
    const counts = tree.changesOf('/latch').filter(({ type }) => type === 'changed');
    const left = counts.map(({ zxid }) => Number(new TextDecoder().decode(tree.stateAt('/latch', zxid)!.data!)));
    expect(left).toEqual(left.map((_, i) => CLIENTS * EACH - 1 - i));
    const calls = this.calls.filter(({ method }) => method === 'count');
    const reported = calls.flatMap(({ result }) => (typeof result === 'number' ? [result] : []));
    expect(new Set(reported).size, 'each count returns a different number').toBe(reported.length);
    expect(left).toEqual(expect.arrayContaining(reported));
    expect(left.length - reported.length).toBeLessThanOrEqual(
      calls.filter(({ result }) => result === 'unknown').length,
    );
    const open = tree.changesOf('/latch/open').find(({ type }) => type === 'created')!;
    expect(open.zxid).toBe(counts.at(-1)!.zxid);
    for (const call of this.calls) this.#checkCall(tree, call, open.zxid);
  }

  #checkCall(tree: CommittedTree, call: Call, openSince: number): void {
    const { client, method, from, until, result } = call;
    const about = `${method} from ${from} to ${until}: ${result}`;
    const isDone = result === undefined || typeof result === 'boolean';
    if (method === 'open' && isDone) expect(until, about).toBeGreaterThanOrEqual(openSince);
    if (!BARRIER.has(method)) return;
    const changes = tree.changesOf('/barrier').filter(({ zxid }) => zxid > from && zxid <= until);
    if (isDone) {
      const due = method === 'set' || result === true;
      const moments = [from, ...changes.map(({ zxid }) => zxid)];
      const isSo = moments.some((zxid) => (tree.stateAt('/barrier', zxid) !== null) === due);
      expect(isSo, about).toBe(true);
    }
    const own = changes.filter(({ zxid }) => this.#clientOf.get(tree.entryAt(zxid)!.header.sessionId) === client);
    const most = (result === 'not-applied' ? 0 : 1) + this.#underWay(call);
    const types = own.filter(({ type }) => type === (method === 'set' ? 'created' : 'deleted'));
    // A call that sets a barrier may do so more than once: see `Barrier.set`.
    if (method === 'remove' || result === 'not-applied') expect(types.length, about).toBeLessThanOrEqual(most);
  }

  /** Earlier cancelled calls that may take effect only now. */
  #underWay(call: Call): number {
    const calls = this.calls.filter(({ client, method }) => client === call.client && BARRIER.has(method));
    const before = calls.slice(0, calls.indexOf(call));
    const given = before.slice(before.findLastIndex(({ result }) => !OUTCOMES.has(result)) + 1);
    const changing = call.method === 'set' ? 'set' : 'remove';
    return given.filter(({ method, result }) => method === changing && result === 'unknown').length;
  }
}

simulate('each count is applied once, and a barrier blocks all waiters', 4, async (fleet, seed) => {
  const { world } = fleet;
  const checker = new Checker();
  await untilWhole(fleet);
  const clients = await fleet.connectAll(CLIENTS);
  for (const client of clients) checker.follow(client);
  if (seed % 2 === 0) fleet.unleashBreaks(FAULT_MS);
  else fleet.unleash(FAULT_MS, CLIENTS);
  const isOver = { value: false };
  const latches = clients.map((client) => new CountDownLatch(client, '/latch', CLIENTS * EACH));
  const opening = clients.map((client, i) => waitOften(fleet, client, latches[i]!, checker));
  const counting = latches.map(async (latch, i) => {
    for (let n = 0; n < EACH - 1; n++) {
      await note(fleet, clients[i]!, 'count', checker, (options) => latch.countDown(options));
      await world.sleep(world.random.between(0, 1500));
    }
  });
  const blocking = clients.map((client) => block(fleet, client, checker, isOver));
  await Promise.all([world.sleep(FAULT_MS), ...counting]);
  fleet.heal();
  isOver.value = true;
  await Promise.all(blocking);
  expect(checker.calls.filter(({ method, result }) => method === 'open' && result === undefined)).toEqual([]);
  const left = await latches[0]!.count();
  for (let i = 0; i < left; i++) await note(fleet, clients[0]!, 'count', checker, () => latches[0]!.countDown());
  await Promise.all(opening);
  const tree = await committedIn(fleet);
  if (tree !== null) checker.check(tree);
});

/** Waits for the latch, and repeatedly cancels. */
async function waitOften(fleet: Fleet, client: Client, latch: CountDownLatch, checker: Checker): Promise<void> {
  for (;;) {
    await note(fleet, client, 'open', checker, (options) => latch.wait(options));
    if (checker.calls.some((call) => call.client === client && call.method === 'open' && call.result === undefined))
      return;
  }
}

/** Sets, removes, awaits and checks the barrier. */
async function block(
  fleet: Fleet,
  client: Client,
  checker: Checker,
  isOver: { readonly value: boolean },
): Promise<void> {
  const { random } = fleet.world;
  const barrier = new Barrier(client, '/barrier');
  while (!isOver.value) {
    const method = random.pick(['wait', 'isSet', 'set', 'remove'] as const);
    const timeoutMs = method === 'wait' ? 2000 : undefined;
    await note(fleet, client, method, checker, (options) => barrier[method]({ timeoutMs, ...options }));
    await fleet.world.sleep(random.between(0, 200));
  }
}

async function note(
  fleet: Fleet,
  client: Client,
  method: Call['method'],
  checker: Checker,
  make: (options: CallOptions) => Promise<unknown>,
): Promise<void> {
  const { random } = fleet.world;
  const from = fleet.committedZxid;
  const making = make(random.chance(0.4) ? { timeoutMs: random.between(0, 600) } : {});
  const result = await making.catch((error: unknown) => {
    if (!isZooKeeperError(error)) throw error;
    return error.outcome;
  });
  checker.calls.push({ client, method, from, until: fleet.committedZxid, result });
}

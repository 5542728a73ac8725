/**
 * The safety properties of cyclic barriers. In every seed, under any faults of servers, links and parties:
 *
 * 1. a round is one txn in which the required number of waiting parties existed; a party that passes was in that round;
 * 2. each call takes part in at most one round, one that was not over when the call started; a call that reports
 *    'not-applied' took part in none;
 * 3. rounds continue when all faults are healed, and nothing is left behind.
 */
import { type CallOptions, type Client, isZooKeeperError } from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect } from 'vitest';
import { committedIn, untilWhole } from '../testing/aftermath.ts';
import type { Fleet } from '../testing/fleet.ts';
import { simulate } from '../testing/simulate.ts';
import { CyclicBarrier, type Passage } from './cyclic-barrier.ts';

const PARTIES = 3;
const FAULT_MS = 12_000;

/** A call of `wait` and its result: the round that it was in, or that this cannot be known. */
interface Call {
  /** The newest round that any client had seen by then. */
  readonly begunAt: number;
  readonly roundBefore: bigint;
  round: bigint | 'unknown' | null;
}

/** Sees all parties at once. */
class Checker {
  readonly #calls = new Map<string, Call[]>();
  readonly #partyOf = new Map<bigint, string>();
  /** When each round was first reported, and to which indexes. */
  readonly #rounds = new Map<bigint, { readonly seenAt: number; readonly indexes: Set<number> }>();
  #now = 0;
  #lastRound = 0n;

  /** Records the sessions of a client as those of a party. */
  follow(party: string, client: Client): void {
    const note = (): void => {
      if (client.session !== null) this.#partyOf.set(client.session.id, party);
    };
    note();
    client.onState(note);
    this.#calls.set(party, []);
  }

  passages(party: string): number {
    return this.#calls.get(party)!.filter(({ round }) => typeof round === 'bigint').length;
  }

  onCalled(party: string): Call {
    const call: Call = { begunAt: ++this.#now, roundBefore: this.#lastRound, round: null };
    this.#calls.get(party)!.push(call);
    return call;
  }

  onPassed(call: Call, { index, round }: Passage): void {
    call.round = round;
    expect(round, 'a round that was not over when the call began').toBeGreaterThan(call.roundBefore);
    const known = this.#rounds.get(round) ?? { seenAt: ++this.#now, indexes: new Set() };
    this.#rounds.set(round, known);
    expect(call.begunAt, `a party of round ${round} was there when it opened`).toBeLessThan(known.seenAt);
    expect([...known.indexes], `indexes of round ${round}`).not.toContain(index);
    known.indexes.add(index);
    if (round > this.#lastRound) this.#lastRound = round;
  }

  /** Compares the reported results with the committed history. */
  check(tree: CommittedTree): void {
    const made = tree.changesOf('/steps').filter(({ type }) => type === 'children');
    const roundsOf = new Map([...this.#calls.keys()].map((party) => [party, [] as bigint[]]));
    for (const zxid of new Set(made.map((change) => change.zxid))) {
      const met = tree.changes.filter((change) => change.zxid === zxid && change.type === 'changed');
      if (met.length === 0) continue;
      expect(met, `parties in round ${zxid}`).toHaveLength(PARTIES);
      const before = met.map(({ path }) => tree.stateAt(path, tree.zxidBefore(zxid))!);
      for (const { version } of before) expect(version, `a party of round ${zxid} waits, and has not met`).toBe(0);
      const parties = before.map(({ owner }) => this.#partyOf.get(owner)!);
      expect(new Set(parties).size, `${parties} in round ${zxid} are as many`).toBe(PARTIES);
      for (const party of parties) roundsOf.get(party)!.push(BigInt(zxid));
    }
    for (const [party, calls] of this.#calls) checkParty(party, calls, roundsOf.get(party)!);
    expect(this.#rounds.size).toBeGreaterThan(0);
  }
}

/** Each round of a party belongs to a call of its own: between two known passages, to calls of unknown outcome. */
function checkParty(party: string, calls: readonly Call[], rounds: readonly bigint[]): void {
  let next = 0;
  let unknown = 0;
  for (const { round } of [...calls, { round: null }]) {
    if (round === 'unknown') unknown++;
    if (typeof round !== 'bigint') continue;
    const at = rounds.indexOf(round, next);
    expect(at, `${party} passed in round ${round}, and was in rounds ${rounds}`).toBeGreaterThanOrEqual(next);
    expect(at - next, `rounds of ${party} before ${round} that it does not know`).toBeLessThanOrEqual(unknown);
    next = at + 1;
    unknown = 0;
  }
  expect(rounds.length - next, `rounds of ${party} that it does not know of`).toBeLessThanOrEqual(unknown);
}

simulate('no client passes alone, and no client passes twice', 3, async (fleet, seed) => {
  const checker = new Checker();
  await untilWhole(fleet);
  const clients = await fleet.connectAll(PARTIES);
  const parties = clients.map((_, i) => `party ${i}`);
  if (seed % 4 === 0) fleet.unleashBreaks(FAULT_MS);
  else fleet.unleash(FAULT_MS, PARTIES);
  const ending = new AbortController();
  // Some cancel, and one more joins and dies.
  const haste = fleet.world.random.pick([0, 0, 0.3]);
  const living = clients.map((client, i) => {
    checker.follow(parties[i]!, client);
    return live(fleet, client, parties[i]!, checker, haste, ending.signal);
  });
  if (fleet.world.random.chance(0.5)) living.push(dieOften(fleet, checker, ending.signal));
  const ended = Promise.all(living);
  await Promise.race([fleet.world.sleep(FAULT_MS + 2000), ended]);
  fleet.heal();
  const before = parties.map((party) => checker.passages(party));
  const hasProgressed = (): boolean => parties.every((party, i) => checker.passages(party) >= before[i]! + 2);
  expect(await Promise.race([fleet.world.until(hasProgressed, 600_000), ended]), 'rounds after the faults').toBe(true);
  ending.abort();
  await ended;
  await fleet.world.sleep(20_000);
  // What a dead client left behind is deleted by later parties.
  await Promise.all(
    clients.map((client, i) => pass(new CyclicBarrier(client, '/steps', PARTIES), parties[i]!, checker)),
  );
  await fleet.world.sleep(1000);
  expect((await clients[0]!.children('/steps', { read: 'linearizable' })).children).toEqual([]);
  const tree = await committedIn(fleet);
  if (tree !== null) checker.check(tree);
});

async function live(
  fleet: Fleet,
  client: Client,
  party: string,
  checker: Checker,
  haste: number,
  signal: AbortSignal,
): Promise<void> {
  const { random } = fleet.world;
  const barrier = new CyclicBarrier(client, '/steps', PARTIES);
  while (!signal.aborted) {
    const timeoutMs = random.chance(haste) ? random.between(0, 500) : undefined;
    await pass(barrier, party, checker, { signal, timeoutMs });
    await fleet.world.sleep(random.between(0, 300));
  }
}

/** Waits with a client of its own, which is closed halfway. */
async function dieOften(fleet: Fleet, checker: Checker, signal: AbortSignal): Promise<void> {
  const { random } = fleet.world;
  for (let i = 0; !signal.aborted; i++) {
    const client = await fleet.connectAs('mortal');
    checker.follow(`mortal ${i}`, client);
    const passing = pass(new CyclicBarrier(client, '/steps', PARTIES), `mortal ${i}`, checker, { signal });
    await fleet.world.sleep(random.between(0, 400));
    await client.close();
    await passing;
    await fleet.world.sleep(random.between(0, 1500));
  }
}

async function pass(barrier: CyclicBarrier, party: string, checker: Checker, options: CallOptions = {}): Promise<void> {
  const call = checker.onCalled(party);
  try {
    checker.onPassed(call, await barrier.wait(options));
  } catch (error) {
    if (!isZooKeeperError(error)) throw error;
    if (error.outcome === 'unknown') call.round = 'unknown';
  }
}

/**
 * The safety properties of double barriers, checked against the committed history. In every seed, under any faults of
 * servers, links and members, which also cancel, die halfway and enter again:
 *
 * 1. a round begins with the required number of members, all present and none twice;
 * 2. a later member enters while one of those is inside, and each enters a round that was not over when its call
 *    started;
 * 3. no member leaves a round before all others have left, and no member is gone that has neither left nor lost its
 *    session;
 * 4. a call that reports 'not-applied' was counted in no round;
 * 5. a client inside is a member as long as its session lives, also where two enter and leave through one object;
 * 6. a round ends when no client is inside; rounds continue when all faults are healed, and nothing is left behind.
 */
import { type CallOptions, type Client, isZooKeeperError } from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect } from 'vitest';
import type { Fleet } from '../testing/fleet.ts';
import { simulate } from '../testing/simulate.ts';
import { DoubleBarrier } from './double-barrier.ts';
import type { Inside } from './inside.ts';

const MEMBERS = 3;
const FAULT_MS = 12_000;
const PATH = '/barrier';

/** A call of `enter` and its result; times are zxids: the last one committed by then. */
interface Stay {
  readonly process: string;
  readonly begunAt: number;
  round: bigint | 'not-applied' | 'unknown' | 'under way';
  enteredAt: number;
  /** When `leave` was called, and when it reported that all have left. */
  leavingAt: number;
  leftAt: number;
  /** The client considered its session lost while it was inside. */
  isLost: boolean;
}

/** The znode of a member. */
interface Member {
  readonly path: string;
  readonly process: string;
  readonly from: number;
  /** The zxid of its deletion. */
  readonly to: number;
  /** It was deleted with its session. */
  readonly isExpired: boolean;
}

class Checker {
  readonly stays: Stay[] = [];
  readonly #processOf = new Map<bigint, string>();

  /** Records the sessions of a client as those of a process. */
  follow(process: string, client: Client): void {
    const note = (): void => {
      if (client.session !== null) this.#processOf.set(client.session.id, process);
    };
    note();
    client.onState(note);
  }

  roundsDone(process: string): number {
    return this.stays.filter((stay) => stay.process === process && stay.leftAt < Number.POSITIVE_INFINITY).length;
  }

  check(tree: CommittedTree): void {
    const members = this.#membersIn(tree);
    const rounds = tree.changesOf(`${PATH}/ready`).filter(({ type }) => type === 'created');
    const ends = tree.changesOf(`${PATH}/ready`).filter(({ type }) => type === 'deleted');
    const endOf = (round: number): number => ends.find(({ zxid }) => zxid > round)?.zxid ?? Number.POSITIVE_INFINITY;
    for (const { zxid } of rounds) {
      const founders = members.filter((member) => isThere(member, zxid)).map(({ process }) => process);
      expect(founders.length, `members when round ${zxid} began`).toBeGreaterThanOrEqual(MEMBERS);
      expect(new Set(founders).size, `${founders} of round ${zxid} are as many`).toBe(founders.length);
    }
    for (const { zxid } of ends) {
      const inside = members.filter((member) => isThere(member, zxid) && member.from < zxid);
      expect(inside, `members when a round ended at ${zxid}`).toEqual([]);
    }
    for (const [i, stay] of this.stays.entries()) {
      const next = this.stays.slice(i + 1).find(({ process }) => process === stay.process);
      const own = members.filter(
        ({ process, from }) =>
          process === stay.process && from > stay.begunAt && from <= (next?.begunAt ?? Number.POSITIVE_INFINITY),
      );
      const about = `${stay.process}, who came after ${stay.begunAt}`;
      if (typeof stay.round !== 'bigint') continue;
      const round = Number(stay.round);
      expect(rounds.map(({ zxid }) => zxid)).toContain(round);
      expect(endOf(round), `the end of round ${round} of ${about}`).toBeGreaterThan(stay.begunAt);
      const founders = members.filter((member) => isThere(member, round));
      const isCounted = own.some((member) => isThere(member, round));
      const isLate = own.some(({ from }) => from > round && founders.some(({ to }) => to > from));
      expect(isCounted || isLate, `${about} was in round ${round}, or came while it was open`).toBe(true);
      // Before it, the call may have had others, in lost sessions.
      const last = own.findLast(({ from }) => from <= stay.enteredAt)!;
      const isGone = last.to <= stay.leavingAt && !last.isExpired && !stay.isLost;
      expect(isGone, `${about} is gone from round ${round} before it leaves`).toBe(false);
      if (stay.leftAt === Number.POSITIVE_INFINITY) continue;
      const others = this.stays.filter((other) => other.round === stay.round && other.enteredAt <= stay.leftAt);
      const late = others.flatMap(({ process, enteredAt }) =>
        members.filter((member) => member.process === process && isThere(member, enteredAt)),
      );
      const left = [...founders, ...late].filter((member) => isThere(member, stay.leftAt));
      expect(left, `members when ${about} had left round ${round} at ${stay.leftAt}`).toEqual([]);
    }
    this.#checkHarmless(members, rounds);
    expect(this.stays.some(({ leftAt }) => leftAt < Number.POSITIVE_INFINITY)).toBe(true);
  }

  /**
   * Each call has its own znode name; the znode of a call of unknown outcome may appear after the next calls have
   * begun.
   */
  #checkHarmless(members: readonly Member[], rounds: readonly { readonly zxid: number }[]): void {
    for (const process of new Set(this.stays.map((stay) => stay.process))) {
      const calls = this.stays.filter((stay) => stay.process === process);
      const seen = new Set<string>();
      let awaited = 0;
      for (const [i, { round, begunAt }] of calls.entries()) {
        const end = calls[i + 1]?.begunAt ?? Number.POSITIVE_INFINITY;
        const own = members.filter(
          (member) => member.process === process && member.from > begunAt && member.from <= end,
        );
        const fresh = own.filter(({ path }) => !seen.has(path));
        for (const { path } of own) seen.add(path);
        if (round !== 'not-applied') {
          // A client that has entered has waited until no znode of earlier calls can appear.
          if (typeof round === 'bigint') awaited = 0;
          else if (fresh.length === 0) awaited++;
          continue;
        }
        const counted = fresh.filter((member) => rounds.some(({ zxid }) => isThere(member, zxid)));
        const about = `members of ${process}, who came after ${begunAt}, not applied, whom a round has counted`;
        expect(counted.length, about).toBeLessThanOrEqual(awaited);
        awaited -= counted.length;
      }
    }
  }

  #membersIn(tree: CommittedTree): Member[] {
    const members: Member[] = [];
    for (const path of tree.paths()) {
      if (!path.startsWith(`${PATH}/`) || path === `${PATH}/ready`) continue;
      const changes = tree.changesOf(path);
      for (const { zxid, type } of changes) {
        if (type !== 'created') continue;
        const { owner } = tree.stateAt(path, zxid)!;
        const process = this.#processOf.get(owner)!;
        const end = changes.find((change) => change.type === 'deleted' && change.zxid > zxid);
        const to = end?.zxid ?? Number.POSITIVE_INFINITY;
        members.push({ path, process, from: zxid, to, isExpired: tree.sessions.get(owner)?.closedZxid === to });
      }
    }
    return members;
  }
}

function isThere({ from, to }: Member, zxid: number): boolean {
  return from <= zxid && zxid < to;
}

simulate('no client enters or leaves alone, under any faults', 4, async (fleet, seed) => {
  const { random } = fleet.world;
  const checker = new Checker();
  // One member more than needed, and two through one object, which the tree cannot tell apart: only their results are
  // checked.
  const isShared = seed % 5 === 0;
  const clients = await fleet.connectAll(MEMBERS);
  if (isShared) clients.push(clients[0]!);
  const barriers = new Map(clients.map((client) => [client, makeBarrier(fleet, client)]));
  const names = clients.map((_, i) => `process ${i}`);
  if (seed % 4 === 0) fleet.unleashBreaks(FAULT_MS);
  else fleet.unleash(FAULT_MS, MEMBERS);
  if (isShared) fleet.unleashCuts(FAULT_MS, MEMBERS);
  const controller = new AbortController();
  const haste = random.pick([0, 0.3, 0.6]);
  const living = clients.map((client, i) =>
    live(fleet, client, barriers.get(client)!, names[i]!, checker, haste, controller.signal),
  );
  if (random.chance(0.5)) living.push(dieOften(fleet, checker, controller.signal));
  const ended = Promise.all(living);
  await Promise.race([fleet.world.sleep(FAULT_MS + 2000), ended]);
  fleet.heal();
  const before = names.map((name) => checker.roundsDone(name));
  const hasProgressed = (): boolean => names.every((name, i) => checker.roundsDone(name) >= before[i]! + 2);
  expect(await Promise.race([fleet.world.until(hasProgressed, 600_000), ended]), 'rounds after the faults').toBe(true);
  controller.abort();
  await ended;
  await fleet.world.sleep(20_000);
  // What dead or cancelled clients left behind is removed after one more round.
  const last = clients.slice(0, MEMBERS);
  await Promise.all(last.map((client, i) => stay(fleet, makeBarrier(fleet, client), client, names[i]!, checker)));
  expect((await clients[0]!.children(PATH, { read: 'linearizable' })).children).toEqual([]);
  const tree = await fleet.committedTree();
  if (tree !== null && !isShared) checker.check(tree);
});

function makeBarrier(fleet: Fleet, client: Client): DoubleBarrier {
  return new DoubleBarrier(client, PATH, MEMBERS, { layout: fleet.world.random.pick(['kazoo', 'curator']) });
}

/** Enters and leaves repeatedly, and sometimes cancels. */
async function live(
  fleet: Fleet,
  client: Client,
  barrier: DoubleBarrier,
  process: string,
  checker: Checker,
  haste: number,
  signal: AbortSignal,
): Promise<void> {
  const { random } = fleet.world;
  checker.follow(process, client);
  while (!signal.aborted) {
    const limits = () => ({ signal, timeoutMs: random.chance(haste) ? random.between(0, 600) : undefined });
    await stay(fleet, barrier, client, process, checker, limits);
    if (random.chance(0.5)) await fleet.world.sleep(random.between(0, 2500));
  }
}

/** Enters with a client of its own, which is closed halfway. */
async function dieOften(fleet: Fleet, checker: Checker, signal: AbortSignal): Promise<void> {
  const { random } = fleet.world;
  for (let i = 0; !signal.aborted; i++) {
    const client = await fleet.connectAs('mortal');
    checker.follow(`mortal ${i}`, client);
    const staying = stay(fleet, makeBarrier(fleet, client), client, `mortal ${i}`, checker, () => ({ signal }));
    await fleet.world.sleep(random.between(0, 1000));
    await client.close();
    await staying;
    await fleet.world.sleep(random.between(0, 1500));
  }
}

async function stay(
  fleet: Fleet,
  barrier: DoubleBarrier,
  client: Client,
  process: string,
  checker: Checker,
  limits: () => CallOptions = () => ({}),
): Promise<void> {
  const never = { enteredAt: Number.POSITIVE_INFINITY, leavingAt: Number.POSITIVE_INFINITY };
  const begun = { process, begunAt: fleet.committedZxid, round: 'under way', isLost: false } as const;
  const own: Stay = { ...begun, ...never, leftAt: Number.POSITIVE_INFINITY };
  checker.stays.push(own);
  let inside: Inside | null = null;
  try {
    inside = await barrier.enter(limits());
    const lost = client.lostSignal;
    own.enteredAt = fleet.committedZxid;
    own.round = inside.round;
    await fleet.world.sleep(fleet.world.random.between(0, 800));
    own.leavingAt = fleet.committedZxid;
    own.isLost = lost.aborted || !inside.isHeld;
    if (!lost.aborted && client.state === 'connected') expect(inside.isHeld, `${process} is a member`).toBe(true);
    await inside.leave(limits());
    own.leftAt = fleet.committedZxid;
  } catch (error) {
    if (!isZooKeeperError(error)) throw error;
    expect(error.code, 'what ends a call').toMatch(/^(ABORTED|TIMEOUT|CLOSED)$/);
    if (inside === null) own.round = error.outcome;
    else expect(error.outcome).toBe('unknown');
  }
}

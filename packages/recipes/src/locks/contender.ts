import {
  AbortedError,
  type About,
  Budget,
  type CallOptions,
  type Client,
  joinPath,
  NoNodeError,
  NotEmptyError,
  nameOf,
  TimeoutError,
  ZooKeeperError,
} from '@meerkat/client';
import { makeMark } from '../layout.ts';
import { sequenceOf } from '../sequence.ts';
import { isSessionEnd } from '../wait.ts';
import type { OwnZnode } from './holding.ts';
import { blockerOf, canMove, contendersOf, type Line } from './line.ts';
import { Remedy, SEQUENCE_MAX, SequenceExhaustedError, warnIfHigh } from './overflow.ts';
import { type Refusal, removeMarked, removeZnode, throwRefusal } from './removal.ts';
import { waitFor, whenAborted } from './wait-for.ts';

/*
 * Standing in a line until it is one's turn, the recipe that locks, elections and queues have in common:
 *
 *     create   a protected ephemeral sequential znode
 *     list     the children of the line. Nobody before us: it is our turn
 *     watch    the one we wait for, and nobody else; then list again
 *
 * What makes it safe:
 *
 * 1. The list is read by the session that made the znode, so it is not older than the znode. Whoever stands before it was
 *    created before it, and whoever is missing in the list is gone for good: an old list delays us, and never lets us in.
 * 2. A znode counts as ours only while the session that made it does, from its creation on without a break. After `lost`
 *    it is given up, even if the same session comes back with it.
 * 3. Whatever ends the wait, the znode is removed, as long as it takes (`removal.ts`); also one of which we do not know
 *    whether it came to be.
 */

/** A place at the head of a line. */
export interface Place extends OwnZnode {
  /** Aborts when the session that made the znode may be over. */
  readonly lost: AbortSignal;
}

/**
 * Waits in a line until it is our turn. Goes through lost connections, and through lost sessions with a new znode at the
 * end of the line.
 *
 * @throws AbortedError, TimeoutError: we do not stand in the line any more
 */
export async function contend(client: Client, line: Line, options: CallOptions, about: About): Promise<Place> {
  const place = await stand(client, line, options, about, false);
  if (place === null) throw new Error('a contender that waits must get its turn');
  return place;
}

/** The same without waiting: null when it is not our turn. @throws what keeps us from leaving the line then */
export function tryContend(client: Client, line: Line, options: CallOptions, about: About): Promise<Place | null> {
  return stand(client, line, options, about, true);
}

async function stand(
  client: Client,
  line: Line,
  options: CallOptions,
  about: About,
  isTry: boolean,
): Promise<Place | null> {
  const budget = new Budget(options, client.surroundings, about);
  const view: View = { ahead: null };
  try {
    for (;;) {
      const place = await enter(client, line, budget);
      let turn: Turn = 'gone';
      let removed: Promise<Refusal> = Promise.resolve(null);
      try {
        turn = await awaitTurn(client, line, place, budget, about, isTry, view);
      } catch (error) {
        if (!isSessionOver(error, place)) throw error;
      } finally {
        if (turn !== 'ours') removed = removeZnode(client, place.path, place.stat.ephemeralOwner);
      }
      if (turn === 'ours') return place;
      if (turn === 'not-ours') {
        throwRefusal(await waitFor(client, removed, budget.next(), about));
        return null;
      }
    }
  } catch (error) {
    const obstacle = view.ahead === null ? undefined : `${joinPath(line.path, view.ahead)} stands before it`;
    throw asGivenUp(error, about, client, obstacle);
  }
}

/** What a contender has seen of its line, for the error should its caller give up. */
interface View {
  /** Whom it waits for. */
  ahead: string | null;
}

/** Makes the znode, and the one above it where it is missing. */
export async function enter(client: Client, line: Line, budget: Budget): Promise<Place> {
  let hasNoParent = false;
  for (;;) {
    let mark: string | null = null;
    let sessionId: bigint | undefined;
    try {
      if (hasNoParent) await ensureParent(client, line, budget);
      hasNoParent = false;
      mark = makeMark(line.layout, client.surroundings.random);
      sessionId = client.session?.id;
      const shape = { mode: 'ephemeral', sequential: true, acl: line.acl, mark } as const;
      const path = joinPath(line.path, line.marker);
      const own = await client.createProtected(path, line.data, { ...shape, ...budget.next() });
      const lost = client.lostSignal;
      warnIfHigh(line.path, sequenceOf(nameOf(own.path)) ?? 0, canMove(line) ? Remedy.itself : Remedy.byHand);
      if (!lost.aborted && client.session?.id === own.stat.ephemeralOwner) return { ...own, lost };
      void removeZnode(client, own.path, own.stat.ephemeralOwner);
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
      if (mark !== null && error.outcome === 'unknown') forget(client, line, mark, sessionId);
      if (mark !== null && error instanceof NoNodeError) hasNoParent = true;
      else if (error.code === 'SESSIONLOST' || error.code === 'SESSIONEXPIRED')
        await client.whenConnected(budget.next());
      else if (canRepeat(error)) await budget.pause(PAUSE_MS);
      else throw error;
    }
  }
}

/** Curator makes containers, which go when nobody is in the line any more; kazoo makes persistent znodes. */
async function ensureParent(client: Client, line: Line, budget: Budget): Promise<void> {
  const mode = line.parentMode ?? (line.layout === 'curator' ? 'container' : 'persistent');
  await client.ensurePath(line.path, { mode, acl: line.acl, ...budget.next() });
}

type Turn = 'ours' | 'not-ours' | 'gone';

async function awaitTurn(
  client: Client,
  line: Line,
  place: Place,
  budget: Budget,
  about: About,
  isTry: boolean,
  view: View,
): Promise<Turn> {
  const { lost } = place;
  const name = nameOf(place.path);
  for (;;) {
    try {
      const { children } = await client.children(line.path, budget.next());
      if (lost.aborted || !children.includes(name)) return 'gone';
      if (client.state === 'read-only') {
        // The lock cannot be held on a server without a quorum.
        await budget.pause(PAUSE_MS);
        continue;
      }
      const all = contendersOf(line, children);
      const exhausted = await findExhausted(client, line, all, place, budget);
      if (exhausted.hasNoNumber) {
        if (!canMove(line)) throw new SequenceExhaustedError(line.path);
        return isTry ? 'not-ours' : await afterLast(client, line, place, exhausted.last, budget, about);
      }
      const names = exhausted.names;
      const ahead = blockerOf(line, names, names.indexOf(name));
      view.ahead = ahead;
      if (ahead === null) return 'ours';
      if (isTry) return 'not-ours';
      // Not `exists`, which would leave a watch where nothing is any more.
      using blocking = await client.get(joinPath(line.path, ahead), { ...budget.next(), watch: true });
      // Before the listener: it throws when the caller has given up meanwhile, and nobody would take that off.
      const limits = budget.next();
      const session = whenAborted(lost);
      await waitFor(client, Promise.race([blocking.changed, session.aborted]), limits, about).finally(session.stop);
      if (lost.aborted) return 'gone';
    } catch (error) {
      // The one ahead is gone, or the whole line: the list will tell.
      if (error instanceof NoNodeError) {
        if (error.path === line.path) return 'gone';
        continue;
      }
      if (!(error instanceof ZooKeeperError) || !canRepeat(error)) throw error;
      await budget.pause(PAUSE_MS);
    }
  }
}

interface Exhausted {
  /** An Apache server has run out of numbers, and ours is none: others had it before us. */
  readonly hasNoNumber: boolean;
  /** Who got the last number, if it is still there. */
  readonly last: string | null;
  /** Those who stand in the line with a number of their own. */
  readonly names: readonly string[];
}

/**
 * Tells whether our number is one. When it has none left, an Apache server gives the last number again, or −2147483648 while
 * another change of the parent is under way. The order of creation then says who got it first.
 */
async function findExhausted(
  client: Client,
  line: Line,
  names: readonly string[],
  { path, stat }: Place,
  budget: Budget,
): Promise<Exhausted> {
  const name = nameOf(path);
  if (!names.includes(name)) return { hasNoNumber: true, last: names.at(-1) ?? null, names };
  if (sequenceOf(name) !== SEQUENCE_MAX) return { hasNoNumber: false, last: null, names };
  const younger = new Set<string>();
  for (const other of names) {
    if (other === name || sequenceOf(other) !== SEQUENCE_MAX) continue;
    const twin = await client.exists(joinPath(line.path, other), budget.next());
    if (twin !== null && twin.czxid < stat.czxid) return { hasNoNumber: true, last: other, names };
    // It finds the same, and leaves the line.
    younger.add(other);
  }
  return { hasNoNumber: false, last: null, names: names.filter((other) => !younger.has(other)) };
}

/** Leaves the line, waits for the one who has the last number, and makes the parent anew if nobody else stands there. */
async function afterLast(
  client: Client,
  line: Line,
  place: Place,
  last: string | null,
  budget: Budget,
  about: About,
): Promise<Turn> {
  await waitFor(client, removeZnode(client, place.path, place.stat.ephemeralOwner), budget.next(), about);
  if (last !== null) {
    using blocking = await client.get(joinPath(line.path, last), { ...budget.next(), watch: true });
    await waitFor(client, blocking.changed, budget.next(), about);
  }
  await renewParent(client, line.path, budget.next());
  return 'gone';
}

/** Deletes the parent if nobody stands in the line; its counter starts anew with the next one who comes. */
export async function renewParent(client: Client, path: string, options: CallOptions): Promise<void> {
  try {
    await client.delete(path, options);
  } catch (error) {
    // Somebody is there, or was quicker.
    if (!(error instanceof NotEmptyError) && !(error instanceof NoNodeError)) throw error;
  }
}

/** Removes a znode of which nobody knows whether it came to be. */
function forget(client: Client, line: Line, mark: string, sessionId: bigint | undefined): void {
  const sessionIds = new Set([sessionId, client.session?.id]);
  for (const id of sessionIds) if (id !== undefined) void removeMarked(client, line.path, mark, id);
}

export function isSessionOver(error: unknown, { lost }: Place): boolean {
  if (!(error instanceof ZooKeeperError) || IS_FINAL.has(error.code)) return false;
  return lost.aborted || error.code === 'SESSIONLOST' || error.code === 'SESSIONEXPIRED';
}

/** It passes by itself, and the caller has not given up. */
export function canRepeat(error: ZooKeeperError): boolean {
  return error.isRetryable && !IS_FINAL.has(error.code);
}

/** The same for what may as well be done in the next session. */
export function canBeginAnew(error: unknown): boolean {
  return error instanceof ZooKeeperError && (canRepeat(error) || isSessionEnd(error));
}

/**
 * Whatever request was under way when the caller gave up: nothing is held, and nobody waits.
 *
 * @param obstacle what was in the way as long as there was a connection
 */
export function asGivenUp(error: unknown, about: About, client: Client, obstacle?: string): unknown {
  if (error instanceof AbortedError) return new AbortedError({ ...about, outcome: 'not-applied', cause: error.cause });
  if (!(error instanceof TimeoutError)) return error;
  return new TimeoutError({ ...about, outcome: 'not-applied', detail: describeObstacle(client, obstacle) });
}

/** Why a wait was in vain: without a connection nobody knows of anything else. */
export function describeObstacle(client: Client, obstacle?: string): string | undefined {
  return client.state === 'connected' ? obstacle : `the client is ${client.state}`;
}

/** Ends of the caller's patience and of the client. */
const IS_FINAL: ReadonlySet<string> = new Set(['TIMEOUT', 'ABORTED', 'CLOSED', 'AUTHFAILED']);

/** Milliseconds between two tries of what a busy service refused. */
export const PAUSE_MS = 100;

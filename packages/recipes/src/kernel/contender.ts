import {
  type CallOptions,
  type Client,
  joinPath,
  NoNodeError,
  NotEmptyError,
  NotReadOnlyError,
  nameOf,
  retryClassOf,
} from '@meerkat/client';
import type { Attempt } from './attempt.ts';
import { isSessionEnd } from './failures.ts';
import { makeMark } from './layout.ts';
import { blockerOf, canMove, contendersOf, type Line } from './line.ts';
import { Remedy, SEQUENCE_MAX, SequenceExhaustedError, warnIfHigh } from './overflow.ts';
import { type OwnedZnode, standOwned } from './owned-znode.ts';
import { type Refusal, removeZnode, throwRefusal } from './removal.ts';
import { sequenceOf } from './sequence.ts';

/*
 * Waiting in a line, the part that locks, elections and queues have in common:
 *
 *     create   a protected ephemeral sequential znode
 *     list     the children of the line. If we are first, it is our turn
 *     watch    the contender directly ahead, and no other; then list again
 *
 * Why it is safe:
 *
 * 1. The list is read by the session that created the znode, so it is not older than the znode. A contender ahead of it
 *    was created before it, and a contender missing from the list is gone for good: a stale list delays us, but never
 *    lets us in.
 * 2. A znode counts as ours only while the session that created it does, without interruption since its creation. After
 *    `lost` it is abandoned, even if the same session comes back with it.
 * 3. However the wait ends, the znode is removed, retrying without a limit (`removal.ts`); also one whose creation is
 *    in doubt.
 */

/**
 * The result of waiting in a line: the value, 'gone' when our place is lost, or 'not-ours' when it would have to wait.
 */
export type Turn<T> = T | 'gone' | 'not-ours';

/**
 * Waits in a line until it is our turn. Survives lost connections, and session loss with a new znode at the end of the
 * line.
 *
 * @throws AbortedError, TimeoutError: we have left the line
 */
export async function contend(line: Line, attempt: Attempt): Promise<OwnedZnode> {
  for (;;) {
    const place = await enter(line, attempt);
    const turn = await keepPlace(place, attempt, () => awaitTurn(line, place, attempt));
    if (turn === 'ours') return place;
  }
}

/** The same without waiting: null when it is not our turn. @throws what prevents us from leaving the line then */
export async function tryContend(line: Line, attempt: Attempt): Promise<OwnedZnode | null> {
  for (;;) {
    const place = await enter(line, attempt);
    const turn = await keepPlace(place, attempt, async () => {
      const sight = await look(line, place, attempt);
      return sight.turn === 'later' || sight.turn === 'never' ? 'not-ours' : sight.turn;
    });
    if (turn !== 'gone') return turn === 'ours' ? place : null;
  }
}

/** Creates the znode, and its parent where that is missing. */
export async function enter(line: Line, attempt: Attempt): Promise<OwnedZnode> {
  const { path, layout, marker, data, acl } = line;
  const { random } = attempt.client.surroundings;
  const options = { data, acl, sequential: true, makeMark: () => makeMark(layout, random) };
  const place = await standOwned(attempt, joinPath(path, marker), options, (call) =>
    ensureParent(attempt.client, line, call),
  );
  warnIfHigh(path, sequenceOf(nameOf(place.path)) ?? 0, canMove(line) ? Remedy.itself : Remedy.byHand);
  return place;
}

/** Curator creates containers, which are deleted when the line is empty; kazoo creates persistent znodes. */
async function ensureParent(client: Client, line: Line, call: CallOptions): Promise<void> {
  const mode = line.parentMode ?? (line.layout === 'curator' ? 'container' : 'persistent');
  await client.ensurePath(line.path, { mode, acl: line.acl, ...call });
}

/**
 * Uses a place in a line, and leaves the line unless the result is a value.
 *
 * @returns the result; 'gone' also when it has failed because the session is over
 * @throws what prevents us from leaving the line when it is not our turn: others wait for us
 */
export async function keepPlace<T>(
  place: OwnedZnode,
  attempt: Attempt,
  stand: () => Promise<Turn<T>>,
  leave: () => Promise<Refusal> = () => removeZnode(attempt.client, place.path, place.stat.ephemeralOwner),
): Promise<Turn<T>> {
  let turn: Turn<T> = 'gone';
  let left: Promise<Refusal> = Promise.resolve(null);
  try {
    turn = await stand();
  } catch (error) {
    const isLost = place.lost.aborted || isSessionEnd(error);
    if (!isLost || retryClassOf(error) === 'over') throw error;
  } finally {
    if (turn === 'gone' || turn === 'not-ours') left = leave();
  }
  if (turn === 'not-ours') throwRefusal(await attempt.waitFor(left));
  return turn;
}

/* ------------------------------------------------------------------------------------------------- the turn ---- */

/** @returns 'gone' when our place is lost: the caller starts again at the end of the line */
async function awaitTurn(line: Line, place: OwnedZnode, attempt: Attempt): Promise<'ours' | 'gone'> {
  for (;;) {
    const sight = await look(line, place, attempt);
    if (sight.turn === 'later') {
      await awaitChange(line, place, sight, attempt);
    } else if (sight.turn === 'never') {
      await awaitEnd(line, place, sight.last, attempt);
      return 'gone';
    } else return sight.turn;
  }
}

/** A contender's view of its line. */
type Sight =
  | { readonly turn: 'ours' | 'gone' }
  /** The contender that we wait for, and the holder: names. */
  | { readonly turn: 'later'; readonly ahead: string; readonly holder: string }
  /**
   * An Apache server has run out of numbers, and ours is invalid. The contender with the last number, if it still
   * exists.
   */
  | { readonly turn: 'never'; readonly last: string | null };

/** One look, across transient failures. */
function look(line: Line, place: OwnedZnode, attempt: Attempt): Promise<Sight> {
  const { client } = attempt;
  const name = nameOf(place.path);
  return attempt.through(async (call) => {
    const children = await list(client, line.path, call);
    if (place.lost.aborted || !children.includes(name)) return { turn: 'gone' };
    // Nothing can be held on a server without a quorum.
    if (client.state === 'read-only') throw new NotReadOnlyError(attempt.about);
    const all = contendersOf(line, children);
    const rivals = await findRivals(line, place, all, attempt);
    if (rivals.older !== null || !all.includes(name)) {
      if (!canMove(line)) throw new SequenceExhaustedError(line.path);
      return { turn: 'never', last: rivals.older ?? all.at(-1) ?? null };
    }
    const names = all.filter((other) => !rivals.younger.has(other));
    const ahead = blockerOf(line, names, names.indexOf(name));
    return ahead === null ? { turn: 'ours' } : { turn: 'later', ahead, holder: names[0] ?? ahead };
  });
}

async function list(client: Client, path: string, call: CallOptions): Promise<readonly string[]> {
  try {
    return (await client.children(path, call)).children;
  } catch (error) {
    // The line does not exist.
    if (error instanceof NoNodeError) return [];
    throw error;
  }
}

/**
 * Contenders with our number. When none is left, an Apache server returns the last number again, or −2147483648 while
 * another change of the parent is in flight. The order of creation then shows which has it; the younger ones find the
 * same, and leave the line.
 */
async function findRivals(
  line: Line,
  { path, stat }: OwnedZnode,
  names: readonly string[],
  attempt: Attempt,
): Promise<{ readonly older: string | null; readonly younger: ReadonlySet<string> }> {
  const name = nameOf(path);
  const younger = new Set<string>();
  if (sequenceOf(name) !== SEQUENCE_MAX) return { older: null, younger };
  for (const other of names) {
    if (other === name || sequenceOf(other) !== SEQUENCE_MAX) continue;
    const twin = await attempt.client.exists(joinPath(line.path, other), attempt.next());
    if (twin !== null && twin.czxid < stat.czxid) return { older: other, younger };
    younger.add(other);
  }
  return { older: null, younger };
}

/** Watches the contender directly ahead, and no other. */
async function awaitChange(
  line: Line,
  place: OwnedZnode,
  { ahead, holder }: { readonly ahead: string; readonly holder: string },
  attempt: Attempt,
): Promise<void> {
  const path = joinPath(line.path, ahead);
  try {
    // Not `exists`, which would leave a watch on a znode that is gone.
    using blocking = await attempt.through((call) => attempt.client.get(path, { ...call, watch: true }));
    const session = `(session 0x${blocking.stat.ephemeralOwner.toString(16)})`;
    const { firstDoes = 'holds it' } = line;
    attempt.obstacle =
      ahead === holder
        ? `${path} ${session} ${firstDoes}`
        : `${joinPath(line.path, holder)} ${firstDoes}, and ${path} ${session} stands before us`;
    await attempt.any([blocking.changed], { lost: place.lost });
  } catch (error) {
    // It has left: the list will show.
    if (!(error instanceof NoNodeError)) throw error;
  }
}

/** Leaves the line, waits for the contender with the last number, and recreates the parent if the line is empty. */
async function awaitEnd(line: Line, place: OwnedZnode, last: string | null, attempt: Attempt): Promise<void> {
  await attempt.waitFor(removeZnode(attempt.client, place.path, place.stat.ephemeralOwner));
  if (last !== null) await awaitChange(line, place, { ahead: last, holder: last }, attempt);
  await attempt.through((call) => renewParent(attempt.client, line.path, call));
}

/** Deletes the parent if the line is empty; its counter starts again with the next contender. */
export async function renewParent(client: Client, path: string, options: CallOptions): Promise<void> {
  try {
    await client.delete(path, options);
  } catch (error) {
    // There is a contender, or another client was faster.
    if (!(error instanceof NotEmptyError) && !(error instanceof NoNodeError)) throw error;
  }
}

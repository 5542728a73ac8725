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
 * Standing in a line until it is one's turn, the recipe that locks, elections and queues have in common:
 *
 *     create   a protected ephemeral sequential znode
 *     list     the children of the line. No client before us: it is our turn
 *     watch    the one we wait for, and no other client; then list again
 *
 * What makes it safe:
 *
 * 1. The list is read by the session that made the znode, so it is not older than the znode. The client that stands before it was
 *    created before it, and the client that is missing in the list is gone for good: an old list delays us, and never lets us in.
 * 2. A znode counts as ours only while the session that made it does, from its creation on without a break. After `lost`
 *    it is given up, even if the same session comes back with it.
 * 3. Whatever ends the wait, the znode is removed, as long as it takes (`removal.ts`); also one of which we do not know
 *    whether it came to be.
 */

/** What standing in a line has come to: what it is for, or 'gone' with our place, or 'not-ours' when it would have to wait. */
export type Turn<T> = T | 'gone' | 'not-ours';

/**
 * Waits in a line until it is our turn. Goes through lost connections, and through lost sessions with a new znode at the
 * end of the line.
 *
 * @throws AbortedError, TimeoutError: we do not stand in the line any more
 */
export async function contend(line: Line, attempt: Attempt): Promise<OwnedZnode> {
  for (;;) {
    const place = await enter(line, attempt);
    const turn = await keepPlace(place, attempt, () => awaitTurn(line, place, attempt));
    if (turn === 'ours') return place;
  }
}

/** The same without waiting: null when it is not our turn. @throws what keeps us from leaving the line then */
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

/** Makes the znode, and the one above it where it is missing. */
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

/** Curator makes containers, which go when no client is in the line any more; kazoo makes persistent znodes. */
async function ensureParent(client: Client, line: Line, call: CallOptions): Promise<void> {
  const mode = line.parentMode ?? (line.layout === 'curator' ? 'container' : 'persistent');
  await client.ensurePath(line.path, { mode, acl: line.acl, ...call });
}

/**
 * Does what a place in a line is for. Unless that comes to something, the line is left.
 *
 * @returns what it has come to; 'gone' also when it has failed because the session is over
 * @throws what keeps us from leaving the line when it is not our turn: others wait for us
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

/** @returns 'gone' when our place is lost: it begins at the end of the line again */
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

/** What a contender sees of its line. */
type Sight =
  | { readonly turn: 'ours' | 'gone' }
  /** Whom we wait for, and who has what we wait for: names. */
  | { readonly turn: 'later'; readonly ahead: string; readonly holder: string }
  /** An Apache server has run out of numbers, and ours is none. Who got the last one, if it is still there. */
  | { readonly turn: 'never'; readonly last: string | null };

/** One look, through failures that pass. */
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
    // The whole line is gone.
    if (error instanceof NoNodeError) return [];
    throw error;
  }
}

/**
 * Others with our number. When it has none left, an Apache server gives the last number again, or −2147483648 while another
 * change of the parent is under way. The order of creation then says who got it first; the younger ones find the same, and
 * leave the line.
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

/** Waits for the one before us, and for no other client. */
async function awaitChange(
  line: Line,
  place: OwnedZnode,
  { ahead, holder }: { readonly ahead: string; readonly holder: string },
  attempt: Attempt,
): Promise<void> {
  const path = joinPath(line.path, ahead);
  try {
    // Not `exists`, which would leave a watch where nothing is any more.
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

/** Leaves the line, waits for the one who has the last number, and creates the parent again if no other client stands there. */
async function awaitEnd(line: Line, place: OwnedZnode, last: string | null, attempt: Attempt): Promise<void> {
  await attempt.waitFor(removeZnode(attempt.client, place.path, place.stat.ephemeralOwner));
  if (last !== null) await awaitChange(line, place, { ahead: last, holder: last }, attempt);
  await attempt.through((call) => renewParent(attempt.client, line.path, call));
}

/** Deletes the parent if no client stands in the line; its counter starts again with the next one who comes. */
export async function renewParent(client: Client, path: string, options: CallOptions): Promise<void> {
  try {
    await client.delete(path, options);
  } catch (error) {
    // A contender is there, or was faster.
    if (!(error instanceof NotEmptyError) && !(error instanceof NoNodeError)) throw error;
  }
}

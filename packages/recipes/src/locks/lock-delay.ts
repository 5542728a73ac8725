import {
  BadVersionError,
  type Client,
  NoNodeError,
  type Stat,
  TransactionError,
  text,
  type Znode,
} from '@meerkat/client';
import type { Attempt } from '../kernel/attempt.ts';
import type { Turn } from '../kernel/contender.ts';
import { Deadline } from '../kernel/deadline.ts';
import type { OwnedZnode } from '../kernel/owned-znode.ts';
import { persist, type Refusal, removeZnode } from '../kernel/removal.ts';
import { NO_MARGIN } from '../kernel/settings.ts';

/*
 * A lock whose holder died is not granted at once: work that it had in flight in other systems gets time to finish. The
 * znodes of the line cannot distinguish a death from a release, so the holder records it in the parent's data:
 *
 *     acquired  held 0x500000012      in the transaction that checks its own znode
 *     released  free                  in the transaction that deletes its own znode
 *     noticed   died 0x500000012      by the first client to notice that the holder is gone
 *
 * The next one reads it when it is its turn. `held` with a token other than its own means that a holder died. The delay
 * is counted from the moment at which that was noticed, by the clock of the servers, so that contenders that come and
 * go meanwhile share one delay.
 */

/**
 * Waits if the previous holder died, and records that we hold the lock.
 *
 * @param isTry does not wait
 * @returns 'gone' when our own znode is gone by now; 'not-ours' when it would have to wait
 */
export async function takeAfterDelay(
  attempt: Attempt,
  parent: string,
  place: OwnedZnode,
  delayMs: number,
  isTry: boolean,
): Promise<Turn<'ours'>> {
  const { client } = attempt;
  try {
    const { data, stat } = await readState(attempt, parent, place);
    const leftMs = data.startsWith(DIED) ? leftOfDelay(delayMs, stat, place) : 0;
    if (leftMs > 0 && isTry) return 'not-ours';
    if (leftMs > 0) await attempt.any([], { lost: place.lost, delayMs: leftMs });
    if (place.lost.aborted) return 'gone';
    const mark = markOf(place);
    await attempt.through((call) => client.transaction().check(place.path).set(parent, mark).commit(call));
    return new Deadline(client, NO_MARGIN).leftMs > 0 ? 'ours' : 'gone';
  } catch (error) {
    // Our znode, or the whole line.
    if ((error instanceof TransactionError ? error.cause : error) instanceof NoNodeError) return 'gone';
    throw error;
  }
}

/** The parent's data, after recording a death that was not noticed before. */
async function readState(attempt: Attempt, parent: string, place: OwnedZnode): Promise<Znode<string>> {
  const { client } = attempt;
  for (;;) {
    const state = await attempt.through((call) => client.get(parent, { ...call, codec: text }));
    const { data, stat } = state;
    // Our own mark: the reply to an earlier attempt was lost.
    if (!data.startsWith(HELD) || data === markOf(place)) return state;
    const died = `${DIED}${data.slice(HELD.length)}`;
    await attempt.through((call) =>
      client.set(parent, died, { version: stat.version, ...call }).catch(ignoreBadVersion),
    );
  }
}

/** Another client, gone by now, has noticed it, too. */
function ignoreBadVersion(error: unknown): void {
  if (!(error instanceof BadVersionError)) throw error;
}

/**
 * The rest of a delay, in milliseconds, for a contender. By the clock of the servers: a clock step makes the delay
 * longer or shorter by its amount.
 *
 * @param noticed the znode that records since when a client is known to have died
 */
export function leftOfDelay(delayMs: number, noticed: Stat, { stat }: OwnedZnode): number {
  // Of the present it is only known that it is later than our znode. A contender from before waits for the whole delay.
  const passedMs = stat.created.getTime() - noticed.modified.getTime();
  return delayMs - Math.max(0, passedMs);
}

/** Deletes the znode and records that no holder died. */
export async function releaseInOrder(client: Client, parent: string, path: string): Promise<void> {
  await client.transaction().delete(path).set(parent, FREE).commit();
}

/**
 * Leaves without having had the lock; if the data says already that we hold it, records that no holder died. Never
 * rejects.
 */
export async function leaveInOrder(client: Client, parent: string, place: OwnedZnode): Promise<Refusal> {
  const { path, stat } = place;
  await persist(client, stat.ephemeralOwner, async () => {
    const { data, stat: marked } = await client.get(parent, { read: 'linearizable', codec: text });
    if (data !== markOf(place)) return;
    await client.transaction().delete(path).set(parent, FREE, { version: marked.version }).commit();
  });
  return removeZnode(client, path, stat.ephemeralOwner);
}

function markOf({ stat }: OwnedZnode): string {
  return `${HELD}0x${stat.czxid.toString(16)}`;
}

const HELD = 'held ';
const DIED = 'died ';
const FREE = 'free';

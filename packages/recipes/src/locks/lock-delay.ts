import {
  BadVersionError,
  type Budget,
  type Client,
  NoNodeError,
  type Stat,
  TransactionError,
  text,
  ZooKeeperError,
} from '@meerkat/client';
import { Wait } from '../wait.ts';
import { canRepeat, PAUSE_MS, type Place } from './contender.ts';
import { persist, type Refusal, removeZnode } from './removal.ts';

/*
 * A lock whose holder died is not given away at once: what it had under way when it died, in other systems, gets time to
 * come to its end. The znodes of the line cannot tell a death from a release, so the holder says it in the parent's data:
 *
 *     taken     held 0x500000012      in the transaction that checks its own znode
 *     released  free                  in the transaction that deletes its own znode
 *     noticed   died 0x500000012      by whoever is the first to see that it holds no more
 *
 * The next one reads it when it is its turn. `held` with a token that is not its own: somebody died. The delay is counted from
 * the moment in which that was noticed, by the clock of the servers, so that all who come and go meanwhile wait for its end
 * together.
 */

/**
 * Waits if the one before us died, and says that we hold the lock.
 *
 * @param isTry does not wait
 * @returns false when our own znode is gone by now, or when it would have to wait
 */
export async function takeAfterDelay(
  client: Client,
  parent: string,
  place: Place,
  delayMs: number,
  budget: Budget,
  isTry: boolean,
): Promise<boolean> {
  const about = { operation: 'takeAfterDelay', path: parent };
  const mark = markOf(place);
  let hasWaited = false;
  for (;;) {
    try {
      const { data, stat } = await client.get(parent, { ...budget.next(), codec: text });
      // Our own mark: the answer to an earlier attempt was lost.
      if (data.startsWith(HELD) && data !== mark) {
        const died = `${DIED}${data.slice(HELD.length)}`;
        await client.set(parent, died, { version: stat.version, ...budget.next() });
        continue;
      }
      const leftMs = data.startsWith(DIED) && !hasWaited ? leftOfDelay(delayMs, stat, place) : 0;
      if (leftMs > 0) {
        if (isTry) return false;
        await new Wait(client, budget.next(), about).any([], { lost: place.lost, delayMs: leftMs });
        hasWaited = true;
      }
      if (place.lost.aborted) return false;
      await client.transaction().check(place.path).set(parent, mark).commit(budget.next());
      return true;
    } catch (error) {
      // Our znode, or the whole line.
      if ((error instanceof TransactionError ? error.cause : error) instanceof NoNodeError) return false;
      // Somebody who has left by now has noticed it, too.
      if (error instanceof BadVersionError) continue;
      if (!(error instanceof ZooKeeperError) || !canRepeat(error)) throw error;
      await budget.pause(PAUSE_MS);
    }
  }
}

/**
 * What is left of a delay, in milliseconds, for whoever stands in the line. By the clock of the servers: a step of it makes the
 * delay as much longer or shorter.
 *
 * @param noticed the znode that says since when somebody is known to have died
 */
export function leftOfDelay(delayMs: number, noticed: Stat, { stat }: Place): number {
  // The present is not known, but that it is later than our own znode. Who stood there before begins with the whole delay.
  const passedMs = stat.created.getTime() - noticed.modified.getTime();
  return delayMs - Math.max(0, passedMs);
}

/** Deletes the znode and says that nobody died. */
export async function releaseInOrder(client: Client, parent: string, path: string): Promise<void> {
  await client.transaction().delete(path).set(parent, FREE).commit();
}

/** Leaves without having had the lock; if it stands there already that we hold it, says that nobody died. Never rejects. */
export async function leaveInOrder(client: Client, parent: string, place: Place): Promise<Refusal> {
  const { path, stat } = place;
  await persist(client, stat.ephemeralOwner, async () => {
    const { data, stat: marked } = await client.get(parent, { read: 'linearizable', codec: text });
    if (data !== markOf(place)) return;
    await client.transaction().delete(path).set(parent, FREE, { version: marked.version }).commit();
  });
  return removeZnode(client, path, stat.ephemeralOwner);
}

function markOf({ stat }: Place): string {
  return `${HELD}0x${stat.czxid.toString(16)}`;
}

const HELD = 'held ';
const DIED = 'died ';
const FREE = 'free';

import { type Budget, type Client, text } from '@meerkat/client';
import type { Place } from './contender.ts';

/*
 * A lock whose holder died is not given away at once: what it had under way when it died, in other systems, gets time to
 * come to its end. The znodes of the line cannot tell a death from a release, so the holder says it in the parent's data:
 *
 *     taken     held 0x500000012      in the transaction that checks its own znode
 *     released  free                  in the transaction that deletes its own znode
 *
 * The next one reads it when it is its turn. `held` with a token that is not its own: somebody died.
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
  const { data } = await client.get(parent, { ...budget.next(), codec: text });
  if (data.startsWith(HELD)) {
    if (isTry) return false;
    await budget.pause(delayMs);
  }
  if (place.lost.aborted) return false;
  const mark = `${HELD}0x${place.stat.czxid.toString(16)}`;
  await client.transaction().check(place.path).set(parent, mark).commit(budget.next());
  return true;
}

/** Deletes the znode and says that nobody died. */
export async function releaseInOrder(client: Client, parent: string, path: string): Promise<void> {
  await client.transaction().delete(path).set(parent, FREE).commit();
}

const HELD = 'held ';
const FREE = 'free';

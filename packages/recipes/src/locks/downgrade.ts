import {
  Budget,
  type CallOptions,
  type Client,
  joinPath,
  NoNodeError,
  nameOf,
  type Stat,
  TransactionError,
  ZooKeeperError,
} from '@meerkat/client';
import { Deadline } from '../deadline.ts';
import { makeMark } from '../layout.ts';
import { withoutSequence } from '../sequence.ts';
import { isSessionEnd } from '../wait.ts';
import { canRepeat, PAUSE_MS } from './contender.ts';
import type { HoldingOptions } from './holding.ts';
import type { Line } from './line.ts';
import { type Lock, takePlace } from './lock.ts';
import { NotHeldError } from './not-held-error.ts';
import { removeZnode } from './removal.ts';

/*
 * The reader's znode gets the number of the writer's, and so its place in the line: whoever came after the writer comes
 * after the reader. It appears in the transaction that deletes the writer's.
 *
 *     _c_5b2f…-__WRIT__0000000007   ──►   _c_77aa…-__READ__0000000007
 *     _c_0d1e…-__WRIT__0000000008         _c_0d1e…-__WRIT__0000000008    waits on
 */

/** @throws NotHeldError; whatever it throws, nothing is held any more */
export async function downgrade(
  client: Client,
  readers: Line,
  lock: Lock,
  holding: HoldingOptions,
  options: CallOptions,
): Promise<Lock> {
  const budget = new Budget(options, client.surroundings, { operation: 'ReadWriteLock.downgrade', path: lock.path });
  const name = nameOf(lock.path);
  const number = name.slice(withoutSequence(name).length);
  const path = joinPath(readers.path, makeMark(readers.layout, client.surroundings.random) + readers.marker + number);
  const lost = client.lostSignal;
  if (!lock.isHeld || lost.aborted) throw over(lock);
  // From now on, and not from the answer on: others read before that comes, or write if we give up without it.
  lock.leave('it becomes a lock for reading');
  try {
    await move(client, readers, lock, path, budget);
    const stat = await look(client, path, budget);
    if (stat === null || lost.aborted || new Deadline(client).leftMs <= 0) throw over(lock);
    // Not the zxid of its own creation: those who wait behind it have smaller ones.
    return takePlace(client, readers, { path, stat, lost }, { ...holding, token: lock.token });
  } catch (error) {
    for (const each of [path, lock.path]) void removeZnode(client, each, lock.sessionId);
    throw isSessionEnd(error) ? over(lock, error) : error;
  }
}

async function move(client: Client, readers: Line, lock: Lock, path: string, budget: Budget): Promise<void> {
  for (;;) {
    try {
      const transaction = client.transaction().delete(lock.path);
      await transaction
        .create(path, readers.data, { mode: 'ephemeral', acl: readers.acl })
        .commit(budget.next('unknown'));
      return;
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
      const isPassing = canRepeat(error);
      if (!isPassing && !(error instanceof TransactionError)) throw error;
      // Perhaps it had happened before, and the answer was lost.
      if ((await look(client, path, budget)) !== null) return;
      if (!isPassing) throw error.cause instanceof NoNodeError ? over(lock, error) : error;
      await budget.pause(PAUSE_MS, 'unknown');
    }
  }
}

/** Asks as often as it takes, while the session is ours for certain. */
async function look(client: Client, path: string, budget: Budget): Promise<Stat | null> {
  for (;;) {
    try {
      return await client.exists(path, { ...budget.next('unknown'), read: 'linearizable' });
    } catch (error) {
      const isPassing = error instanceof ZooKeeperError && canRepeat(error);
      if (!isPassing || new Deadline(client).leftMs <= 0) throw error;
      await budget.pause(PAUSE_MS, 'unknown');
    }
  }
}

function over(lock: Lock, cause?: unknown): NotHeldError {
  return new NotHeldError(lock.path, lock.token, 'it cannot become a lock for reading', { cause });
}

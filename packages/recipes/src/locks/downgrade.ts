import {
  type CallOptions,
  type Client,
  joinPath,
  NoNodeError,
  nameOf,
  type Stat,
  TransactionError,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { Deadline } from '../kernel/deadline.ts';
import { isSessionEnd } from '../kernel/failures.ts';
import { makeMark } from '../kernel/layout.ts';
import type { Line } from '../kernel/line.ts';
import { NotHeldError } from '../kernel/not-held-error.ts';
import { removeZnode } from '../kernel/removal.ts';
import { withoutSequence } from '../kernel/sequence.ts';
import { NO_MARGIN } from '../kernel/settings.ts';
import { type Lock, takePlace } from './lock.ts';

/*
 * The reader's znode gets the number of the writer's, and so its place in the line: contenders after the writer come
 * after the reader. It is created in the transaction that deletes the writer's.
 *
 *     _c_5b2f…-__WRIT__0000000007   ──►   _c_77aa…-__READ__0000000007
 *     _c_0d1e…-__WRIT__0000000008         _c_0d1e…-__WRIT__0000000008    still waits
 */

/** @throws NotHeldError; whatever it throws, nothing is held afterwards */
export async function downgrade(client: Client, readers: Line, lock: Lock, options: CallOptions): Promise<Lock> {
  const about = { operation: 'ReadWriteLock.downgrade', path: lock.path };
  const limits = { acrossSessions: false, awaitsQuorum: true, isUnderWay: true };
  const attempt = new Attempt(client, options, about, limits);
  const name = nameOf(lock.path);
  const number = name.slice(withoutSequence(name).length);
  const path = joinPath(readers.path, makeMark(readers.layout, client.surroundings.random) + readers.marker + number);
  const lost = client.lostSignal;
  if (!lock.isHeld || lost.aborted) throw over(lock);
  // From now on, not from the reply on: before that, others may read, or write if this call is cancelled.
  lock.leave('it becomes a lock for reading');
  try {
    await attempt.run(() => move(readers, lock, path, attempt));
    const stat = await look(path, attempt);
    if (stat === null || lost.aborted || new Deadline(client, NO_MARGIN).leftMs <= 0) throw over(lock);
    // Not the zxid of its own creation: contenders behind it have smaller ones.
    return takePlace(client, readers, { path, stat, lost }, { token: lock.token });
  } catch (error) {
    for (const each of [path, lock.path]) void removeZnode(client, each, lock.sessionId);
    throw isSessionEnd(error) ? over(lock, error) : error;
  }
}

function move(readers: Line, lock: Lock, path: string, attempt: Attempt): Promise<void> {
  return attempt.through(async (call) => {
    try {
      const transaction = attempt.client.transaction().delete(lock.path);
      await transaction.create(path, readers.data, { mode: 'ephemeral', acl: readers.acl }).commit(call);
    } catch (error) {
      if (!attempt.passes(error) && !(error instanceof TransactionError)) throw error;
      // Perhaps it was applied before, and the reply was lost.
      if ((await look(path, attempt)) !== null) return;
      throw error instanceof TransactionError && error.cause instanceof NoNodeError ? over(lock, error) : error;
    }
  });
}

/** Retries while the session is certain. */
async function look(path: string, attempt: Attempt): Promise<Stat | null> {
  const { client } = attempt;
  for (;;) {
    try {
      return await client.exists(path, { ...attempt.next(), read: 'linearizable' });
    } catch (error) {
      if (new Deadline(client, NO_MARGIN).leftMs <= 0) throw error;
      await attempt.recover(error);
    }
  }
}

function over(lock: Lock, cause?: unknown): NotHeldError {
  return new NotHeldError(lock.path, lock.token, 'it cannot become a lock for reading', { cause });
}

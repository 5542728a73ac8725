import { nullableBytes } from '../codec/bytes.ts';
import { type Data, toBytes } from '../data.ts';
import { BadArgumentsError, BadVersionError, NoNodeError } from '../errors.ts';
import type { Stat } from '../machine/stat.ts';
import { asDoubtful } from '../make-error.ts';
import type { About, CallOptions } from '../requester.ts';
import { Budget, type Surroundings } from '../surroundings.ts';
import { ZooKeeperError } from '../zookeeper-error.ts';
import { ATTEMPTS_MAX, isDoubtfulLoss, isLoss } from './losses.ts';
import type { Operations } from './operations.ts';

export interface ExpectedVersionOptions extends CallOptions {
  /** The version that the znode must have; with "any" a retry would undo later writes of others. */
  readonly version: number;
}

/**
 * Sets data conditionally on a version and retries after lost connections: when a retry is refused because the version
 * has changed, the znode is read, and if it holds the same data under the next version, that was the earlier attempt.
 *
 * Two limits. Another client that sets the same data on the same version cannot be distinguished; for a counter, use
 * `update`. And when another client changes the znode after our own attempt, this rejects with a BadVersionError of
 * outcome 'unknown'.
 *
 * @example
 * const { stat } = await client.get('/config');
 * await client.setIdempotent('/config', 'on', { version: stat.version });
 */
export async function setIdempotent(
  operations: Operations,
  surroundings: Surroundings,
  path: string,
  data: Data,
  options: ExpectedVersionOptions,
): Promise<Stat> {
  const about = { operation: 'setIdempotent', path };
  const version = checkedExpectation(options.version, about);
  const budget = new Budget(options, surroundings, about);
  return await repeatOnLoss(
    about,
    (outcome) => operations.set(path, data, { ...budget.next(outcome), version }),
    async (error) => {
      if (!(error instanceof BadVersionError)) return undefined;
      const found = await operations.get(path, {
        ...budget.next('unknown'),
        read: 'linearizable',
        codec: nullableBytes,
      });
      const isOwn = isNextVersion(version, found.stat.version) && isSameData(toBytes(data), found.data);
      return isOwn ? found.stat : undefined;
    },
  );
}

/**
 * Deletes a znode conditionally on its version and retries after lost connections: when a retry finds the znode gone,
 * that was the earlier attempt.
 *
 * Two limits. A deletion by another client cannot be distinguished: the znode is gone, but perhaps not because of us.
 * And when another client recreates the znode after our own attempt it has version 0, and a retry that expects version
 * 0 deletes it.
 *
 * @example
 * await client.deleteIdempotent('/task-7', { version: stat.version });
 */
export async function deleteIdempotent(
  operations: Operations,
  surroundings: Surroundings,
  path: string,
  options: ExpectedVersionOptions,
): Promise<void> {
  const about = { operation: 'deleteIdempotent', path };
  const version = checkedExpectation(options.version, about);
  const budget = new Budget(options, surroundings, about);
  await repeatOnLoss(
    about,
    async (outcome) => {
      await operations.delete(path, { ...budget.next(outcome), version });
      return true;
    },
    async (error) => (error instanceof NoNodeError ? true : undefined),
  );
}

/**
 * Retries a write whose connection was lost.
 *
 * @param write gets whether an earlier attempt may have been applied
 * @param explain handles a refusal after such an attempt: the result, if it was that attempt; undefined if not
 */
async function repeatOnLoss<T>(
  about: About,
  write: (outcome: 'not-applied' | 'unknown') => Promise<T>,
  explain: (refusal: ZooKeeperError) => Promise<T | undefined>,
): Promise<T> {
  let isDoubtful = false;
  for (let attempt = 1; ; attempt++) {
    try {
      try {
        return await write(isDoubtful ? 'unknown' : 'not-applied');
      } catch (error) {
        if (!isDoubtful || !(error instanceof ZooKeeperError)) throw error;
        const result = await explain(error);
        if (result === undefined) throw error;
        return result;
      }
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
      isDoubtful ||= isDoubtfulLoss(error);
      if (isLoss(error) && attempt < ATTEMPTS_MAX) continue;
      throw isDoubtful ? asDoubtful(error, about) : error;
    }
  }
}

/**
 * Whether a znode of version `version` that was set once has version `next`: versions wrap around, and 3.10 skips −1.
 */
export function isNextVersion(version: number, next: number): boolean {
  return next === ((version + 1) | 0) || (version === -2 && next === 0);
}

/** No data is not the same as empty data. */
export function isSameData(a: Uint8Array | null, b: Uint8Array | null): boolean {
  if (a === null || b === null) return a === b;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function checkedExpectation(version: number, about: About): number {
  if (version === (version | 0) && version !== -1) return version;
  const detail = `version is needed, a whole number of 32 bits other than -1 (any), not ${version}`;
  throw new BadArgumentsError({ ...about, detail });
}

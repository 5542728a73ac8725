import { joinPath } from '@meerkat/protocol';
import { BadArgumentsError, NoNodeError, NotEmptyError } from '../errors.ts';
import type { CallOptions, ReadOptions } from '../requester.ts';
import { Budget, type Surroundings } from '../surroundings.ts';
import { forEachInFlight } from './in-flight.ts';
import { ATTEMPTS_MAX, isDoubtfulLoss, isLoss } from './losses.ts';
import type { Operations } from './operations.ts';

export interface DeleteRecursiveOptions extends CallOptions {
  /**
   * Called with the progress: when all znodes are found, before the first one is deleted, and after each deleted one.
   */
  readonly onProgress?: ((progress: DeleteProgress) => void) | undefined;
}

export interface DeleteProgress {
  /** Znodes deleted so far, by the replies: more may be gone while requests are in flight. */
  readonly deleted: number;
  /** Znodes found so far, including deleted ones. */
  readonly found: number;
}

/**
 * Deletes a znode and everything below it, children before parents, many requests in flight. Children created while it
 * runs are deleted too; if they are created faster than that, it rejects with a NotEmptyError.
 *
 * Not atomic: other clients see partial results, and when it ends early (for instance aborted) a part is left.
 * Deletions by other clients are not counted.
 *
 * @returns the number of znodes that it deleted
 *
 * @example
 * const count = await client.deleteRecursive('/jobs/old', { signal: AbortSignal.timeout(60_000) });
 */
export async function deleteRecursive(
  operations: Operations,
  surroundings: Surroundings,
  path: string,
  absolute: string,
  options: DeleteRecursiveOptions = {},
): Promise<number> {
  const about = { operation: 'deleteRecursive', path };
  if (path === '/' || PROTECTED.has(absolute)) {
    const detail = 'the root and the system znodes are not deleted; name the znodes below the root one by one';
    throw new BadArgumentsError({ ...about, detail });
  }
  const deletion = new Deletion(operations, new Budget(options, surroundings, about), options.onProgress);
  return await deletion.run(path);
}

/** The service refuses to delete these, but not what is below them. */
const PROTECTED: ReadonlySet<string> = new Set(['/', '/zookeeper', '/zookeeper/config', '/zookeeper/quota']);

class Deletion {
  readonly #operations: Operations;
  readonly #budget: Budget;
  readonly #onProgress: ((progress: DeleteProgress) => void) | undefined;
  #deleted = 0;
  /** A deletion was sent: it may have been applied, with or without a reply. */
  #hasSent = false;
  /** Znodes that are deleted, or to be deleted in this pass. */
  #found = 0;

  constructor(operations: Operations, budget: Budget, onProgress: ((progress: DeleteProgress) => void) | undefined) {
    this.#operations = operations;
    this.#budget = budget;
    this.#onProgress = onProgress;
  }

  async run(path: string): Promise<number> {
    for (let pass = 1; ; pass++) {
      const paths = await this.#findAll(path, pass);
      if (paths.length === 0) return this.#deleted;
      this.#found = this.#deleted + paths.length;
      this.#reportProgress();
      const refusal = await this.#deleteAll(paths);
      if (refusal === null) return this.#deleted;
      if (pass >= ATTEMPTS_MAX) throw refusal;
    }
  }

  /** Parents before their children. Empty when the znode is gone after it existed. */
  async #findAll(root: string, pass: number): Promise<readonly string[]> {
    const found: string[] = [root];
    let level: readonly string[] = found.slice();
    while (level.length > 0) {
      const next: string[] = [];
      await forEachInFlight(level, READS_MAX, async (path) => {
        // One sync, before all other reads, makes changes visible that the previous pass ran into.
        const read = path === root && pass > 1 ? ('linearizable' as const) : undefined;
        const names = await this.#childrenOf(path, { ...this.#next(), read }, pass === 1 && path === root);
        if (names === null) {
          if (path === root) found.length = 0;
          return;
        }
        for (const name of names) next.push(joinPath(path, name));
      });
      for (const path of next) found.push(path);
      level = next;
    }
    return found;
  }

  /** null when it is gone. */
  async #childrenOf(path: string, options: ReadOptions, mustExist: boolean): Promise<readonly string[] | null> {
    try {
      return (await this.#operations.children(path, options)).children;
    } catch (error) {
      if (error instanceof NoNodeError && !mustExist) return null;
      throw error;
    }
  }

  /** @returns the refusal of a znode that has children again; null when all are gone */
  async #deleteAll(paths: readonly string[]): Promise<NotEmptyError | null> {
    let refusal: NotEmptyError | null = null;
    // The requests of a session are applied in order: a parent may be sent before the replies for its children.
    await forEachInFlight(paths.toReversed(), DELETES_MAX, async (path) => {
      try {
        await this.#delete(path);
      } catch (error) {
        if (!(error instanceof NotEmptyError)) throw error;
        refusal = error;
      }
    });
    return refusal;
  }

  async #delete(path: string): Promise<void> {
    let isDoubtful = false;
    for (let attempt = 1; ; attempt++) {
      try {
        const options = this.#next();
        this.#hasSent = true;
        await this.#operations.delete(path, options);
        break;
      } catch (error) {
        if (error instanceof NoNodeError) {
          // Another client has deleted it, or an earlier attempt of ours.
          if (!isDoubtful) return;
          break;
        }
        if (!isLoss(error) || attempt >= ATTEMPTS_MAX) throw error;
        isDoubtful ||= isDoubtfulLoss(error);
      }
    }
    this.#deleted++;
    this.#reportProgress();
  }

  #reportProgress(): void {
    this.#onProgress?.({ deleted: this.#deleted, found: this.#found });
  }

  #next(): CallOptions {
    return this.#budget.next(this.#hasSent ? 'unknown' : 'not-applied');
  }
}

/** Maximum of requests in flight: enough to keep a server busy, few enough to leave room for others of the session. */
const READS_MAX = 64;
const DELETES_MAX = 128;

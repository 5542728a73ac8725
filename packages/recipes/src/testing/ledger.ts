import { isZooKeeperError, type ZooKeeperError } from '@meerkat/client';
import { expect } from 'vitest';

/**
 * What was said of each write, by an id that no other write has, so that it can be compared with what the servers have
 * committed.
 */
export class Ledger<Id> {
  readonly done = new Set<Id>();
  /** Of outcome 'unknown'. */
  readonly unknown = new Set<Id>();
  /** Of outcome 'not-applied', or reported as not done. */
  readonly undone = new Set<Id>();

  /** Notes how a write ends. @returns its result, or its error */
  async note<T>(id: Id, write: Promise<T>): Promise<T | ZooKeeperError> {
    try {
      const result = await write;
      (result === false ? this.undone : this.done).add(id);
      return result;
    } catch (error) {
      if (!isZooKeeperError(error)) throw error;
      (error.outcome === 'unknown' ? this.unknown : this.undone).add(id);
      return error;
    }
  }

  /**
   * What is done was written once, what is unknown once at most, what is not done never.
   *
   * @param written the ids as they were committed
   */
  check(written: readonly Id[]): void {
    const times = new Map<Id, number>();
    for (const id of written) times.set(id, (times.get(id) ?? 0) + 1);
    for (const [id, count] of times) {
      expect(count, `times that ${id} was written`).toBe(1);
      expect(this.done.has(id) || this.unknown.has(id), `${id} was written, and is said not to be`).toBe(true);
    }
    for (const id of this.done) expect(times.has(id), `${id} was done, and not written`).toBe(true);
    expect(this.done.size).toBeGreaterThan(0);
  }
}

import { isZooKeeperError, type ZooKeeperError } from '@meerkat/client';
import { expect } from 'vitest';

/**
 * The reported outcome of each write, by a unique id, for comparison with the committed history.
 */
export class Ledger<Id> {
  readonly done = new Set<Id>();
  /** Of outcome 'unknown'. */
  readonly unknown = new Set<Id>();
  /** Of outcome 'not-applied', or reported as not applied. */
  readonly undone = new Set<Id>();

  /** Records how a write ends. @returns its result, or its error */
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
   * Checks that successful writes were applied once, unknown ones at most once, others never.
   *
   * @param written the committed ids
   */
  check(written: readonly Id[]): void {
    const times = new Map<Id, number>();
    for (const id of written) times.set(id, (times.get(id) ?? 0) + 1);
    for (const [id, count] of times) {
      expect(count, `times that ${id} was written`).toBe(1);
      expect(this.done.has(id) || this.unknown.has(id), `${id} was written, but reported as not applied`).toBe(true);
    }
    for (const id of this.done) expect(times.has(id), `${id} was done, and not written`).toBe(true);
    expect(this.done.size).toBeGreaterThan(0);
  }
}

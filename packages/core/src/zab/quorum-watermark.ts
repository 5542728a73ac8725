/**
 * Progress of a quorum: for each voter the highest value that it has acknowledged, and the highest value that a quorum
 * of every configuration has reached.
 *
 *     voter         3    1    2            by descending value
 *     value         7    5    4
 *     quorum?       no   yes               {3, 1} is a quorum, so a quorum has reached 5
 *
 * Acknowledgements are cumulative, so a voter needs one number however many txns are outstanding, and an
 * acknowledgement allocates nothing: whether a set of voters is a quorum is computed once per set and cached.
 */
import { assert } from '../base/assert.ts';
import type { Electorate } from '../election/electorate.ts';

/** "Nothing yet". Less than every zxid and every round number. */
const NOTHING = -1;
/** Bits of a set that fit into an exact number. */
const VOTERS_MAX = 53;

export class QuorumWatermark<T extends number> {
  readonly #electorate: Electorate;
  #ids: readonly number[] = [];
  #values: (T | typeof NOTHING)[] = [];
  /** Indices of the voters, highest value first; kept between calls, so that there is little to sort. */
  #order: number[] = [];
  /** Cached results, by the set of voters as a sum of 2**index. */
  readonly #quorumCache = new Map<number, boolean>();
  /** Version of the electorate that `#ids` was copied from. */
  #changes: number;

  constructor(electorate: Electorate) {
    this.#electorate = electorate;
    this.#changes = electorate.changes;
    this.#takeVoters();
  }

  /** A voter has reached `value`. Lower values and servers that do not vote are ignored. */
  raise(id: number, value: T): void {
    this.#maybeTakeVoters();
    const index = this.#ids.indexOf(id);
    if (index >= 0 && value > this.#values[index]!) this.#values[index] = value;
  }

  /** The voter no longer counts. */
  forget(id: number): void {
    this.#maybeTakeVoters();
    const index = this.#ids.indexOf(id);
    if (index >= 0) this.#values[index] = NOTHING;
  }

  /** The highest value that a quorum has reached; −1 when there is none. */
  get reached(): number {
    this.#maybeTakeVoters();
    this.#sort();
    let set = 0;
    for (const index of this.#order) {
      const value = this.#values[index]!;
      if (value === NOTHING) return NOTHING;
      set += 2 ** index;
      if (this.#isQuorum(set)) return value;
    }
    return NOTHING;
  }

  #maybeTakeVoters(): void {
    if (this.#changes === this.#electorate.changes) return;
    this.#changes = this.#electorate.changes;
    this.#takeVoters();
  }

  /** Servers that remain voters keep their values; those of removed voters no longer count. */
  #takeVoters(): void {
    const known = new Map(this.#ids.map((id, index) => [id, this.#values[index]!]));
    this.#ids = [...this.#electorate.voters];
    assert(this.#ids.length <= VOTERS_MAX, `an ensemble has at most ${VOTERS_MAX} voters`);
    this.#values = this.#ids.map((id) => known.get(id) ?? NOTHING);
    this.#order = this.#ids.map((_, index) => index);
    this.#quorumCache.clear();
  }

  /** Insertion sort: the order of the last time is nearly right. */
  #sort(): void {
    const order = this.#order;
    const values = this.#values;
    for (let i = 1; i < order.length; i++) {
      const index = order[i]!;
      let at = i;
      for (; at > 0 && values[order[at - 1]!]! < values[index]!; at--) order[at] = order[at - 1]!;
      order[at] = index;
    }
  }

  #isQuorum(set: number): boolean {
    const known = this.#quorumCache.get(set);
    if (known !== undefined) return known;
    const ids = this.#ids.filter((_, index) => Math.floor(set / 2 ** index) % 2 === 1);
    const verdict = this.#electorate.isQuorum(ids);
    this.#quorumCache.set(set, verdict);
    return verdict;
  }
}

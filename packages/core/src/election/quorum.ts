/**
 * Quorum arithmetic: which sets of servers can decide. Any two quorums of one configuration have a server in common,
 * which is all that the rest of the protocol relies on.
 *
 * Without groups a quorum is more than half of the voters (QuorumMaj). With groups (QuorumHierarchical) it is more than
 * half of the groups, each of them won by more than half of its weight:
 *
 *     group.1=1:2:3      {1,2} wins group 1 ┐
 *     group.2=4:5:6      {5,6} wins group 2 ├─► {1,2,5,6} is a quorum; so is {1,3,4,6,7}; {1,2,3,4} is not
 *     group.3=7:8:9      group 3 is not won ┘
 *
 * A server of weight 0 votes without effect and can never lead; a group whose servers all weigh 0 is not counted.
 */
import { assert } from '../base/assert.ts';

export interface Quorum {
  /** The servers that vote; observers are not included. */
  readonly voters: ReadonlySet<number>;
  /** Weight of a voter, ≥ 0; 0 for all other ids. */
  weightOf(id: number): number;
  /** True when these servers form a quorum; ids that are not voters are ignored. */
  isReachedBy(ids: Iterable<number>): boolean;
}

/** What a configuration says about quorums. */
export interface QuorumShape {
  readonly voters: readonly number[];
  /** Members of each group (`group.<g>`); empty for a plain majority. */
  readonly groups?: readonly (readonly number[])[];
  /** Weights other than 1 (`weight.<id>`); they count within groups only. */
  readonly weights?: ReadonlyMap<number, number>;
}

/** Describes what is wrong with a configuration, for the person who wrote it; null when nothing is. */
export function findQuorumProblem({ voters, groups = [], weights = new Map() }: QuorumShape): string | null {
  const known = new Set(voters);
  if (known.size === 0) return 'there is no voter';
  if (known.size < voters.length) return 'a voter is listed twice';
  for (const [id, weight] of weights) {
    if (!Number.isSafeInteger(weight) || weight < 0) return `weight.${id} is ${weight}: it must be a whole number ≥ 0`;
  }
  if (groups.length === 0) return weights.size > 0 ? 'weights need groups (group.1=1:2:3)' : null;

  const grouped = new Set<number>();
  for (const id of groups.flat()) {
    if (!known.has(id)) return `server ${id} is in a group but is no voter`;
    if (grouped.has(id)) return `server ${id} is in more than one group`;
    grouped.add(id);
  }
  const ungrouped = voters.find((id) => !grouped.has(id));
  if (ungrouped !== undefined) return `server ${ungrouped} is in no group`;
  return voters.some((id) => (weights.get(id) ?? 1) > 0)
    ? null
    : 'every server has the weight 0: there can be no leader';
}

/** @param shape a shape for which `findQuorumProblem` returns null */
export function makeQuorum(shape: QuorumShape): Quorum {
  const problem = findQuorumProblem(shape);
  assert(problem === null, `the configuration has quorums, but ${problem}`);
  return shape.groups === undefined || shape.groups.length === 0
    ? new Majority(shape.voters)
    : new GroupMajority(shape.groups, shape.weights ?? new Map());
}

class Majority implements Quorum {
  readonly voters: ReadonlySet<number>;

  constructor(voters: readonly number[]) {
    this.voters = new Set(voters);
  }

  weightOf(id: number): number {
    return this.voters.has(id) ? 1 : 0;
  }

  isReachedBy(ids: Iterable<number>): boolean {
    const counted = new Set<number>();
    for (const id of ids) if (this.voters.has(id)) counted.add(id);
    return counted.size > this.voters.size / 2;
  }
}

class GroupMajority implements Quorum {
  readonly voters: ReadonlySet<number>;
  readonly #groupOf = new Map<number, number>();
  readonly #weights: ReadonlyMap<number, number>;
  readonly #groupWeights: readonly number[];
  /** Number of groups with non-zero weight. */
  readonly #groups: number;

  constructor(groups: readonly (readonly number[])[], weights: ReadonlyMap<number, number>) {
    for (const [group, members] of groups.entries()) for (const id of members) this.#groupOf.set(id, group);
    this.voters = new Set(this.#groupOf.keys());
    this.#weights = weights;
    this.#groupWeights = groups.map((members) => members.reduce((sum, id) => sum + this.weightOf(id), 0));
    this.#groups = this.#groupWeights.filter((weight) => weight > 0).length;
  }

  weightOf(id: number): number {
    return this.voters.has(id) ? (this.#weights.get(id) ?? 1) : 0;
  }

  isReachedBy(ids: Iterable<number>): boolean {
    const counted: number[] = this.#groupWeights.map(() => 0);
    for (const id of new Set(ids)) {
      const group = this.#groupOf.get(id);
      if (group !== undefined) counted[group]! += this.weightOf(id);
    }
    const won = counted.filter((weight, group) => weight > this.#groupWeights[group]! / 2).length;
    return won > this.#groups / 2;
  }
}

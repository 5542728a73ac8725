import type { Hierarchy } from '@meerkat/protocol';

/**
 * Whether a majority of the voters is among `ids`, or with groups: in most of the groups that weigh anything voters with
 * most of the group's weight. Others do not count, and nobody twice.
 *
 * Written without a look at the servers' own arithmetic, which it judges.
 */
export function isQuorum(voters: readonly number[], hierarchy: Hierarchy | null, ids: Iterable<number>): boolean {
  const present = new Set(ids);
  if (hierarchy === null) return voters.filter((voter) => present.has(voter)).length * 2 > voters.length;
  let groups = 0;
  let won = 0;
  for (const members of hierarchy.groups.values()) {
    let weight = 0;
    let weightPresent = 0;
    for (const id of members.filter((member) => voters.includes(member))) {
      const own = hierarchy.weights.get(id) ?? 1;
      weight += own;
      if (present.has(id)) weightPresent += own;
    }
    if (weight > 0) groups++;
    if (weightPresent * 2 > weight) won++;
  }
  return won * 2 > groups;
}

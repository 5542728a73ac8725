import type { Hierarchy } from '@meerkat/protocol';

/**
 * Whether a majority of the voters is among `ids`; with groups: in most of the groups with a positive weight, voters with
 * most of the group's weight. Other ids do not count, and none counts twice.
 *
 * Independent of the servers' own arithmetic, which it checks.
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

import type { Hierarchy } from '@meerkat/protocol';
import type { SeededRandom } from './seeded-random.ts';

/** Participants 1, 2, … dealt out to groups like cards, each with the weight 1. */
export function makeGroups(servers: number, groups: number): Hierarchy {
  return hierarchyOf(
    servers,
    (serverId) => ((serverId - 1) % groups) + 1,
    () => 1,
  );
}

/** One or more groups of any size, with weights from 0 to 3, at least one of them positive. */
export function drawHierarchy(random: SeededRandom, servers: number): Hierarchy {
  const groups = random.between(1, Math.min(3, servers));
  const hasWeights = random.chance(0.5);
  const elect = random.between(1, servers);
  return hierarchyOf(
    servers,
    () => random.between(1, groups),
    (serverId) => (!hasWeights ? 1 : random.between(serverId === elect ? 1 : 0, 3)),
  );
}

function hierarchyOf(
  servers: number,
  groupOf: (serverId: number) => number,
  weightOf: (serverId: number) => number,
): Hierarchy {
  const groups: Map<number, number[]> = new Map();
  const weights: Map<number, number> = new Map();
  for (let serverId = 1; serverId <= servers; serverId++) {
    const group = groupOf(serverId);
    groups.set(group, [...(groups.get(group) ?? []), serverId]);
    weights.set(serverId, weightOf(serverId));
  }
  return { groups, weights };
}

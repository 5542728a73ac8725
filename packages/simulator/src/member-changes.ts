import type { Member } from '@meerkat/protocol';
import { formatMember } from '@meerkat/protocol';
import type { SeededRandom } from './seeded-random.ts';
import { makeMembership, type VirtualEnsemble } from './virtual-ensemble.ts';
import type { VirtualWorld } from './virtual-world.ts';

/** Virtual milliseconds after which an operator stops waiting; another one may have started by then. */
const PATIENCE_MS = 3000;
/** Members are only removed while there are more than this many. */
const PARTICIPANTS_MIN = 2;

/**
 * An operator requests another membership: one server joins, one leaves, or both. The leader decides whether that is
 * possible; the reply may be lost.
 */
export async function changeMembers(
  world: VirtualWorld,
  ensemble: VirtualEnsemble,
  random: SeededRandom,
): Promise<void> {
  const { members } = ensemble.membershipNow;
  const ids = members.map(({ serverId }) => serverId);
  const { servers } = ensemble;
  const outside = servers.filter(({ serverId }) => !ids.includes(serverId)).map(({ serverId }) => serverId);
  const leading = ensemble.leader?.serverId;
  const mayGo = members.length > PARTICIPANTS_MIN ? ids : [];
  const goes = random.chance(0.4) && leading !== undefined && mayGo.includes(leading) ? leading : pick(random, mayGo);
  const comes = pick(random, outside);
  const isGoing = goes !== null && (comes === null || random.chance(0.6));
  const isComing = comes !== null && (!isGoing || random.chance(0.4));
  const change = {
    ...(isGoing ? { leaving: [goes] } : {}),
    ...(isComing ? { joining: [formatMember(lineOf(ensemble, comes))] } : {}),
  };
  if (!isGoing && !isComing) return;
  world.record('operator', `changes the members: ${JSON.stringify(change)}`);
  const client = await world
    .connect(`operator-${random.between(1, 3)}`, {
      auth: [{ scheme: 'digest', auth: 'super:super' }],
      servers: ensemble.connectString,
      sessionTimeoutMs: 2000,
      connectTimeoutMs: PATIENCE_MS,
    })
    .catch(() => null);
  if (client === null) return;
  await client.reconfig({ ...change, timeoutMs: PATIENCE_MS }).then(
    ({ stat }) => world.record('operator', `the members are changed: version ${stat.mzxid.toString(16)}`),
    (error: Error) => world.record('operator', `the members are not changed, or it is not known: ${error.message}`),
  );
  await client.close().catch(() => {});
}

function lineOf({ servers, membership }: VirtualEnsemble, id: number): Member {
  const addresses = membership.members[0]!.addresses.length;
  return makeMembership(servers.length, { addresses }).members.find(({ serverId }) => serverId === id)!;
}

function pick(random: SeededRandom, ids: readonly number[]): number | null {
  return ids.length === 0 ? null : random.pick(ids);
}

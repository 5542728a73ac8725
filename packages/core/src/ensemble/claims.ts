import { type LearnerPacket, PacketType } from '@meerkat/protocol';
import type { ByteStream } from '../base/ports.ts';
import type { Members } from './members.ts';

/** Why a learner is not let in as the server that it says it is; null of everything else that it says. */
export function findRefusalOfClaim(
  { certifiedHosts }: ByteStream,
  packet: LearnerPacket,
  members: Pick<Members, 'refusalOfClaim'>,
): string | null {
  if (certifiedHosts === undefined || certifiedHosts === null) return null;
  if (packet.type !== PacketType.followerInfo && packet.type !== PacketType.observerInfo) return null;
  return packet.serverId === null ? null : members.refusalOfClaim(packet.serverId, certifiedHosts);
}

import { type LearnerPacket, PacketType } from '@meerkat/protocol';
import type { ByteStream } from '../base/ports.ts';
import type { Members } from './members.ts';

/** Why a learner may not use the server id that it claims; null if it may, and for packets that claim none. */
export function findRefusalOfClaim(
  { certifiedHosts }: ByteStream,
  packet: LearnerPacket,
  members: Pick<Members, 'refusalOfClaim'>,
): string | null {
  if (certifiedHosts === undefined || certifiedHosts === null) return null;
  if (packet.type !== PacketType.followerInfo && packet.type !== PacketType.observerInfo) return null;
  return packet.serverId === null ? null : members.refusalOfClaim(packet.serverId, certifiedHosts);
}

import { type LeaderPacket, type LearnerPacket, PacketType } from '@meerkat/protocol';

/** The name that the packet has in the catalogue. */
export function nameOf(packet: LeaderPacket | LearnerPacket): string {
  if (packet.type === null) return `a packet of type ${packet.typeNumber}`;
  const [name = ''] = Object.entries(PacketType).find(([, type]) => type === packet.type) ?? [];
  return name.toUpperCase();
}

import { type LeaderPacket, type LearnerPacket, PacketType } from '@meerkat/protocol';

/** The name of the packet in the catalogue. */
export function nameOf(packet: LeaderPacket | LearnerPacket): string {
  if (packet.type === null) return `a packet of type ${packet.typeNumber}`;
  const [name = ''] = Object.entries(PacketType).find(([, type]) => type === packet.type) ?? [];
  return name.toUpperCase();
}

import {
  Announcement,
  announcedLease,
  type LearnerInfoPacket,
  makeZxid,
  PacketType,
  QUORUM_PROTOCOL_VERSION,
} from '@meerkat/protocol';
import type { LearnerOptions } from './learner-host.ts';

/** Announced by every learner. */
const ANNOUNCES = Announcement.keepsLog + Announcement.refusesOlderEpochs;

/** The first packet of a learner: its server id, and the epoch that it has accepted. */
export function learnerInfo(options: LearnerOptions, acceptedEpoch: number): LearnerInfoPacket {
  const { kind, serverId, configVersion, leaseMs } = options;
  const isFollower = kind === 'follower';
  return {
    type: isFollower ? PacketType.followerInfo : PacketType.observerInfo,
    zxid: makeZxid(acceptedEpoch, 0),
    serverId,
    protocolVersion: QUORUM_PROTOCOL_VERSION,
    configVersion,
    announces: ANNOUNCES + (isFollower ? Announcement.takesHandOver : 0) + announcedLease(leaseMs),
  };
}

/**
 * The packets of a leader that neither carry nor commit a txn, and the phases in which each is valid. A leader that
 * sends one in another phase disagrees with the learner about its state, so the learner closes the connection.
 */
import {
  counterOf,
  epochOf,
  hexZxid,
  type LeaderPacket,
  makeZxid,
  PacketType,
  QUORUM_PROTOCOL_VERSION,
  type Zxid,
} from '@meerkat/protocol';
import { EPOCHS_FAR } from '../election/plausible.ts';
import { isUpToDate, type LearnerPhase } from './learner-phase.ts';

export type ControlPacket = Extract<
  LeaderPacket,
  {
    readonly type:
      | typeof PacketType.leaderInfo
      | typeof PacketType.diff
      | typeof PacketType.trunc
      | typeof PacketType.snap
      | typeof PacketType.newLeader
      | typeof PacketType.upToDate
      | typeof PacketType.sync
      | typeof PacketType.revalidate
      | typeof PacketType.handOver;
  }
>;

export interface LearnerPosition {
  readonly phase: LearnerPhase;
  /** The leader's, once LEADERINFO has come. */
  readonly epoch: number;
  /** The earliest epoch whose leader this server may follow. */
  readonly epochMin: number;
  /** The latest epoch known before LEADERINFO: this server's own, or one confirmed by a quorum. */
  readonly epochKnown: number;
  /** Last of the log when the role began. */
  readonly lastZxid: Zxid;
}

/** @returns why the packet is invalid, human-readable; null when it is valid */
export function faultOf(packet: ControlPacket, position: LearnerPosition): string | null {
  const { phase, epoch, lastZxid } = position;
  switch (packet.type) {
    case PacketType.leaderInfo: {
      const { zxid, protocolVersion } = packet;
      if (phase !== 'discovery') return outOfTurn('LEADERINFO', phase);
      if (protocolVersion < QUORUM_PROTOCOL_VERSION) return `the leader speaks the old protocol ${protocolVersion}`;
      if (zxid < 0 || counterOf(zxid) !== 0)
        return `the leader has sent LEADERINFO of ${hexZxid(zxid)}, which is no epoch`;
      return faultOfEpoch(epochOf(zxid), position);
    }
    case PacketType.diff:
      return phase === 'choosing' ? null : outOfTurn('DIFF', phase);
    case PacketType.trunc:
      if (phase !== 'choosing') return outOfTurn('TRUNC', phase);
      if (packet.zxid >= 0 && packet.zxid <= lastZxid) return null;
      return `the leader has sent TRUNC to ${hexZxid(packet.zxid)}, but the log ends with ${hexZxid(lastZxid)}`;
    case PacketType.snap:
      if (phase !== 'choosing') return outOfTurn('SNAP', phase);
      if (packet.zxid >= 0 && epochOf(packet.zxid) <= epoch) return null;
      return `the leader has sent SNAP of ${hexZxid(packet.zxid)}, but is of epoch ${epoch}`;
    case PacketType.newLeader:
      if (phase === 'discovery') return 'the leader speaks an old protocol: it begins with NEWLEADER';
      if (phase !== 'catching-up') return outOfTurn('NEWLEADER', phase);
      if (packet.zxid === makeZxid(epoch, 0)) return null;
      return `the leader has sent NEWLEADER of ${hexZxid(packet.zxid)}, but is of epoch ${epoch}`;
    case PacketType.upToDate:
      return phase === 'waiting' ? null : outOfTurn('UPTODATE', phase);
    case PacketType.sync:
      return isUpToDate(phase) ? null : outOfTurn('SYNC', phase);
    case PacketType.revalidate:
      return isUpToDate(phase) ? null : outOfTurn('REVALIDATE', phase);
    case PacketType.handOver:
      return phase === 'broadcast' ? null : outOfTurn('HANDOVER', phase);
  }
}

function faultOfEpoch(epoch: number, { epochMin, epochKnown }: LearnerPosition): string | null {
  if (epoch < epochMin) return `the leader is of epoch ${epoch}, but this server has accepted epoch ${epochMin}`;
  if (epoch - epochKnown <= EPOCHS_FAR) return null;
  return (
    `the leader is of epoch ${epoch}, but the latest epoch known otherwise is ${epochKnown}: elections cannot have ` +
    'advanced that far. Is the file acceptedEpoch of the leader damaged?'
  );
}

function outOfTurn(name: string, phase: LearnerPhase): string {
  return `the leader has sent ${name} out of turn, to a learner that is ${phase}`;
}

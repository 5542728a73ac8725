/**
 * Acknowledgements of a learner, which can only be built from durable values: guarantee 1 of `Learner`.
 */
import { type AckEpochPacket, type AckPacket, PacketType, type Zxid } from '@meerkat/protocol';
import { type Durable, historyOf } from '../base/durable.ts';

declare const acknowledgement: unique symbol;
export type Acknowledgement = (AckPacket | AckEpochPacket) & { readonly [acknowledgement]: true };

/** Replaces the epoch in an ACKEPOCH that must not be counted. */
const NOT_COUNTED = -1;

/** ACKEPOCH of a voter that now has `accepted` as its acceptedEpoch, with the history that its vote stands for. */
export function ackEpoch(
  _accepted: Durable<number>,
  currentEpoch: Durable<number>,
  lastZxid: Durable<Zxid>,
): Acknowledgement {
  return { type: PacketType.ackEpoch, zxid: lastZxid, currentEpoch } as AckEpochPacket as Acknowledgement;
}

/** ACKEPOCH that reports where the history ends but is not counted. */
export function ackEpochUncounted(lastZxid: Durable<Zxid>): Acknowledgement {
  return { type: PacketType.ackEpoch, zxid: lastZxid, currentEpoch: NOT_COUNTED } as AckEpochPacket as Acknowledgement;
}

/** ACK of NEWLEADER and of UPTODATE. */
export function ackNewLeader(currentEpoch: Durable<number>): Acknowledgement {
  return ackTxn(historyOf(currentEpoch));
}

export function ackTxn(zxid: Durable<Zxid>): Acknowledgement {
  return { type: PacketType.ack, zxid } as AckPacket as Acknowledgement;
}

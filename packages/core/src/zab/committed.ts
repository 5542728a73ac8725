/**
 * Commitment as types.
 *
 *     Durable marks of voters ──► Agreed ──┐
 *     COMMIT of the leader    ──► Agreed ──┴─ and Durable here ──► Committed ──► applied, and answered
 *
 * An `Agreed` watermark: a quorum holds everything up to it durably. A `Committed` watermark: so does this server,
 * whose memory is never ahead of its disk (ZOOKEEPER-4882). The reply to a write is made from a `Committed`.
 */
import type { Zxid } from '@meerkat/protocol';
import type { Durable } from '../base/durable.ts';
import type { QuorumProof } from '../election/electorate.ts';
import type { QuorumWatermark } from './quorum-watermark.ts';

declare const agreed: unique symbol;
export type Agreed<T> = T & { readonly [agreed]: true };

declare const committed: unique symbol;
export type Committed<T> = T & { readonly [committed]: true };

/** What a quorum has acknowledged; null before the first. */
export function agreedBy(acks: QuorumWatermark<Durable<Zxid>>): Agreed<Zxid> | null {
  const { reached } = acks;
  return reached < 0 ? null : (reached as Agreed<Zxid>);
}

/** For learners only: the leader has sent COMMIT or INFORM for it. */
export function agreedByLeader(zxid: Zxid): Agreed<Zxid> {
  return zxid as Agreed<Zxid>;
}

/** What may be applied. */
export function commitHere(upTo: Agreed<Zxid>, durable: Durable<Zxid>): Committed<Zxid> {
  return (upTo < durable ? upTo : durable) as number as Committed<Zxid>;
}

/** The history that an epoch begins with, once a quorum has adopted it. */
export function commitHistory(history: Durable<Zxid>, _adopters: QuorumProof): Committed<Zxid> {
  return history as number as Committed<Zxid>;
}

/** For a server that is a quorum by itself. */
export function commitAlone(durable: Durable<Zxid>): Committed<Zxid> {
  return durable as number as Committed<Zxid>;
}

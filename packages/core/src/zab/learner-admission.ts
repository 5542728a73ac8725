/**
 * Admission of learners: a connection that names its server id is admitted, refused, or waits (`Rivals`).
 *
 *     connected ── FOLLOWERINFO, OBSERVERINFO ──┬─► refused: newer membership, second packet, id is already connected
 *                                               └─► admitted, possibly replacing a dead connection
 */
import { formatZxid, type LearnerInfoPacket, QUORUM_PROTOCOL_VERSION, type Zxid } from '@meerkat/protocol';
import type { LeaderMembership } from './leader-host.ts';
import { type LearnerPeer, PeerState } from './learner-peer.ts';
import type { LearnerPeers } from './learner-peers.ts';
import { Rivals } from './rivals.ts';

export interface LearnerAdmissionEvents {
  /** True once the leader has stepped down: no learner is admitted. */
  isOver(): boolean;
  onAdmitted(peer: LearnerPeer, info: LearnerInfoPacket): void;
  /** The connection is to be closed. */
  onRefused(peer: LearnerPeer, reason: string): void;
}

export class LearnerAdmission {
  readonly #peers: LearnerPeers;
  readonly #serverId: number;
  readonly #membership: Pick<LeaderMembership, 'version'>;
  readonly #rivals: Rivals;
  readonly #events: LearnerAdmissionEvents;

  /** @param silenceMaxMs milliseconds without a sign of life after which a connection is dead */
  constructor(
    peers: LearnerPeers,
    serverId: number,
    membership: Pick<LeaderMembership, 'version'>,
    silenceMaxMs: number,
    events: LearnerAdmissionEvents,
  ) {
    this.#peers = peers;
    this.#serverId = serverId;
    this.#membership = membership;
    this.#rivals = new Rivals(silenceMaxMs);
    this.#events = events;
  }

  onInfo(peer: LearnerPeer, info: LearnerInfoPacket, nowMs: number): void {
    const isFirst = peer.state === PeerState.connected && !this.#rivals.isWaiting(peer);
    const leader = { serverId: this.#serverId, configVersion: this.#membership.version };
    const refusal = isFirst ? findRefusal(info, leader) : `${peer.name} identifies itself twice`;
    if (refusal !== null) {
      this.#events.onRefused(peer, refusal);
      return;
    }
    const standing = this.#peers.standingOf(info.serverId);
    if (standing !== null) {
      if (!this.#rivals.challenge(peer, info, standing, nowMs)) return;
      this.#replace(standing);
    }
    this.#events.onAdmitted(peer, info);
  }

  /** A connection is gone. `admitWinners` admits learners that waited for this. */
  onClosed(peer: LearnerPeer): void {
    this.#rivals.forget(peer);
  }

  refuseRivals(): void {
    for (const { peer, standing } of this.#rivals.takeRefused()) {
      const reason = `${standing.name} is connected already, and that connection is alive: is its id used twice?`;
      this.#events.onRefused(peer, reason);
    }
  }

  admitWinners(nowMs: number): void {
    const winners = this.#rivals.takeWinners(nowMs, (standing) => this.#peers.isConnected(standing));
    for (const { peer, info, standing } of winners) {
      if (this.#peers.isConnected(standing)) this.#replace(standing);
      if (!this.#events.isOver()) this.onInfo(peer, info, nowMs);
    }
  }

  #replace(standing: LearnerPeer): void {
    this.#events.onRefused(standing, `${standing.name} has connected again, and its old connection is silent`);
  }
}

/**
 * Decides by a learner's first packet whether to refuse it.
 *
 * @param leader the leader's id, and the version of the configuration that it follows
 * @returns why the learner is refused, human-readable; null when it is not
 */
function findRefusal(
  info: LearnerInfoPacket,
  leader: { readonly serverId: number; readonly configVersion: Zxid },
): string | null {
  const { serverId, protocolVersion, configVersion } = info;
  // Negative ids denote session owners that are not learners.
  if (serverId === null || serverId < 0) return 'a learner does not say which server it is';
  if (serverId === leader.serverId) return `a learner says that it is server ${serverId}, which leads`;
  if (protocolVersion < QUORUM_PROTOCOL_VERSION) {
    return `learner ${serverId} speaks protocol 0x${protocolVersion.toString(16)}: it is older than release 3.4`;
  }
  if (configVersion !== null && configVersion > leader.configVersion) {
    const version = formatZxid(configVersion);
    return `learner ${serverId} follows configuration ${version}, which is newer than ${formatZxid(leader.configVersion)} of this leader`;
  }
  return null;
}

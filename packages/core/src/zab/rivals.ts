/**
 * Connections that claim the id of a connected learner. The standing connection wins unless it is dead:
 *
 *     FOLLOWERINFO ──► waits ──┬─ the standing connection has a sign of life ──► refused
 *                              └─ it has none for a tick, or it closes ────────► admitted in its place
 *
 * A serving learner answers a ping every half tick, so one that has been silent for a tick is considered dead at once.
 * When a process dies, its kernel closes the connection, so a restarted server finds no standing one. So only a learner
 * whose host lost power, or another server with the same id, ever waits.
 */
import type { LearnerInfoPacket } from '@meerkat/protocol';
import { type LearnerPeer, PeerState } from './learner-peer.ts';

export interface Rival {
  readonly peer: LearnerPeer;
  readonly info: LearnerInfoPacket;
  /** The connection that it would replace. */
  readonly standing: LearnerPeer;
  readonly sinceMs: number;
  /** Number of signs of life that the standing connection had given by then. */
  readonly signsBefore: number;
}

export class Rivals {
  /** Milliseconds without a sign of life after which a connection is dead. */
  readonly #silenceMaxMs: number;
  #rivals: readonly Rival[] = [];

  constructor(silenceMaxMs: number) {
    this.#silenceMaxMs = silenceMaxMs;
  }

  /** @returns true when the standing connection may be replaced now; otherwise the newcomer waits */
  challenge(peer: LearnerPeer, info: LearnerInfoPacket, standing: LearnerPeer, nowMs: number): boolean {
    const answersPings = standing.state === PeerState.serving;
    if (answersPings && standing.silenceMs(nowMs) > this.#silenceMaxMs) return true;
    this.#rivals = [...this.#rivals, { peer, info, standing, sinceMs: nowMs, signsBefore: standing.signsOfLife }];
    return false;
  }

  isWaiting(peer: LearnerPeer): boolean {
    return this.#rivals.some((rival) => rival.peer === peer);
  }

  /** A connection is gone. */
  forget(peer: LearnerPeer): void {
    if (this.isWaiting(peer)) this.#rivals = this.#rivals.filter((rival) => rival.peer !== peer);
  }

  /** Takes the rivals whose standing connection is alive. */
  takeRefused(): readonly Rival[] {
    return this.#take(({ standing, signsBefore }) => standing.signsOfLife > signsBefore);
  }

  /** Takes the rivals whose standing connection is dead: closed, or silent for too long. */
  takeWinners(nowMs: number, isConnected: (standing: LearnerPeer) => boolean): readonly Rival[] {
    return this.#take(({ standing, sinceMs }) => !isConnected(standing) || nowMs - sinceMs >= this.#silenceMaxMs);
  }

  #take(isMeant: (rival: Rival) => boolean): readonly Rival[] {
    if (this.#rivals.length === 0) return NONE;
    const taken = this.#rivals.filter(isMeant);
    if (taken.length > 0) this.#rivals = this.#rivals.filter((rival) => !taken.includes(rival));
    return taken;
  }
}

const NONE: readonly Rival[] = [];

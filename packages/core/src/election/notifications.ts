import { Announcement, announcedLease, NOTIFICATION_VERSION, type ServerState } from '@meerkat/protocol';
import type { Clock } from '../base/ports.ts';
import type { ElectionEffects, ElectionOptions } from './election-host.ts';
import type { Peers } from './peers.ts';
import type { Vote } from './vote.ts';

const NEVER = Number.POSITIVE_INFINITY;
/** What every notification says of its sender. */
const ANNOUNCES = Announcement.settlesEarly + Announcement.outlastsOlderEpochs;

/** What a server has to say at some moment. */
export interface Word {
  readonly state: ServerState;
  readonly round: number;
  readonly vote: Vote;
  readonly configText: string;
}

/** What a server tells the others in an election, and when it says it again. */
export class Notifications {
  readonly #options: ElectionOptions;
  readonly #clock: Clock;
  readonly #peers: Peers;
  readonly #effects: ElectionEffects;
  #dueMs = NEVER;
  #intervalMs = 0;

  constructor(options: ElectionOptions, clock: Clock, peers: Peers, effects: ElectionEffects) {
    this.#options = options;
    this.#clock = clock;
    this.#peers = peers;
    this.#effects = effects;
  }

  /** When everybody is told again: milliseconds of the monotonic clock; Infinity when nothing is due. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /** What is said is new: it is said again soon, and then less and less often. */
  schedule(): void {
    this.#intervalMs = this.#options.notificationIntervalMinMs;
    this.#dueMs = this.#clock.monotonicMs() + this.#intervalMs;
  }

  scheduleNext(nowMs: number): void {
    this.#intervalMs = Math.min(2 * this.#intervalMs, this.#options.notificationIntervalMaxMs);
    this.#dueMs = nowMs + this.#intervalMs;
  }

  /** There is a decision: only those that ask are told. */
  stop(): void {
    this.#dueMs = NEVER;
  }

  broadcast(voters: Iterable<number>, word: Word): void {
    for (const id of voters) {
      if (id !== this.#options.serverId && this.#peers.isConnected(id)) this.send(id, word);
    }
  }

  /** Answers one that is looking; it is told again should the answer change. */
  reply(to: number, word: Word): void {
    this.#peers.get(to).hasAsked = true;
    this.send(to, word);
  }

  /**
   * Answers a server that is no voter, an observer for instance, but the same thing only once per interval: an Apache
   * observer of a later round answers every answer, and the two would never stop (ZOOKEEPER-1807).
   */
  replyToOutsider(to: number, word: Word): void {
    const peer = this.#peers.get(to);
    const nowMs = this.#clock.monotonicMs();
    const { state, round, vote } = word;
    const last = peer.lastAnswer;
    const isRepeated = last?.state === state && last.round === round && last.vote === vote;
    if (isRepeated && nowMs < last.atMs + this.#options.notificationIntervalMinMs) return;
    peer.lastAnswer = { state, round, vote, atMs: nowMs };
    this.reply(to, word);
  }

  send(to: number, { state, round, vote, configText }: Word): void {
    const { leader, zxid, peerEpoch } = vote;
    this.#effects.sendNotification(to, {
      state,
      leader,
      zxid,
      electionEpoch: round,
      peerEpoch,
      version: NOTIFICATION_VERSION,
      configText,
      announces: ANNOUNCES + announcedLease(this.#options.leaseMs ?? 0),
    });
  }
}

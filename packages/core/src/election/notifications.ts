import { Announcement, announcedLease, NOTIFICATION_VERSION, type ServerState } from '@meerkat/protocol';
import type { Clock } from '../base/ports.ts';
import type { ElectionEffects, ElectionOptions } from './election-host.ts';
import type { Peers } from './peers.ts';
import type { Vote } from './vote.ts';

const NEVER = Number.POSITIVE_INFINITY;
/** Capabilities announced in every notification. */
const ANNOUNCES = Announcement.settlesEarly + Announcement.refusesOlderEpochs;

/** The state that a server sends to the others. */
export interface Word {
  readonly state: ServerState;
  readonly round: number;
  readonly vote: Vote;
  readonly configText: string;
}

/** Sends election notifications and schedules when to repeat them. */
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

  /** When the current state is next sent to all voters, in milliseconds of the monotonic clock; Infinity for never. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /** The state is new: it is repeated soon, and then less and less often. */
  schedule(): void {
    this.#intervalMs = this.#options.notificationIntervalMinMs;
    this.#dueMs = this.#clock.monotonicMs() + this.#intervalMs;
  }

  scheduleNext(nowMs: number): void {
    this.#intervalMs = Math.min(2 * this.#intervalMs, this.#options.notificationIntervalMaxMs);
    this.#dueMs = nowMs + this.#intervalMs;
  }

  /** There is a decision: only servers that ask get a reply. */
  stop(): void {
    this.#dueMs = NEVER;
  }

  broadcast(voters: Iterable<number>, word: Word): void {
    for (const id of voters) {
      if (id !== this.#options.serverId && this.#peers.isConnected(id)) this.send(id, word);
    }
  }

  /** Replies to a looking server, which is sent another notification if the answer changes. */
  reply(to: number, word: Word): void {
    this.#peers.get(to).hasAsked = true;
    this.send(to, word);
  }

  /**
   * Replies to a server that is not a voter, such as an observer, but with the same content at most once per interval:
   * an Apache observer in a later round replies to every reply, and the two would never stop (ZOOKEEPER-1807).
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

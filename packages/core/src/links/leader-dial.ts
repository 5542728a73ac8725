import type { ByteStream, Clock, Endpoint, Network, StreamEvents } from '../base/ports.ts';

export interface LeaderDialOptions {
  /** Of the leader, at least one. */
  readonly addresses: readonly Endpoint[];
  /** Milliseconds after which one of several addresses that answers nothing is given up. */
  readonly addressTimeoutMs: number;
}

export interface LeaderDialEvents {
  /** Told once; nothing follows. */
  onConnected(stream: ByteStream): StreamEvents;
  /** No address can be reached. Told once; nothing follows. */
  onFailed(reason: string): void;
}

interface Attempt {
  readonly at: Endpoint;
  dial: { cancel(): void } | null;
  failures: number;
  /** When to dial again, or to give up what is under way. */
  deadlineMs: number;
  isOver: boolean;
}

/** Pauses before the attempts to connect, in milliseconds: a new leader opens its port within moments. */
const REDIAL_MS: readonly number[] = [5, 10, 20, 40, 80, 100, 100, 100, 100, 100];

const LOST = 'it refuses, and its connection for elections has broken, too';

const NEVER = Number.POSITIVE_INFINITY;

/** The way of a learner to its leader: all addresses are dialled at once, and the first that answers is taken. */
export class LeaderDial {
  readonly #network: Network;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #events: LeaderDialEvents;
  readonly #attempts: readonly Attempt[];
  /** The leader's process has ended, as it seems: what it refuses is no port that is not open yet. */
  #isGone = false;
  #isOver = false;

  constructor(
    ports: { readonly network: Network; readonly clock: Clock },
    { addresses, addressTimeoutMs }: LeaderDialOptions,
    events: LeaderDialEvents,
  ) {
    this.#network = ports.network;
    this.#clock = ports.clock;
    // A single one has all the time that the learner has.
    this.#timeoutMs = addresses.length > 1 ? addressTimeoutMs : NEVER;
    this.#events = events;
    this.#attempts = addresses.map((at) => ({ at, dial: null, failures: 0, deadlineMs: NEVER, isOver: false }));
  }

  get nextDeadlineMs(): number {
    let atMs = NEVER;
    for (const { deadlineMs } of this.#attempts) atMs = Math.min(atMs, deadlineMs);
    return atMs;
  }

  start(): void {
    for (const attempt of this.#attempts) this.#dial(attempt);
  }

  onTick(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const attempt of this.#attempts) {
      if (nowMs < attempt.deadlineMs) continue;
      if (attempt.dial === null) {
        this.#dial(attempt);
      } else {
        attempt.dial.cancel();
        this.#end(attempt, `nothing answers within ${this.#timeoutMs} ms`);
      }
    }
  }

  /** The leader's connection for elections has broken. An address that has refused, or does, is not tried again. */
  onLeaderLost(): void {
    this.#isGone = true;
    for (const attempt of this.#attempts) {
      if (attempt.dial === null && !attempt.isOver && !this.#isOver) this.#end(attempt, LOST);
    }
  }

  /** Gives up; nothing is told any more. */
  cancel(): void {
    this.#isOver = true;
    for (const attempt of this.#attempts) {
      attempt.dial?.cancel();
      attempt.dial = null;
      attempt.deadlineMs = NEVER;
    }
  }

  #dial(attempt: Attempt): void {
    attempt.deadlineMs = this.#clock.monotonicMs() + this.#timeoutMs;
    attempt.dial = this.#network.connect(attempt.at, {
      onConnected: (stream) => {
        attempt.dial = null;
        this.cancel();
        return this.#events.onConnected(stream);
      },
      onConnectFailed: (reason) => this.#onFailed(attempt, reason),
    });
  }

  #onFailed(attempt: Attempt, reason: string): void {
    if (this.#isOver) return;
    attempt.dial = null;
    const pauseMs = REDIAL_MS[attempt.failures++];
    if (this.#isGone || pauseMs === undefined) this.#end(attempt, reason);
    else attempt.deadlineMs = this.#clock.monotonicMs() + pauseMs;
  }

  #end(attempt: Attempt, reason: string): void {
    attempt.isOver = true;
    attempt.dial = null;
    attempt.deadlineMs = NEVER;
    if (!this.#attempts.every(({ isOver }) => isOver)) return;
    this.cancel();
    this.#events.onFailed(reason);
  }
}

import type { ByteStream, Clock, Endpoint, Network, StreamEvents } from '../base/ports.ts';

export interface LeaderDialOptions {
  /** Addresses of the leader, at least one. */
  readonly addresses: readonly Endpoint[];
  /** Timeout of a dial, in milliseconds, when there are several addresses. */
  readonly addressTimeoutMs: number;
}

export interface LeaderDialEvents {
  /** Called once, as the last event. */
  onConnected(stream: ByteStream): StreamEvents;
  /** No address can be reached. Called once, as the last event. */
  onFailed(reason: string): void;
}

interface Attempt {
  readonly at: Endpoint;
  dial: { cancel(): void } | null;
  failures: number;
  /** When to dial again, or when the current dial times out. */
  deadlineMs: number;
  isOver: boolean;
}

/** Pauses between dials, in milliseconds: a new leader opens its port within moments. */
const REDIAL_MS: readonly number[] = [5, 10, 20, 40, 80, 100, 100, 100, 100, 100];

const LOST = 'it refuses, and its election connection has broken, too';

const NEVER = Number.POSITIVE_INFINITY;

/** Connects a learner to its leader: dials all addresses at once, and takes the first that answers. */
export class LeaderDial {
  readonly #network: Network;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #events: LeaderDialEvents;
  readonly #attempts: readonly Attempt[];
  /** The leader's process seems to have ended: a refused dial no longer means that its port is not open yet. */
  #isGone = false;
  #isOver = false;

  constructor(
    ports: { readonly network: Network; readonly clock: Clock },
    { addresses, addressTimeoutMs }: LeaderDialOptions,
    events: LeaderDialEvents,
  ) {
    this.#network = ports.network;
    this.#clock = ports.clock;
    // A single address may take all of the learner's time.
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
        this.#end(attempt, `no answer within ${this.#timeoutMs} ms`);
      }
    }
  }

  /** The leader's election connection has broken. Addresses that refuse are no longer retried. */
  onLeaderLost(): void {
    this.#isGone = true;
    for (const attempt of this.#attempts) {
      if (attempt.dial === null && !attempt.isOver && !this.#isOver) this.#end(attempt, LOST);
    }
  }

  /** Cancels all dials; no events follow. */
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

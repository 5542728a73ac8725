import type { ByteStream, Clock, Endpoint, Network, Random, StreamEvents } from '../base/ports.ts';

export interface MasterDialOptions {
  /** Addresses where followers may accept observers, with their server ids. */
  readonly masters: readonly { readonly serverId: number; readonly at: Endpoint }[];
  /** Timeout of a dial, in milliseconds. */
  readonly addressTimeoutMs: number;
  /** Timeout of all dials together, in milliseconds. */
  readonly patienceMs: number;
}

export interface MasterDialEvents {
  /** Called once, as the last event. */
  onConnected(stream: ByteStream, serverId: number): StreamEvents;
  /** None of them accepts observers. Called once, as the last event. */
  onFailed(reason: string): void;
}

const NEVER = Number.POSITIVE_INFINITY;
/** Milliseconds before all are tried again: a follower opens its port once it has synchronized. */
const PAUSE_MS = 100;

/**
 * Connects an observer to a follower that feeds observers. Dials them one after the other, in random order, so that
 * many observers spread over the followers (Observer.findLearnerMaster).
 */
export class MasterDial {
  readonly #network: Network;
  readonly #clock: Clock;
  readonly #options: MasterDialOptions;
  readonly #events: MasterDialEvents;
  readonly #order: readonly MasterDialOptions['masters'][number][];
  #next = 0;
  #dial: { cancel(): void } | null = null;
  #deadlineMs = NEVER;
  #endsMs = NEVER;
  #lastReason = 'there is none';
  #isOver = false;

  constructor(
    ports: { readonly network: Network; readonly clock: Clock; readonly random: Random },
    options: MasterDialOptions,
    events: MasterDialEvents,
  ) {
    this.#network = ports.network;
    this.#clock = ports.clock;
    this.#options = options;
    this.#events = events;
    this.#order = shuffled(options.masters, ports.random);
  }

  get nextDeadlineMs(): number {
    return this.#deadlineMs;
  }

  start(): void {
    this.#endsMs = this.#clock.monotonicMs() + this.#options.patienceMs;
    this.#tryNext();
  }

  onTick(): void {
    if (this.#isOver || this.#clock.monotonicMs() < this.#deadlineMs) return;
    if (this.#dial !== null) {
      this.#dial.cancel();
      this.#lastReason = `no answer within ${this.#options.addressTimeoutMs} ms`;
    }
    this.#tryNext();
  }

  /** Cancels the dial; no events follow. */
  cancel(): void {
    this.#isOver = true;
    this.#dial?.cancel();
    this.#dial = null;
    this.#deadlineMs = NEVER;
  }

  #tryNext(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#dial = null;
    const master = this.#order[this.#next++];
    if (nowMs >= this.#endsMs || this.#order.length === 0) {
      this.cancel();
      this.#events.onFailed(this.#lastReason);
    } else if (master === undefined) {
      this.#next = 0;
      this.#deadlineMs = nowMs + PAUSE_MS;
    } else {
      this.#deadlineMs = nowMs + this.#options.addressTimeoutMs;
      this.#dial = this.#network.connect(master.at, {
        onConnected: (stream) => {
          this.#dial = null;
          this.cancel();
          return this.#events.onConnected(stream, master.serverId);
        },
        onConnectFailed: (reason) => {
          if (this.#isOver) return;
          this.#lastReason = reason;
          this.#tryNext();
        },
      });
    }
  }
}

function shuffled<T>(items: readonly T[], random: Random): readonly T[] {
  const order = [...items];
  for (let i = order.length - 1; i > 0; i--) {
    const j = random.uint32() % (i + 1);
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
}

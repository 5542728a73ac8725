import { Hosts, shuffle } from './hosts.ts';
import type { AttemptFailure, FailedAttempt, HostPort, Random, Target } from './ports.ts';

export interface DialerEffects {
  /** Looks a name up; `onResolved` follows. */
  resolve(host: HostPort): void;
  /** Starts to connect; the session receives the outcome. */
  open(target: Target): void;
  onAttemptFailed(attempt: FailedAttempt): void;
}

export interface BackOff {
  /** Longest delay before the first attempt after a lost connection, and the unit that doubles, milliseconds. */
  readonly minMs: number;
  /** Longest delay between two rounds over all servers, milliseconds. */
  readonly maxMs: number;
}

/**
 * Decides which address is tried when.
 *
 *     begin ─► delay ─► look up the next host ─► try its addresses one by one ─► next host …
 *                ▲                                                               │ after each whole round
 *                └────────────── min(max, min · 2^round), half of it random ◄────┘
 *
 * Names are looked up again each time: servers move. One attempt is everything from the lookup to the end of the
 * handshake and has a deadline, so that a silent address costs a bounded time.
 */
export class Dialer {
  readonly #hosts: Hosts;
  readonly #random: Random;
  readonly #effects: DialerEffects;
  readonly #backOff: BackOff;
  readonly #attemptMs: number;
  #phase: 'idle' | 'pause' | 'resolving' | 'trying' = 'idle';
  #wakeAtMs = Number.POSITIVE_INFINITY;
  #host: HostPort | null = null;
  #target: Target | null = null;
  /** Addresses of the host that have not been tried yet. */
  #addresses: string[] = [];

  constructor(
    hosts: readonly HostPort[],
    random: Random,
    effects: DialerEffects,
    options: { readonly backOff: BackOff; readonly attemptMs: number },
  ) {
    this.#hosts = new Hosts(hosts, random);
    this.#random = random;
    this.#effects = effects;
    this.#backOff = options.backOff;
    this.#attemptMs = options.attemptMs;
  }

  /** The server being tried, or the one that was reached last. */
  get target(): Target | null {
    return this.#target;
  }

  /** Monotonic milliseconds; Infinity while idle. */
  get deadlineMs(): number {
    return this.#wakeAtMs;
  }

  /** Starts over. `isPrompt`: without the first delay. */
  begin(nowMs: number, isPrompt: boolean): void {
    this.#addresses = [];
    this.#pause(nowMs, isPrompt ? 0 : this.#chance(this.#backOff.minMs));
  }

  /** The connection is usable: the count of rounds starts again. */
  succeed(): void {
    this.#hosts.onConnected();
  }

  /** The connection is unusable: the next host follows, as after a failed attempt. */
  continueSearch(nowMs: number): void {
    this.#addresses = [];
    this.#tryNextHost(nowMs);
  }

  /** The name of the host being tried has not been looked up yet. */
  get isResolving(): boolean {
    return this.#phase === 'resolving';
  }

  /** Ends the search for good. The current attempt has taken too long. */
  abandon(detail: string): void {
    if (this.#phase === 'resolving' || this.#phase === 'trying') this.#report('timed-out', detail);
    this.stop();
  }

  stop(): void {
    this.#phase = 'idle';
    this.#wakeAtMs = Number.POSITIVE_INFINITY;
    this.#addresses = [];
  }

  /** The next attempt goes to this host; null: to the next in turn. */
  prefer(host: HostPort | null): void {
    if (host !== null) this.#hosts.prefer(host);
  }

  onResolved(nowMs: number, addresses: readonly string[] | null, detail: string): void {
    if (this.#phase !== 'resolving') return;
    if (addresses === null || addresses.length === 0) {
      this.fail(nowMs, 'dns', detail);
      return;
    }
    this.#addresses = shuffle(addresses, this.#random);
    this.#tryNextAddress(nowMs);
  }

  /** The attempt has failed: the next one follows automatically. */
  fail(nowMs: number, failure: AttemptFailure, detail: string): void {
    if (this.#phase !== 'resolving' && this.#phase !== 'trying') return;
    this.#report(failure, detail);
    if (this.#addresses.length > 0) {
      this.#tryNextAddress(nowMs);
    } else this.#tryNextHost(nowMs);
  }

  /** The same address once more, at once. */
  tryAgain(nowMs: number): void {
    if (this.#target === null) return;
    this.#addresses.unshift(this.#target.address);
    this.#tryNextAddress(nowMs);
  }

  /** @returns true when the attempt has taken too long: the session closes the stream and calls `fail` */
  onTick(nowMs: number): boolean {
    if (nowMs < this.#wakeAtMs) return false;
    if (this.#phase !== 'pause') return this.#phase !== 'idle';
    this.#phase = 'resolving';
    this.#wakeAtMs = nowMs + this.#attemptMs;
    this.#host = this.#hosts.next();
    this.#effects.resolve(this.#host);
    return false;
  }

  #tryNextAddress(nowMs: number): void {
    const address = this.#addresses.shift()!;
    this.#phase = 'trying';
    this.#wakeAtMs = nowMs + this.#attemptMs;
    this.#target = { ...this.#host!, address };
    this.#effects.open(this.#target);
  }

  #tryNextHost(nowMs: number): void {
    if (!this.#hosts.isRoundOver) {
      this.#pause(nowMs, 0);
      return;
    }
    const { minMs, maxMs } = this.#backOff;
    const longestMs = Math.min(maxMs, minMs * 2 ** Math.min(this.#hosts.rounds, DOUBLINGS_MAX));
    this.#pause(nowMs, longestMs / 2 + this.#chance(longestMs / 2));
  }

  #report(failure: AttemptFailure, detail: string): void {
    const { host, port } = this.#host!;
    const address = this.#phase === 'trying' ? (this.#target?.address ?? null) : null;
    this.#effects.onAttemptFailed({ host, port, address, failure, detail });
  }

  #pause(nowMs: number, ms: number): void {
    this.#phase = 'pause';
    this.#wakeAtMs = nowMs + ms;
  }

  /** Random milliseconds, at least 0 and less than `belowMs`. */
  #chance(belowMs: number): number {
    return (this.#random.uint32() / 2 ** 32) * belowMs;
  }
}

/** Doublings after which the delay is surely at its maximum. */
const DOUBLINGS_MAX = 16;

import type { Clock } from '@meerkat/core';
import { RecentClients } from './recent-clients.ts';
import { WritePace } from './write-pace.ts';

/** The part of the core that a turn drives. */
export interface TurnCore {
  onTurnEnd(): void;
  /** Monotonic milliseconds; Infinity for never, 0 for another turn as soon as sockets and timers were polled. */
  nextDeadlineMs(): number;
  onTick(): void;
}

/** The part of the disk that a turn drives. */
export interface TurnDisk {
  /**
   * Starts what the core asked for. True when something was completed at once, so that the core has more to finish.
   *
   * @param events that this turn has delivered
   */
  startEffects(events: number): boolean;
}

/** Exchanges events with other threads in each turn. */
export interface TurnBorder {
  /** Delivers what other threads have sent. @returns the number of events */
  receive(): number;
  /** Hands over what was written. False: input arrived for which this thread is not woken, another turn is needed. */
  publish(): boolean;
}

/**
 * The turns of a server on Node's event loop.
 *
 *     poll phase: sockets, files and timers deliver events, each of which marks the turn
 *     check phase (setImmediate): events of other threads are delivered; core.onTurnEnd, then the disk starts its
 *     effects, repeated while some complete at once; output for other threads is handed over
 *
 * So everything that arrived in one round of the loop leaves in one write per connection and one sync.
 *
 * An error thrown by the core is a bug: it ends this server, not the process.
 *
 * A turn can be frozen, as SIGSTOP freezes a process: no event is delivered, no turn ends and no timer fires until it
 * is thawed; the time in between has passed. Events for the core that occur while `isFrozen` are passed to `postpone`.
 */
export class Turn {
  /** Of long output to clients. */
  readonly writePace: WritePace = new WritePace();
  readonly clients: RecentClients = new RecentClients();
  readonly #clock: Clock;
  readonly #onFault: (error: unknown) => void;
  #core: TurnCore | null = null;
  #disk: TurnDisk | null = null;
  #borders: readonly TurnBorder[] = [];
  #number = 0;
  #isMarked = false;
  /** Delivered since the last turn. */
  #events = 0;
  #isFrozen = false;
  /** Events that occurred while frozen, in order. */
  #postponed: (() => void)[] = [];
  /** Resolve functions of those who wait for the end of a turn. */
  #awaitingEnd: (() => void)[] = [];
  #timer: NodeJS.Timeout | null = null;
  #timerAtMs = 0;

  constructor(clock: Clock, onFault: (error: unknown) => void) {
    this.#clock = clock;
    this.#onFault = onFault;
  }

  start(core: TurnCore, disk: TurnDisk): void {
    this.#core = core;
    this.#disk = disk;
    this.mark();
  }

  /** After this no event reaches the core. */
  stop(): void {
    this.#core = null;
    this.#borders = [];
    this.#postponed = [];
    this.#disarmTimer();
    this.#resolveEnded();
  }

  /** Adds a border to each turn. Code that wakes this thread for it calls `mark`. */
  join(border: TurnBorder): void {
    this.#borders = [...this.#borders, border];
    this.mark();
  }

  leave(border: TurnBorder): void {
    this.#borders = this.#borders.filter((other) => other !== border);
  }

  /** The number of turns before this one. */
  get number(): number {
    return this.#number;
  }

  get isStopped(): boolean {
    return this.#core === null;
  }

  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  freeze(): void {
    this.#isFrozen = true;
    this.#disarmTimer();
  }

  thaw(): void {
    this.#isFrozen = false;
    for (const event of this.#postponed.splice(0)) event();
    this.mark();
  }

  /** Keeps an event until the turn is thawed. */
  postpone(event: () => void): void {
    if (this.#core !== null) this.#postponed.push(event);
  }

  /** Delivers an event that comes from neither a socket nor a file. */
  run(event: () => void): void {
    if (this.#core === null) return;
    if (this.#isFrozen) {
      this.postpone(() => this.run(event));
      return;
    }
    try {
      event();
    } catch (error) {
      this.fail(error);
    }
    this.mark();
  }

  /** Resolves once a turn has ended: what the core has written until now is with the kernel then. */
  ended(): Promise<void> {
    this.mark();
    return new Promise((resolve) => this.#awaitingEnd.push(resolve));
  }

  /** An event was delivered: the turn needs an end. */
  mark(): void {
    this.#events++;
    if (this.#isMarked) return;
    this.#isMarked = true;
    setImmediate(this.#end);
  }

  /** The core threw; it is not called again. */
  fail(error: unknown): void {
    if (this.#core === null) return;
    this.stop();
    this.#onFault(error);
  }

  readonly #end = (): void => {
    this.#isMarked = false;
    // `thaw` marks it again.
    if (this.#isFrozen) return;
    try {
      let events = this.#events;
      this.#events = 0;
      if (this.#core !== null) for (const border of this.#borders) events += border.receive();
      for (let round = 0; ; round++) {
        this.#core?.onTurnEnd();
        if (this.#core === null || this.#disk === null || !this.#disk.startEffects(events)) break;
        if (round < ROUNDS_MAX) continue;
        // Sockets get their chance before the rest.
        this.mark();
        break;
      }
      if (this.#core !== null) for (const border of this.#borders) if (!border.publish()) this.mark();
      if (this.writePace.onTurnEnd()) this.mark();
      this.#number++;
      this.#armTimer();
      this.#resolveEnded();
    } catch (error) {
      this.fail(error);
    }
  };

  #resolveEnded(): void {
    for (const resolve of this.#awaitingEnd.splice(0)) resolve();
  }

  #disarmTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #armTimer(): void {
    if (this.#core === null) return;
    const deadlineMs = this.#core.nextDeadlineMs();
    // The event loop polls sockets and timers before; ticks continue as well.
    if (deadlineMs === 0) this.mark();
    // A timer that fires too early does no harm: it is armed again then.
    if (this.#timer !== null && this.#timerAtMs <= deadlineMs) return;
    this.#disarmTimer();
    if (deadlineMs === Number.POSITIVE_INFINITY) return;
    const delayMs = Math.ceil(deadlineMs - this.#clock.monotonicMs());
    this.#timerAtMs = deadlineMs;
    this.#timer = setTimeout(this.#onTimer, Math.min(Math.max(delayMs, 1), TIMER_MS_MAX));
  }

  readonly #onTimer = (): void => {
    this.#timer = null;
    if (this.#core === null) return;
    try {
      this.#core.onTick();
    } catch (error) {
      this.fail(error);
    }
    this.mark();
  };
}

/** Rounds of a turn after which the event loop continues, although there is more to finish. */
const ROUNDS_MAX = 4;
/** Longest delay of a timer, milliseconds. */
const TIMER_MS_MAX = 0x7fffffff;

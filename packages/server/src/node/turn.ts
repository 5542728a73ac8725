import type { Clock } from '@meerkat/core';

/** The part of the core that a turn drives. */
export interface TurnCore {
  onTurnEnd(): void;
  /** Monotonic milliseconds; Infinity for never. */
  nextDeadlineMs(): number;
  onTick(): void;
}

/** The part of the disk that a turn drives. */
export interface TurnDisk {
  /** Starts what the core asked for. True when something was completed at once, so that the core has more to finish. */
  startEffects(): boolean;
}

/**
 * The turns of a server on Node's event loop.
 *
 *     poll phase: sockets, files and timers deliver events, each of which marks the turn
 *     check phase (setImmediate): core.onTurnEnd, then the disk starts; again while it completed something at once
 *
 * So everything that arrived in one round of the loop leaves in one write per connection and one sync.
 *
 * An error thrown by the core is a mistake of ours: it ends this server, not the process.
 */
export class Turn {
  readonly #clock: Clock;
  readonly #onFault: (error: unknown) => void;
  #core: TurnCore | null = null;
  #disk: TurnDisk | null = null;
  #isMarked = false;
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
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  get isStopped(): boolean {
    return this.#core === null;
  }

  /** An event was delivered: the turn needs an end. */
  mark(): void {
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
    try {
      for (let round = 0; ; round++) {
        this.#core?.onTurnEnd();
        if (this.#core === null || this.#disk === null || !this.#disk.startEffects()) break;
        if (round < ROUNDS_MAX) continue;
        // Sockets get their chance before the rest.
        this.mark();
        break;
      }
      this.#armTimer();
    } catch (error) {
      this.fail(error);
    }
  };

  #armTimer(): void {
    if (this.#core === null) return;
    const deadlineMs = this.#core.nextDeadlineMs();
    // A timer that rings too early does no harm: it is armed again then.
    if (this.#timer !== null && this.#timerAtMs <= deadlineMs) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
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

/** Rounds of a turn after which the event loop goes on, although there is more to finish. */
const ROUNDS_MAX = 4;
/** Longest delay of a timer, milliseconds. */
const TIMER_MS_MAX = 0x7fffffff;

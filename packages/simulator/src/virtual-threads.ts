import { type ByteStream, CoreSide, makeRing, SocketSide, type StreamEvents } from '@meerkat/core';
import type { SeededRandom } from './seeded-random.ts';
import { type EventDoor, ServerNetwork } from './server-network.ts';
import type { Timeline } from './timeline.ts';
import type { VirtualEnd, VirtualNetwork } from './virtual-network.ts';

export interface VirtualThreadsParts {
  readonly count: number;
  readonly host: string;
  readonly network: VirtualNetwork;
  readonly timeline: Timeline;
  readonly random: SeededRandom;
  /** Of the core: wakes it, and delivers what comes of itself. */
  readonly door: EventDoor;
  readonly onStream: (stream: ByteStream) => StreamEvents;
}

/**
 * The I/O threads of a server, with their rings, in virtual time: each has its turns at its own times, so that these and
 * the core's interleave in any order. A turn begins when something arrives at its sockets, or when it is woken.
 *
 * Pauses and ends with its process.
 */
export class VirtualThreads {
  readonly #parts: VirtualThreadsParts;
  readonly #threads: VirtualThread[];

  constructor(parts: VirtualThreadsParts) {
    this.#parts = parts;
    this.#threads = Array.from({ length: parts.count }, () => new VirtualThread(parts));
  }

  /** Assigns a connection to one of the live threads. */
  accept(end: VirtualEnd): void {
    const listening = this.#threads.filter(({ isGone }) => !isGone);
    if (listening.length === 0) end.destroy();
    else this.#parts.random.pick(listening).accept(end);
  }

  /**
   * One of the threads dies, and its connections with it. The core is notified later; requests taken in until then continue,
   * and another thread replaces it.
   *
   * @returns false when none lives
   */
  kill(): boolean {
    const { random, timeline, door } = this.#parts;
    const living = this.#threads.filter(({ isGone }) => !isGone);
    if (living.length === 0) return false;
    const thread = random.pick(living);
    thread.die();
    timeline.plan(random.fraction() * NOTICE_MS_MAX, () =>
      door.deliver(() => {
        this.#threads[this.#threads.indexOf(thread)] = new VirtualThread(this.#parts);
        thread.core.onDead('its I/O thread has ended');
      }),
    );
    return true;
  }

  /** Delivers to the core what the threads have handed over. */
  receive(): void {
    for (const thread of this.#threads) thread.core.receive();
  }

  /** Hands over what the core has written. @returns false when another turn is wanted */
  publish(): boolean {
    let isDone = true;
    for (const thread of this.#threads) if (!thread.core.publish()) isDone = false;
    return isDone;
  }

  pause(): void {
    for (const thread of this.#threads) thread.pause();
  }

  resume(): void {
    for (const thread of this.#threads) thread.resume();
  }

  vanish(): void {
    for (const thread of this.#threads) thread.vanish();
  }
}

class VirtualThread implements EventDoor {
  readonly core: CoreSide;
  readonly #sockets: SocketSide;
  readonly #parts: VirtualThreadsParts;
  readonly #network: ServerNetwork;
  readonly #ends: Set<VirtualEnd> = new Set();
  #isTurnPlanned = false;
  #isGone = false;
  /** Events that came while the process was stopped; null while it runs. */
  #waiting: (() => void)[] | null = null;

  constructor(parts: VirtualThreadsParts) {
    this.#parts = parts;
    this.#network = new ServerNetwork(parts.network, parts.host, this);
    const rings = { toCore: makeRing(RING_BYTES), toThread: makeRing(RING_BYTES) };
    const wakeCore = (): void => {
      parts.timeline.plan(this.#delayMs(), () => parts.door.deliver(() => {}));
    };
    this.#sockets = new SocketSide(rings, wakeCore);
    this.core = new CoreSide(rings, () => this.#mark(), {
      onStream: parts.onStream,
      onGone: () => {},
      onNote: () => {},
      onBytesRead: () => {},
    });
    this.#mark();
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Its sockets are closed by the kernel. */
  die(): void {
    this.vanish();
    for (const end of this.#ends) end.destroy();
    this.#ends.clear();
  }

  accept(end: VirtualEnd): void {
    this.#ends.add(end);
    this.deliver(() => this.#network.open(end, (stream) => this.#sockets.accept(stream, 0)));
  }

  pause(): void {
    this.#waiting ??= [];
  }

  resume(): void {
    const waiting = this.#waiting;
    if (waiting === null) return;
    this.#waiting = null;
    for (const event of waiting) this.deliver(event);
    this.#mark();
  }

  vanish(): void {
    this.#isGone = true;
  }

  deliver(event: () => void): void {
    if (this.#isGone) return;
    if (this.#waiting !== null) {
      this.#waiting.push(event);
      return;
    }
    event();
    this.#mark();
  }

  deliverLater(event: () => void): void {
    this.#parts.timeline.plan(0, () => this.deliver(event));
  }

  #mark(): void {
    if (this.#isTurnPlanned) return;
    this.#isTurnPlanned = true;
    this.#parts.timeline.plan(this.#delayMs(), this.#turn);
  }

  readonly #turn = (): void => {
    this.#isTurnPlanned = false;
    if (this.#isGone || this.#waiting !== null) return;
    for (const end of this.#ends) if (end.isClosed) this.#ends.delete(end);
    this.#sockets.receive();
    if (!this.#sockets.publish()) this.#mark();
  };

  /** Until a thread has the processor: as a rule at once, sometimes not before others have had it. */
  #delayMs(): number {
    const { random } = this.#parts;
    return random.chance(LATE_CHANCE) ? random.fraction() * LATE_MS_MAX : random.fraction() * DELAY_MS_MAX;
  }
}

/** Small, so that they are full now and then. */
const RING_BYTES = 16 * 1024;
const DELAY_MS_MAX = 0.05;
const LATE_CHANCE = 0.02;
const LATE_MS_MAX = 20;
/** Milliseconds from the death of a thread until the core knows of it. */
const NOTICE_MS_MAX = 20;

import {
  type ByteStream,
  type CoreOptions,
  type MembershipStore,
  type MemoryDisk,
  type PaceLimits,
  ServerCore,
  type StreamEvents,
  type TraceEvent,
} from '@meerkat/core';
import { PLAIN_AUTHENTICATOR } from './plain-authenticator.ts';
import type { SeededRandom } from './seeded-random.ts';
import { type EventDoor, ServerNetwork } from './server-network.ts';
import type { PlannedEvent, Timeline } from './timeline.ts';
import type { VirtualClock } from './virtual-clock.ts';
import type { VirtualNetwork } from './virtual-network.ts';
import { VirtualThreads } from './virtual-threads.ts';

/** How long the effects of a virtual disk take, milliseconds. */
export interface DiskQuality {
  readonly effectMinMs: number;
  readonly effectMaxMs: number;
  /** Of syncs. Default: as of the others. */
  readonly syncMinMs?: number | undefined;
  readonly syncMaxMs?: number | undefined;
}

export interface ServerProcessParts {
  readonly host: string;
  readonly clientPort: number;
  /** I/O threads between clients and core; 0 = none. */
  readonly clientThreads: number;
  /** It does little in a turn, and turns take time. */
  readonly isSlow: boolean;
  readonly options: CoreOptions;
  readonly membershipStore: MembershipStore | null;
  readonly timeline: Timeline;
  readonly clock: VirtualClock;
  readonly network: VirtualNetwork;
  readonly random: SeededRandom;
  readonly disk: MemoryDisk;
  /** As it is now; it changes. */
  readonly diskQuality: () => DiskQuality;
  readonly onTrace: (event: TraceEvent) => void;
  /** A txn was applied because it is committed. */
  readonly onApplied: (zxid: number, treeDigest: bigint) => void;
  /** A turn has ended: the core has produced all of its output. */
  readonly onTurn: () => void;
  /** The process ends by itself: null after `stop`. */
  readonly onEnded: (error: Error | null) => void;
}

/**
 * One life of a server: what ends with the process. Turns events of the virtual world into those of a core.
 *
 *     stream, timer, disk ──deliver──► core ──► at the same moment: onTurnEnd, disk, timer
 *                            └ while it is stopped (SIGSTOP) they wait in order
 */
export class ServerProcess implements EventDoor {
  readonly core: ServerCore;
  readonly #parts: ServerProcessParts;
  readonly #network: ServerNetwork;
  readonly #threads: VirtualThreads | null;
  #isGone = false;
  #isTurnPlanned = false;
  /** When the pending disk operation completes; null when there is none. */
  #diskEffect: PlannedEvent | null = null;
  /** When a hanging disk resumes, in milliseconds. */
  #stalledUntilMs = 0;
  #tick: PlannedEvent | null = null;
  /** Events that came while the process was stopped; null while it runs. */
  #waiting: (() => void)[] | null = null;

  constructor(parts: ServerProcessParts) {
    const { host, clientPort, clock, network, random, disk } = parts;
    this.#parts = parts;
    this.#network = new ServerNetwork(network, host, this);
    const ports = {
      clock,
      random,
      disk,
      authenticator: PLAIN_AUTHENTICATOR,
      trace: { emit: parts.onTrace },
      network: this.#network,
      membershipStore: parts.membershipStore,
    };
    this.core = new ServerCore(
      ports,
      parts.options,
      {
        fourLetterWords: () => ({
          isWord: (word) => word === 'ruok' || word === 'isro',
          hasArgument: () => false,
          answer: answerWord,
        }),
        onApplied: parts.onApplied,
        ...(parts.isSlow ? { pace: SLOW_PACE } : {}),
      },
      {
        onServing: () => {},
        onStopped: () => this.deliverLater(() => parts.onEnded(null)),
        onFailed: (error) => this.deliverLater(() => parts.onEnded(error)),
      },
    );
    const onStream = (stream: ByteStream): StreamEvents => this.core.onStreamOpened(stream);
    const threads =
      parts.clientThreads === 0
        ? null
        : new VirtualThreads({
            count: parts.clientThreads,
            host,
            network,
            timeline: parts.timeline,
            random: random.fork('threads'),
            door: this,
            onStream,
          });
    this.#threads = threads;
    network.listen(host, clientPort, (end) => {
      if (threads === null) this.deliver(() => this.#network.open(end, onStream));
      else if (!this.#isGone) threads.accept(end);
    });
    this.core.start();
    this.#mark();
  }

  get isPaused(): boolean {
    return this.#waiting !== null;
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

  /** Ends a session at this server by hand. */
  expireSession(id: bigint): void {
    this.deliver(() => {
      if (this.core.endsSessions) this.core.expireSession(id, 'operator');
    });
  }

  /** Shuts down gracefully; `onEnded` follows. */
  stop(): void {
    this.deliver(() => this.core.stop());
  }

  /** Kills an I/O thread. @returns false when there is none, or the process is stopped */
  killThread(): boolean {
    return this.#waiting === null && this.#threads !== null && this.#threads.kill();
  }

  /** SIGSTOP. */
  pause(): void {
    this.#waiting ??= [];
    this.#threads?.pause();
  }

  /** SIGCONT. */
  resume(): void {
    const waiting = this.#waiting;
    if (waiting === null) return;
    this.#waiting = null;
    for (const event of waiting) this.deliver(event);
    this.#threads?.resume();
    this.#mark();
  }

  /** The process is gone. */
  vanish(): void {
    this.#isGone = true;
    this.#threads?.vanish();
    if (this.#tick !== null) this.#parts.timeline.cancel(this.#tick);
  }

  /** The disk does nothing for a while. */
  stallDisk(ms: number): void {
    this.#stalledUntilMs = Math.max(this.#stalledUntilMs, this.#parts.timeline.nowMs + ms);
  }

  /** A hanging disk resumes now, and slow operations complete. */
  healDisk(): void {
    this.#stalledUntilMs = 0;
    const { timeline } = this.#parts;
    if (this.#diskEffect === null || this.#diskEffect.isOver) return;
    timeline.cancel(this.#diskEffect);
    this.#diskEffect = timeline.plan(0, this.#completeDisk);
  }

  /** Events of the same moment belong to one turn. */
  #mark(): void {
    if (this.#isTurnPlanned) return;
    this.#isTurnPlanned = true;
    this.#parts.timeline.plan(0, this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#isTurnPlanned = false;
    if (this.#isGone || this.#waiting !== null) return;
    this.#threads?.receive();
    this.core.onTurnEnd();
    if (this.#threads?.publish() === false) this.#mark();
    this.#parts.onTurn();
    this.#runDisk();
    this.#armTick();
  };

  /** The disk performs one operation at a time. */
  #runDisk(): void {
    const { disk, timeline, random } = this.#parts;
    const next = disk.nextOperation;
    if (this.#diskEffect !== null || next === null) return;
    const { effectMinMs, effectMaxMs, syncMinMs = effectMinMs, syncMaxMs = effectMaxMs } = this.#parts.diskQuality();
    const isSync = next === 'sync';
    const minMs = isSync ? syncMinMs : effectMinMs;
    const takesMs = minMs + random.fraction() * ((isSync ? syncMaxMs : effectMaxMs) - minMs);
    this.#diskEffect = timeline.plan(Math.max(takesMs, this.#stalledUntilMs - timeline.nowMs), this.#completeDisk);
  }

  readonly #completeDisk = (): void => {
    // An operation takes effect when its process is notified, so not while the process is stopped.
    this.deliver(() => {
      this.#diskEffect = null;
      this.#parts.disk.deliver();
      this.#runDisk();
    });
  };

  #armTick(): void {
    const { timeline, clock, isSlow, random } = this.#parts;
    const deadlineMs = this.core.nextDeadlineMs();
    if (deadlineMs === Number.POSITIVE_INFINITY) return;
    const delayMs = deadlineMs === 0 && isSlow ? random.fraction() * SLOW_TURN_MS : clock.delayUntil(deadlineMs);
    // A timer that fires too early does no harm: it is then rearmed.
    if (this.#tick !== null && !this.#tick.isOver) {
      if (this.#tick.atMs <= timeline.nowMs + delayMs) return;
      timeline.cancel(this.#tick);
    }
    this.#tick = timeline.plan(delayMs, this.#onTimer);
  }

  readonly #onTimer = (): void => {
    if (this.#isGone) return;
    const deadlineMs = this.core.nextDeadlineMs();
    if (this.#parts.clock.delayUntil(deadlineMs) > 0 && this.#waiting === null) this.#armTick();
    else this.deliver(() => this.core.onTick());
  };
}

/** A change or two. */
const SLOW_PACE: PaceLimits = { unitsPerTurn: 20, changesAtOnce: 1, preparedPerTurn: 1 };
/** How long a turn that leaves work to the next one takes at most. */
const SLOW_TURN_MS = 0.3;

function answerWord(word: string): string {
  return word === 'isro' ? 'rw' : 'imok';
}

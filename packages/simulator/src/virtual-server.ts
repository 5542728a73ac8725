import {
  type ByteStream,
  type CoreOptions,
  DEFAULT_CORE_OPTIONS,
  MemoryDisk,
  type PeerAddress,
  ServerCore,
  type StreamEvents,
  type TraceEvent,
} from '@meerkat/core';
import { PLAIN_AUTHENTICATOR } from './plain-authenticator.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { Timeline } from './timeline.ts';
import type { EndEvents, VirtualEnd, VirtualNetwork } from './virtual-network.ts';

/** How long the effects of a virtual disk take. */
export interface DiskQuality {
  readonly effectMinMs: number;
  readonly effectMaxMs: number;
}

export const DEFAULT_DISK: DiskQuality = { effectMinMs: 0.05, effectMaxMs: 0.5 };

export interface VirtualServerOptions {
  readonly host: string;
  readonly port?: number | undefined;
  readonly disk?: DiskQuality | undefined;
  readonly core?: Partial<CoreOptions> | undefined;
}

export interface VirtualServerParts {
  readonly timeline: Timeline;
  readonly network: VirtualNetwork;
  readonly random: SeededRandom;
  readonly onTrace: (event: TraceEvent) => void;
}

/** A real server core as a process on a virtual host: its disk outlives it. */
export class VirtualServer {
  readonly host: string;
  readonly port: number;
  readonly #parts: VirtualServerParts;
  readonly #diskQuality: DiskQuality;
  readonly #options: CoreOptions;
  readonly #disk: MemoryDisk = new MemoryDisk();
  #process: ServerProcess | null = null;

  constructor(options: VirtualServerOptions, parts: VirtualServerParts) {
    this.host = options.host;
    this.port = options.port ?? 2181;
    this.#parts = parts;
    this.#diskQuality = options.disk ?? DEFAULT_DISK;
    this.#options = {
      ...DEFAULT_CORE_OPTIONS,
      snapshotDirectory: '/data/version-2',
      logDirectory: '/data/version-2',
      tickTimeMs: 500,
      sessionTimeoutMinMs: 1000,
      sessionTimeoutMaxMs: 60_000,
      connectionsPerHostMax: 0,
      preallocateBytes: 64 * 1024,
      ...options.core,
    };
  }

  get isRunning(): boolean {
    return this.#process !== null;
  }

  /** Why the process ended by itself; null while it has not. */
  get failure(): Error | null {
    return this.#process?.failure ?? null;
  }

  start(): void {
    if (this.#process !== null) return;
    this.#process = new ServerProcess(this.host, this.port, this.#disk, this.#diskQuality, this.#options, this.#parts);
  }

  /** The process ends without a word: kill -9, or with `losesPower` the whole machine. */
  crash(options: { readonly losesPower?: boolean } = {}): void {
    const process = this.#process;
    if (process === null) return;
    this.#process = null;
    process.vanish();
    const { random } = this.#parts;
    if (options.losesPower === true) this.#disk.crash(random);
    else this.#disk.kill(random);
    this.#parts.network.dropHost(this.host);
  }
}

/** One life of a server: what ends with the process. */
class ServerProcess {
  failure: Error | null = null;
  readonly #core: ServerCore;
  readonly #disk: MemoryDisk;
  readonly #diskQuality: DiskQuality;
  readonly #parts: VirtualServerParts;
  #isGone = false;
  #isTurnPlanned = false;
  #isDiskBusy = false;
  #cancelTick: () => void = () => {};

  constructor(
    host: string,
    port: number,
    disk: MemoryDisk,
    diskQuality: DiskQuality,
    options: CoreOptions,
    parts: VirtualServerParts,
  ) {
    this.#disk = disk;
    this.#diskQuality = diskQuality;
    this.#parts = parts;
    const { timeline, network, random } = parts;
    this.#core = new ServerCore(
      {
        clock: { monotonicMs: () => timeline.nowMs, wallMs: () => EPOCH_MS + Math.floor(timeline.nowMs) },
        random,
        disk,
        authenticator: PLAIN_AUTHENTICATOR,
        trace: { emit: parts.onTrace },
      },
      options,
      { fourLetterWords: () => ({ isWord: (word) => word === 'ruok' || word === 'isro', answer: answerWord }) },
      {
        onServing: () => {},
        onStopped: () => {},
        onFailed: (error) => {
          this.failure = error;
        },
      },
    );
    network.listen(host, port, (end) => this.#accept(end));
    this.#core.start();
    this.#mark();
  }

  vanish(): void {
    this.#isGone = true;
    this.#cancelTick();
  }

  #accept(end: VirtualEnd): EndEvents {
    const events: StreamEvents = this.#core.onStreamOpened(new ServerStream(end));
    this.#mark();
    const deliver = (event: () => void): void => {
      if (this.#isGone) return;
      event();
      this.#mark();
    };
    return {
      onBytes: (chunk) => deliver(() => events.onBytes(chunk)),
      onDrain: () => deliver(() => events.onDrain()),
      onClosed: (reason) => deliver(() => events.onClosed(reason)),
    };
  }

  /** Events of the same moment belong to one turn. */
  #mark(): void {
    if (this.#isTurnPlanned) return;
    this.#isTurnPlanned = true;
    this.#parts.timeline.after(0, () => {
      this.#isTurnPlanned = false;
      if (this.#isGone) return;
      this.#core.onTurnEnd();
      this.#runDisk();
      this.#armTick();
    });
  }

  /** The disk does one thing after the other. */
  #runDisk(): void {
    if (this.#isDiskBusy || this.#disk.pendingCount === 0) return;
    this.#isDiskBusy = true;
    const { effectMinMs, effectMaxMs } = this.#diskQuality;
    const takesMs = effectMinMs + this.#parts.random.fraction() * (effectMaxMs - effectMinMs);
    this.#parts.timeline.after(takesMs, () => {
      this.#isDiskBusy = false;
      if (this.#isGone) return;
      this.#disk.deliver();
      this.#mark();
      this.#runDisk();
    });
  }

  #armTick(): void {
    this.#cancelTick();
    const deadlineMs = this.#core.nextDeadlineMs();
    if (deadlineMs === Number.POSITIVE_INFINITY) return;
    this.#cancelTick = this.#parts.timeline.after(deadlineMs - this.#parts.timeline.nowMs, () => {
      if (this.#isGone) return;
      this.#core.onTick();
      this.#mark();
    });
  }
}

/** The stream that a core sees. */
class ServerStream implements ByteStream {
  readonly remote: PeerAddress;
  readonly #end: VirtualEnd;

  constructor(end: VirtualEnd) {
    this.#end = end;
    this.remote = { ip: new Uint8Array([10, 0, 0, 1]), host: '10.0.0.1', port: end.peerPort };
  }

  get queuedBytes(): number {
    return this.#end.queuedBytes;
  }

  write(bytes: Uint8Array): void {
    this.#end.write(bytes);
  }

  end(): void {
    this.#end.end();
  }

  destroy(): void {
    this.#end.destroy();
  }

  pause(): void {
    this.#end.pause();
  }

  resume(): void {
    this.#end.resume();
  }
}

/** 2023-11-14, when virtual time begins. */
const EPOCH_MS = 1_700_000_000_000;

function answerWord(word: string): string {
  return word === 'isro' ? 'rw' : 'imok';
}

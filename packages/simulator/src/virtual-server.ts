import {
  type CoreOptions,
  DEFAULT_CORE_OPTIONS,
  type DiskFault,
  type MembershipStore,
  MemoryDisk,
  type ServerCore,
  type TraceEvent,
} from '@meerkat/core';
import { type Membership, ZXID_ZERO } from '@meerkat/protocol';
import type { SeededRandom } from './seeded-random.ts';
import { type DiskQuality, ServerProcess } from './server-process.ts';
import type { Timeline } from './timeline.ts';
import type { VirtualClock } from './virtual-clock.ts';
import type { VirtualNetwork } from './virtual-network.ts';

export type { DiskQuality } from './server-process.ts';

export const DEFAULT_DISK: DiskQuality = { effectMinMs: 0.05, effectMaxMs: 0.5 };

type Survivors = Parameters<MemoryDisk['crash']>[0];

export interface VirtualServerOptions {
  readonly host: string;
  /** Where clients connect. Default 2181. */
  readonly port?: number | undefined;
  /** I/O threads between clients and core. Default 0. */
  readonly clientThreads?: number | undefined;
  /** It does little in a turn, and turns take time. Default false. */
  readonly isSlow?: boolean | undefined;
  readonly disk?: DiskQuality | undefined;
  /** Milliseconds after which a process that ended by itself is started again; null, the default: never. */
  readonly restartDelayMs?: number | null | undefined;
  readonly core?: Partial<CoreOptions> | undefined;
}

export interface VirtualServerParts {
  readonly timeline: Timeline;
  readonly clock: VirtualClock;
  readonly network: VirtualNetwork;
  readonly random: SeededRandom;
  readonly onTrace: (server: VirtualServer, event: TraceEvent) => void;
  readonly onApplied: (server: VirtualServer, zxid: number, treeDigest: bigint) => void;
  readonly onTurn: (server: VirtualServer) => void;
  /** Something was done to it, or it exited by itself, in words. */
  readonly onChange: (server: VirtualServer, what: string) => void;
}

export type ServerRole = 'down' | 'solo' | 'looking' | 'leading' | 'following' | 'observing';

/** A real server core as a process on a virtual host: its disk outlives it. */
export class VirtualServer {
  readonly host: string;
  readonly port: number;
  readonly options: CoreOptions;
  readonly clock: VirtualClock;
  readonly #parts: VirtualServerParts;
  readonly #restartDelayMs: number | null;
  readonly #clientThreads: number;
  readonly #isSlow: boolean;
  readonly #ownDiskQuality: DiskQuality;
  #diskQuality: DiskQuality;
  #disk: MemoryDisk;
  #process: ServerProcess | null = null;
  #hasPower = true;
  #life = 0;
  #failure: Error | null = null;
  /** The membership in its files; null: that of its configuration. Survives a wipe, as it is stored beside zoo.cfg. */
  #kept: Membership | null = null;
  #isKeeping = false;
  #role: ServerRole = 'down';
  #epoch = 0;
  #committedZxid = 0;
  #committedEverZxid = 0;

  constructor(options: VirtualServerOptions, parts: VirtualServerParts) {
    this.host = options.host;
    this.port = options.port ?? 2181;
    this.clock = parts.clock;
    this.#parts = parts;
    this.#disk = this.#makeDisk();
    this.#restartDelayMs = options.restartDelayMs ?? null;
    this.#clientThreads = options.clientThreads ?? 0;
    this.#isSlow = options.isSlow ?? false;
    this.#ownDiskQuality = options.disk ?? DEFAULT_DISK;
    this.#diskQuality = this.#ownDiskQuality;
    this.options = {
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

  /* --------------------------------------------------------------------------------------- how it is doing ---- */

  get serverId(): number {
    return this.options.serverId;
  }

  get isRunning(): boolean {
    return this.#process !== null;
  }

  get isPaused(): boolean {
    return this.#process?.isPaused ?? false;
  }

  /** It serves clients. */
  get isServing(): boolean {
    return this.#process?.core.isServing ?? false;
  }

  /** Why the last process exited by itself; null when it did not. */
  get failure(): Error | null {
    return this.#failure;
  }

  /** The core of the running process; null when there is none. */
  get core(): ServerCore | null {
    return this.#process?.core ?? null;
  }

  get disk(): MemoryDisk {
    return this.#disk;
  }

  /** As last reported by its trace. */
  get role(): ServerRole {
    return this.#role;
  }

  /** The epoch that was established last in this life; 0 for none. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Last zxid that this life knows to be committed; 0 for none. */
  get committedZxid(): number {
    return this.#committedZxid;
  }

  /** The same over all its lives: what was committed stays so, even if no server remembers it. */
  get committedEverZxid(): number {
    return this.#committedEverZxid;
  }

  /** Lives so far. */
  get life(): number {
    return this.#life;
  }

  /* -------------------------------------------------------------------------------------- what happens to it ---- */

  /** Starts the process, on a host that has its power back. Without effect while one runs. */
  start(): void {
    if (this.#process !== null) return;
    const { timeline, network, random } = this.#parts;
    if (!this.#hasPower) network.restoreHost(this.host);
    this.#hasPower = true;
    this.#failure = null;
    this.#role = this.options.ensemble === null ? 'solo' : 'looking';
    this.#epoch = 0;
    this.#committedZxid = 0;
    const life = ++this.#life;
    this.#isKeeping = false;
    this.#parts.onChange(this, 'starts');
    this.#process = new ServerProcess({
      host: this.host,
      clientPort: this.port,
      clientThreads: this.#clientThreads,
      isSlow: this.#isSlow,
      options: this.#optionsOfNow(),
      membershipStore: this.#membershipStore(() => life === this.#life && this.#process !== null),
      timeline,
      clock: this.clock,
      network,
      random,
      disk: this.#disk,
      diskQuality: () => this.#diskQuality,
      onTrace: (event) => this.#onTrace(event),
      onApplied: (zxid, treeDigest) => this.#parts.onApplied(this, zxid, treeDigest),
      onTurn: () => this.#parts.onTurn(this),
      onEnded: (error) => {
        if (life === this.#life) this.#onEnded(error);
      },
    });
  }

  #optionsOfNow(): CoreOptions {
    const { ensemble } = this.options;
    if (this.#kept === null || ensemble === null) return this.options;
    const isMember = this.#kept.members.some(({ serverId }) => serverId === this.serverId);
    const own = ensemble.membership.members.filter(({ serverId }) => serverId === this.serverId);
    // A removed server does not start, unless an operator has added it to its list again.
    const membership = isMember
      ? this.#kept
      : { version: ZXID_ZERO, members: [...this.#kept.members, ...own], hierarchy: null };
    return { ...this.options, ensemble: { ...ensemble, membership } };
  }

  /** Writes are atomic. */
  #membershipStore(isAlive: () => boolean): MembershipStore | null {
    if (!this.options.reconfigEnabled) return null;
    return {
      keep: (committed, _proposed, done) => {
        const { timeline, random } = this.#parts;
        this.#isKeeping = true;
        timeline.plan(random.between(0, 20), () => {
          if (!isAlive()) return;
          this.#isKeeping = false;
          if (committed.version > 0) this.#kept = committed;
          this.#process?.deliver(() => done(null));
        });
      },
    };
  }

  /** A membership is being written. */
  get isKeeping(): boolean {
    return this.#isKeeping;
  }

  /** The membership that a restart would find; null: that of its configuration. */
  get keptMembership(): Membership | null {
    return this.#kept;
  }

  /** Ends a session by hand. No effect without a quorum, or during a hand-over. */
  expireSession(id: bigint): void {
    this.#process?.expireSession(id);
  }

  /** Kills one of its I/O threads. @returns false when none runs */
  killThread(): boolean {
    if (this.#process === null || !this.#process.killThread()) return false;
    this.#parts.onChange(this, 'loses an I/O thread');
    return true;
  }

  /** Shuts the process down gracefully. */
  stop(): void {
    if (this.#process === null) return;
    this.#parts.onChange(this, 'is asked to stop');
    this.#process.stop();
  }

  /**
   * Kills the process, as by kill -9; with `losesPower` a power cut of the machine, whose disk keeps what was synced
   * and, of the rest, the `survivors`, drawn at random by default.
   */
  crash(options: { readonly losesPower?: boolean; readonly survivors?: Survivors | undefined } = {}): void {
    const losesPower = options.losesPower === true;
    // A machine without a process still has a page cache to lose.
    if (losesPower ? !this.#hasPower : this.#process === null) return;
    const { random, network } = this.#parts;
    this.#parts.onChange(this, losesPower ? 'loses its power' : 'is killed');
    this.#endProcess();
    if (losesPower) {
      this.#disk.crash(options.survivors ?? this.#drawSurvivors());
      this.#hasPower = false;
      network.dropHost(this.host);
    } else {
      this.#disk.kill(random);
      network.closeHost(this.host);
    }
  }

  /** SIGSTOP: nothing happens in the process until `resume`. Its kernel keeps receiving, as far as it has room. */
  pause(): void {
    if (this.#process === null || this.#process.isPaused) return;
    this.#parts.onChange(this, 'is paused');
    this.#process.pause();
    this.#parts.network.freezeHost(this.host);
  }

  /** SIGCONT: everything that waited happens now, timers included. */
  resume(): void {
    if (this.#process === null || !this.#process.isPaused) return;
    this.#parts.onChange(this, 'is resumed');
    this.#process.resume();
    this.#parts.network.thawHost(this.host);
  }

  /** Replaces the disk by an empty one. Kills the process first, if one runs. */
  wipe(): void {
    this.crash();
    this.#parts.onChange(this, 'gets an empty disk');
    this.#disk = this.#makeDisk();
  }

  /** Operations on different files, or on a directory, complete in any order. */
  #makeDisk(): MemoryDisk {
    const disk = new MemoryDisk();
    disk.order = this.#parts.random.fork('disk order');
    return disk;
  }

  setDiskQuality(quality: DiskQuality | null): void {
    this.#diskQuality = quality ?? this.#ownDiskQuality;
  }

  /** Makes an operation of the disk fail, once or, with `isLasting`, until `healDisk`. */
  failDisk(fault: DiskFault): void {
    this.#disk.failNext(fault);
  }

  /** The disk does nothing for a while. */
  stallDisk(ms: number): void {
    this.#process?.stallDisk(ms);
  }

  healDisk(): void {
    this.#diskQuality = this.#ownDiskQuality;
    this.#disk.clearFaults();
    this.#process?.healDisk();
  }

  /* ----------------------------------------------------------------------------------------------------------------- */

  /** What a power cut leaves of the writes that were not synced: nothing, all, the first of them, or any of them. */
  #drawSurvivors(): Survivors {
    const { random } = this.#parts;
    switch (random.between(0, 3)) {
      case 0:
        return 'nothing';
      case 1:
        return 'everything';
      case 2: {
        let left = random.between(0, 12);
        return { uint32: () => (left-- > 0 ? 1 : 0) };
      }
      default:
        return random;
    }
  }

  #endProcess(): void {
    this.#process?.vanish();
    this.#process = null;
    this.#role = 'down';
  }

  #onEnded(error: Error | null): void {
    const { timeline, network, random } = this.#parts;
    const life = this.#life;
    this.#parts.onChange(this, error === null ? 'has stopped' : `ends by itself: ${error.message}`);
    this.#endProcess();
    this.#failure = error;
    this.#disk.kill(random);
    network.closeHost(this.host);
    if (error === null || this.#restartDelayMs === null) return;
    timeline.plan(this.#restartDelayMs, () => {
      if (life === this.#life && this.#hasPower) this.start();
    });
  }

  #onTrace(event: TraceEvent): void {
    switch (event.kind) {
      case 'role-changed':
        this.#role = event.role;
        this.#epoch = 0;
        break;
      case 'epoch-established':
        this.#epoch = event.epoch;
        break;
      case 'committed':
        this.#committedZxid = event.zxid;
        this.#committedEverZxid = Math.max(this.#committedEverZxid, event.zxid);
        break;
      default:
    }
    this.#parts.onTrace(this, event);
  }
}

/**
 * A host for the storage only: a memory disk, a manual clock, and a server that only applies what is durable. Tests
 * append txns, deliver completions, end the process or cut the power, and check what is recovered.
 */
import {
  counterOf,
  JuteWriter,
  type MultiSubTxn,
  makeZxid,
  OPEN_ACL,
  OpCode,
  READ_ACL,
  StatOffset,
  type Txn,
  type TxnHeader,
  ZXID_ZERO,
  type Zxid,
} from '@meerkat/protocol';
import {
  type CoreOptions,
  DEFAULT_CORE_OPTIONS,
  DEFAULT_ENSEMBLE_OPTIONS,
  type EnsembleOptions,
} from '../base/options.ts';
import type { Clock, FileScans, Random, TraceEvent } from '../base/ports.ts';
import { ADLER_START, adler32 } from '../storage/adler32.ts';
import { MemoryDisk } from '../storage/memory-disk.ts';
import type { RecoverySummary } from '../storage/recovery.ts';
import { Storage } from '../storage/storage.ts';
import type { CarriedStorage, StorageEvents } from '../storage/storage-events.ts';
import { Database } from '../tree/database.ts';
import { SnapshotReader } from '../tree/snapshot-reader.ts';
import { SnapshotWriter } from '../tree/snapshot-writer.ts';
import { SILENT_EVENTS } from '../tree/tree-events.ts';
import type { History } from '../zab/history.ts';
import { TestCodec } from './test-codec.ts';

export const TEST_DIRECTORY = '/data/version-2';

/** For a member of some ensemble; the storage does not depend on the other members. */
export const TEST_ENSEMBLE: EnsembleOptions = {
  ...DEFAULT_ENSEMBLE_OPTIONS,
  membership: { version: ZXID_ZERO, members: [], hierarchy: null },
};

export interface AppendedTxn {
  readonly header: TxnHeader;
  readonly txn: Txn;
}

export class StorageHost {
  readonly disk: MemoryDisk;
  readonly trace: TraceEvent[] = [];
  readonly clock: Clock & { nowMs: number } = {
    nowMs: 0,
    monotonicMs() {
      return this.nowMs;
    },
    wallMs() {
      return 1_700_000_000_000 + this.nowMs;
    },
  };
  readonly options: CoreOptions;
  readonly storage: Storage;
  /** The durable txns, applied. */
  database: Database | null = null;
  summary: RecoverySummary | null = null;
  durable: Zxid = -1 as Zxid;
  failure: Error | null = null;
  isStopped = false;
  history: History | null = null;
  /** Epochs reported as durable, in order. */
  readonly epochs: string[] = [];
  refusal: string | null = null;
  installed = 0;
  recovered = 0;
  /** Appended since the recovery and not durable yet. */
  #pending: AppendedTxn[] = [];
  /** All appended txns, applied: for the digests. */
  #ahead: Database | null = null;
  #nextZxid = 0;

  /**
   * @param carriedState of the previous host, with the same disk
   * @param scans null: no other thread
   */
  constructor(
    disk: MemoryDisk = new MemoryDisk(),
    options: Partial<CoreOptions> = {},
    random: Random = new Dice(1),
    carriedState: CarriedStorage | null = null,
    scans: FileScans | null = null,
  ) {
    this.disk = disk;
    this.options = {
      ...DEFAULT_CORE_OPTIONS,
      snapshotDirectory: TEST_DIRECTORY,
      logDirectory: TEST_DIRECTORY,
      preallocateBytes: 64 * 1024,
      extendedTypesEnabled: true,
      ...options,
    };
    const trace = { emit: (event: TraceEvent) => void this.trace.push(event) };
    const events: StorageEvents = {
      onRecovered: (database, summary, history) => {
        this.summary = summary;
        this.#follow(database, history);
      },
      onStorageFailed: (error) => {
        this.failure = error;
      },
      onStorageStopped: () => {
        this.isStopped = true;
      },
    };
    const ports = { disk, snapshotCodec: new TestCodec(disk), scans, clock: this.clock, random, trace };
    this.storage = new Storage(ports, this.options, events, carriedState);
    this.storage.reportTo({
      onLogSynced: (durable) => {
        this.durable = durable;
        while (this.#pending[0] !== undefined && this.#pending[0].header.zxid <= durable) {
          const { header, txn } = this.#pending.shift()!;
          this.database!.apply(header, txn, SILENT_EVENTS);
        }
      },
      onEpochDurable: (name, epoch) => void this.epochs.push(`${name} ${epoch}`),
    });
  }

  #follow(database: Database, history: History): void {
    this.recovered++;
    this.history = history;
    this.database = database;
    this.#pending = [];
    this.durable = history.lastZxid;
    this.#nextZxid = history.lastZxid + 1;
  }

  truncate(zxid: Zxid): void {
    this.storage.truncate(zxid, {
      onTruncated: (database, history) => this.#follow(database, history),
      onTruncateRefused: (reason) => {
        this.refusal = reason;
      },
    });
  }

  installSnapshot(database: Database): void {
    this.storage.installSnapshot(database, () => {
      this.installed++;
    });
  }

  /** Starts and delivers until the recovery has ended. */
  recover(options?: { readonly isHeld: boolean }): this {
    this.storage.recover(options);
    while (this.database === null && this.failure === null && this.disk.deliver());
    return this;
  }

  /** Prepares for `append`: from here on what was appended is also applied ahead, for its digests. */
  startAppending(): this {
    this.#ahead = new Database(this.options, { emit() {} });
    copyDatabase(this.database!, this.#ahead);
    return this;
  }

  /** Appends a txn under the next zxid, with the digest that the tree will have. */
  append(txn: Txn, options: { readonly sessionId?: bigint; readonly zxid?: number } = {}): AppendedTxn {
    const zxid = (options.zxid ?? this.#nextZxid) as Zxid;
    this.#nextZxid = zxid + 1;
    const header = {
      sessionId: options.sessionId ?? 0x100000000000001n,
      cxid: zxid % 1000,
      zxid,
      // An hour apart: a learner logs in one write what its leader has proposed over a long time.
      time: 1_700_000_000_000 + counterOf(zxid) * 3_600_000,
    };
    const ahead = this.#ahead!;
    ahead.apply(header, txn, SILENT_EVENTS);
    const appended = { header, txn };
    this.#pending.push(appended);
    this.storage.append(header, txn, this.options.digestEnabled ? ahead.tree.treeDigest() : null);
    return appended;
  }

  /** Appends a random txn. */
  appendRandom(dice: Dice): AppendedTxn {
    const { txn, sessionId } = randomTxn(dice, this.#ahead!);
    return this.append(txn, { sessionId });
  }

  /** The next txn is the first one of an epoch. */
  beginEpoch(epoch: number): void {
    this.#nextZxid = makeZxid(epoch, 1);
  }

  /** Ends the turn and delivers everything. */
  settle(): void {
    do this.storage.flush();
    while (this.disk.deliver());
  }

  eventsOf<K extends TraceEvent['kind']>(kind: K): Extract<TraceEvent, { kind: K }>[] {
    return this.trace.filter((event): event is Extract<TraceEvent, { kind: K }> => event.kind === kind);
  }
}

const { cversion, ephemeralOwner, dataLength, numChildren } = StatOffset;
const STAT_INTS = [cversion, ephemeralOwner, ephemeralOwner + 4, dataLength, numChildren];

/** Everything that a database contains, as text that is equal for equal databases. */
export function describeDatabase(database: Database): string {
  const { tree } = database;
  const lines: string[] = [];
  const visit = (z: number): void => {
    const data = tree.dataOf(z);
    lines.push(
      [
        tree.znodes.pathOf(z),
        data === null ? 'null' : Array.from(data).join(','),
        JSON.stringify(tree.acls.get(tree.znodes.aclOf(z))),
        tree.czxidOf(z),
        tree.mzxidOf(z),
        tree.pzxidOf(z),
        tree.ctimeOf(z),
        tree.mtimeOf(z),
        tree.versionOf(z),
        tree.aversionOf(z),
        tree.znodes.sequenceOf(z),
        tree.persistedOwnerOf(z).toString(16),
        // The stat as clients see it, of which not everything is persisted.
        STAT_INTS.map((offset) => tree.znodes.getStatInt(z, offset)).join(','),
      ].join(' '),
    );
    tree.forEachChild(z, visit);
  };
  visit(tree.znodes.find('/'));
  for (const [id, timeoutMs] of database.sessions) lines.push(`session ${id.toString(16)} ${timeoutMs}`);
  return lines.sort().join('\n');
}

/** A second, simple implementation of recovery: every txn up to a zxid, from the first one on. */
export function databaseAt(history: readonly AppendedTxn[], zxid: number, options: CoreOptions): Database {
  const database = new Database(options, { emit() {} });
  for (const { header, txn } of history) if (header.zxid <= zxid) database.apply(header, txn, SILENT_EVENTS);
  return database;
}

/**
 * A directory after some epochs of random txns: several log files, a snapshot now and then, several epochs in one file.
 *
 * @returns the disk, and every txn of its history
 */
export function grownDirectory(
  dice: Dice,
  options: Partial<CoreOptions>,
): { readonly disk: MemoryDisk; readonly history: readonly AppendedTxn[] } {
  const disk = new MemoryDisk();
  const history: AppendedTxn[] = [];
  for (let epoch = 1; epoch <= 3; epoch++) {
    const host = new StorageHost(disk, options, dice).recover().startAppending();
    host.storage.allowSnapshots();
    host.beginEpoch(epoch);
    for (let turn = 2 + dice.below(6); turn > 0; turn--) {
      for (let i = 1 + dice.below(5); i > 0; i--) history.push(host.appendRandom(dice));
      host.settle();
      if (dice.below(4) === 0) {
        host.clock.nowMs += 1000;
        host.storage.onTick(host.clock.nowMs);
        host.settle();
      }
    }
    host.storage.stop();
    host.settle();
  }
  return { disk, history };
}

/** The logs and snapshots of some directories, or those that were set aside: their bytes by original name. */
export function historyFiles(
  disk: MemoryDisk,
  directories: readonly string[] = [TEST_DIRECTORY],
): Map<string, string[]> {
  const files = new Map<string, string[]>();
  for (const directory of directories) {
    for (const name of disk.names(directory)) {
      const own = /^(?:replaced-\d+-[0-9a-f]+-)?((?:log|snapshot)\.[0-9a-f]+)$/.exec(name)?.[1];
      if (own === undefined) continue;
      const bytes = disk.peek(`${directory}/${name}`)!;
      const content = `${bytes.length} ${adler32(ADLER_START, bytes, 0, bytes.length)}`;
      files.set(own, [...(files.get(own) ?? []), content]);
    }
  }
  return files;
}

/** Names in the directory without the mark and the files set aside. */
export function liveNames(disk: MemoryDisk, directory: string = TEST_DIRECTORY): string[] {
  return disk.names(directory).filter((name) => name !== 'durableZxid' && !name.startsWith('replaced-'));
}

/** Another disk with the same files, all durable, not locked. */
export function copyDisk(disk: MemoryDisk, directory: string = TEST_DIRECTORY): MemoryDisk {
  const copy = new MemoryDisk();
  for (const name of disk.names(directory)) copy.poke(`${directory}/${name}`, disk.peek(`${directory}/${name}`)!);
  return copy;
}

function copyDatabase(source: Database, target: Database): void {
  const writer = new JuteWriter();
  const body = new SnapshotWriter(source);
  while (!body.writeSlice(writer, 1 << 20));
  const reader = new SnapshotReader(target);
  reader.read(writer.bytes, 0, writer.position);
  target.tree.lastZxid = source.lastZxid;
}

/** A seeded pseudo-random generator (xorshift). */
export class Dice implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed * 0x9e3779b1 + 0x85ebca6b) >>> 0 || 1;
    for (let i = 0; i < 4; i++) this.uint32();
  }

  uint32(): number {
    let state = this.#state;
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    this.#state = state >>> 0;
    return this.#state;
  }

  /** 0 … bound − 1. */
  below(bound: number): number {
    return this.uint32() % bound;
  }
}

const SESSION_IDS = [0x100000000000001n, 0x100000000000002n, 0x7f00000000000003n];

/** A txn as a leader would prepare it for `database`, with few paths so that txns conflict. */
export function randomTxn(dice: Dice, database: Database): { txn: Txn; sessionId: bigint } {
  const sessionId = SESSION_IDS[dice.below(SESSION_IDS.length)]!;
  const { tree } = database;
  const path = `/${'abc'[dice.below(3)]}${dice.below(3) === 0 ? `/${'xyz'[dice.below(3)]}` : ''}`;
  const txn = ((): Txn => {
    switch (dice.below(12)) {
      case 0:
        return { type: OpCode.createSession, timeoutMs: 4000 + dice.below(4) * 1000 };
      case 1:
        return { type: OpCode.closeSession, paths: tree.ephemeralsOf(sessionId) };
      case 2:
        return { type: OpCode.error, error: -101 };
      case 3:
        return { type: OpCode.multi, txns: [changeOf(dice, database, path, dice.below(2000))] };
      default:
        return changeOf(dice, database, path, dice.below(10) === 0 ? dice.below(5000) : dice.below(100));
    }
  })();
  return { txn, sessionId };
}

function changeOf(dice: Dice, database: Database, path: string, dataBytes: number): MultiSubTxn {
  const { tree } = database;
  const z = tree.znodes.find(path);
  const data = dice.below(10) === 0 ? null : Uint8Array.from({ length: dataBytes }, () => 1 + dice.below(255));
  if (z === 0) {
    const slash = path.lastIndexOf('/');
    const parent = tree.znodes.find(path.slice(0, slash));
    if (parent === 0 || tree.ownerOf(parent) !== 0n) return { type: OpCode.error, error: -101 };
    const parentCversion = tree.znodes.sequenceOf(parent) + 1;
    const acl = dice.below(3) === 0 ? READ_ACL : OPEN_ACL;
    if (dice.below(6) === 0) return { type: OpCode.createContainer, path, data, acl, parentCversion };
    const isEphemeral = dice.below(3) === 0;
    return { type: OpCode.create, path, data, acl, isEphemeral, parentCversion };
  }
  if (tree.znodes.childCountOf(z) === 0 && dice.below(3) === 0) return { type: OpCode.delete, path };
  if (dice.below(5) === 0) {
    const acl = [{ perms: dice.below(32), scheme: 'world', id: 'anyone' }];
    return { type: OpCode.setACL, path, acl, version: tree.aversionOf(z) + 1 };
  }
  return { type: OpCode.setData, path, data, version: tree.versionOf(z) + 1 };
}

/** What has become of a znode, txn by txn, from the logs and the oldest snapshot. */
import { type Acl, OpCode, type Txn, type TxnHeader, type Zxid } from '@meerkat/protocol';
import type { ArchiveFiles } from './archive-files.ts';
import { scanSnapshot } from './snapshot-scan.ts';
import { decodeTxn, readHistory } from './txn-history.ts';

export interface ZnodeState {
  readonly data: Uint8Array | null;
  /** null: older than what there is. */
  readonly acl: readonly Acl[] | null;
  /** Of an ephemeral: its session; else 0n. null: older than what there is. */
  readonly owner: bigint | null;
}

export interface ZnodeChange {
  readonly zxid: Zxid;
  /** Wall clock of the leader, milliseconds. */
  readonly timeMs: number;
  /** Who asked for it; 0n: the server itself, as for empty containers. */
  readonly session: bigint;
  readonly path: string;
  readonly change: 'created' | 'changed' | 'deleted' | 'acl';
  /** The version (of an ACL: aversion) afterwards; null of a deletion. */
  readonly version: number | null;
  /** null: it was not there; undefined: older than what there is. */
  readonly old: ZnodeState | null | undefined;
  readonly now: ZnodeState | null;
}

export interface ZnodeHistoryOptions {
  readonly path: string;
  /** Also what is below it. */
  readonly isRecursive: boolean;
  readonly upTo: Zxid | null;
  onChange(change: ZnodeChange): void;
  onSlice?(): Promise<void> | undefined;
  onWarning(text: string): void;
  readonly signal?: AbortSignal;
}

/** Memory: the states of the znodes that are asked about. @throws ArchiveError */
export async function readZnodeHistory(files: ArchiveFiles, options: ZnodeHistoryOptions): Promise<void> {
  const { snapshots, logs } = await files.list();
  const [oldest] = snapshots;
  const [firstLog] = logs;
  // Of txns that are older than the snapshot the state before is not known.
  const hasBase =
    oldest !== undefined && (firstLog === undefined || firstLog.zxid <= oldest.zxid + 1 || oldest.zxid === 0);
  const tracker = new Tracker(options);
  if (hasBase && oldest !== undefined) {
    await using file = await files.open(oldest.name);
    await scanSnapshot(
      file,
      {
        onZnode: ({ path, data, acl, ephemeralOwner, mzxid }) => {
          if (!tracker.isWanted(path)) return;
          // It changed while the snapshot was taken: the log says how.
          if (mzxid > oldest.zxid || acl === null) return;
          tracker.begin(path, { data: data && Uint8Array.from(data), acl, owner: ephemeralOwner });
        },
      },
      options.signal,
    );
  }
  await readHistory(
    files,
    { after: (oldest?.zxid ?? -1) as Zxid, upTo: options.upTo, isStrict: false },
    {
      onTxn: (entry, file) => {
        const { header, txn } = decodeTxn(entry, files.pathOf(file.name));
        tracker.apply(header, txn);
        return true;
      },
      onWarning: options.onWarning,
      onSlice: () => options.onSlice?.(),
    },
    options.signal,
  );
}

class Tracker {
  readonly #options: ZnodeHistoryOptions;
  /** What is known. A znode that was deleted while the snapshot was taken is not in it, although txns change it. */
  readonly #states = new Map<string, ZnodeState>();

  constructor(options: ZnodeHistoryOptions) {
    this.#options = options;
  }

  isWanted(path: string): boolean {
    const { path: top, isRecursive } = this.#options;
    return path === top || (isRecursive && (top === '/' || path.startsWith(`${top}/`)));
  }

  begin(path: string, state: ZnodeState): void {
    this.#states.set(path, state);
  }

  apply(header: TxnHeader, txn: Txn): void {
    switch (txn.type) {
      case OpCode.create:
      case OpCode.create2:
      case OpCode.createContainer:
      case OpCode.createTTL: {
        const isEphemeral = 'isEphemeral' in txn && txn.isEphemeral;
        const now = { data: copyOf(txn.data), acl: txn.acl, owner: isEphemeral ? header.sessionId : 0n };
        this.#report(header, txn.path, 'created', 0, now);
        return;
      }
      case OpCode.setData:
      case OpCode.reconfig: {
        const old = this.#states.get(txn.path);
        const now = { data: copyOf(txn.data), acl: old?.acl ?? null, owner: old?.owner ?? null };
        this.#report(header, txn.path, 'changed', txn.version, now);
        return;
      }
      case OpCode.setACL: {
        const old = this.#states.get(txn.path);
        this.#report(header, txn.path, 'acl', txn.version, {
          data: old?.data ?? null,
          acl: txn.acl,
          owner: old?.owner ?? null,
        });
        return;
      }
      case OpCode.delete:
      case OpCode.deleteContainer:
        this.#report(header, txn.path, 'deleted', null, null);
        return;
      case OpCode.closeSession:
        for (const path of txn.paths ?? this.#ownedBy(header.sessionId))
          this.#report(header, path, 'deleted', null, null);
        return;
      case OpCode.multi:
        // One that was refused has an error in place of each part.
        if (txn.txns.some((part) => part.type === OpCode.error)) return;
        for (const part of txn.txns) this.apply(header, part);
        return;
      default:
        return;
    }
  }

  #ownedBy(session: bigint): string[] {
    return [...this.#states].flatMap(([path, state]) => (state.owner === session ? [path] : []));
  }

  #report(
    { zxid, time, sessionId }: TxnHeader,
    path: string,
    change: ZnodeChange['change'],
    version: number | null,
    now: ZnodeState | null,
  ): void {
    if (!this.isWanted(path)) return;
    const old = change === 'created' ? null : this.#states.get(path);
    if (now === null) this.#states.delete(path);
    else this.#states.set(path, now);
    this.#options.onChange({ zxid, timeMs: time, session: sessionId, path, change, version, old, now });
  }
}

function copyOf(data: Uint8Array | null): Uint8Array | null {
  return data === null ? null : Uint8Array.from(data);
}

import {
  type Acl,
  JuteReader,
  JuteWriter,
  OPEN_ACL,
  OpCode,
  READ_ACL,
  readAclList,
  readTxnEntry,
  type Txn,
  type TxnEntry,
  type TxnHeader,
  writeAclList,
  ZXID_ZERO,
  type Zxid,
} from '@meerkat/protocol';
import type { ApacheDisk, LogRecord } from './apache-disk.ts';

/** `StatPersisted`. */
export interface ApacheStat {
  readonly czxid: number;
  readonly mzxid: number;
  readonly ctime: number;
  readonly mtime: number;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  readonly ephemeralOwner: bigint;
  readonly pzxid: number;
}

export interface ApacheZnode {
  readonly data: Uint8Array | null;
  /** Number of the ACL in the snapshot; −1 is the open ACL. */
  readonly aclId: bigint;
  readonly stat: ApacheStat;
}

/** Owner of a container (`EphemeralType`). */
const CONTAINER_OWNER = -(2n ** 63n);
const TTL_OWNER = 0xff00000000000000n;

/**
 * In-memory state of a 3.8.0 server (ZKDatabase): sessions, tree, and the last applied txns, from which learners catch
 * up.
 */
export class ApacheDatabase {
  lastProcessedZxid: Zxid = ZXID_ZERO;
  sessions: Map<bigint, number> = new Map();
  znodes: Map<string, ApacheZnode> = new Map();
  readonly #commitLogCount: number;
  readonly #configText: string;
  #acls: Map<bigint, readonly Acl[]> = new Map();
  #committedLog: LogRecord[] = [];

  constructor(commitLogCount: number, configText: string) {
    this.#commitLogCount = commitLogCount;
    this.#configText = configText;
    this.clear();
  }

  get committedLog(): readonly LogRecord[] {
    return this.#committedLog;
  }

  clear(): void {
    this.lastProcessedZxid = ZXID_ZERO;
    this.sessions = new Map();
    this.#acls = new Map();
    this.#committedLog = [];
    this.znodes = new Map(['', '/zookeeper', '/zookeeper/quota'].map((path) => [path, EMPTY_ZNODE]));
    this.initConfig();
  }

  /** `initConfigInZKDatabase`: without dynamic reconfiguration each server stores its own configuration. */
  initConfig(): void {
    const data = new TextEncoder().encode(this.#configText);
    const stat = { ...EMPTY_STAT, version: -1, aversion: -1 };
    this.znodes.set('/zookeeper/config', { data, aclId: this.#aclIdOf(READ_ACL), stat });
  }

  /** `loadDataBase` */
  load(disk: ApacheDisk): void {
    this.clear();
    if (disk.snapshot !== null) {
      this.readSnapshot(disk.snapshot.bytes);
      this.lastProcessedZxid = disk.snapshot.zxid;
    }
    this.fastForward(disk);
  }

  /** Applies the remaining txns of the log, which may be uncommitted. */
  fastForward(disk: ApacheDisk): void {
    for (const record of disk.log) {
      if (record.zxid <= this.lastProcessedZxid) continue;
      const entry = readTxnEntry(new JuteReader(record.payload));
      if (entry === null) throw new Error(`the log holds an unreadable txn: ${record.zxid}`);
      this.apply(record, entry);
    }
  }

  /** Applies a committed txn and keeps it for learners, without checking for a gap. */
  apply(record: LogRecord, entry: TxnEntry): void {
    if (record.zxid <= this.lastProcessedZxid) return;
    this.#applyTxn(entry.header, entry.txn);
    this.lastProcessedZxid = record.zxid;
    // Checks the limit before adding, and so holds one txn too many, as 3.8.0 does.
    if (this.#committedLog.length > this.#commitLogCount) this.#committedLog.shift();
    this.#committedLog.push(record);
  }

  /** Changes the tree and nothing else. */
  #applyTxn(header: TxnHeader, txn: Txn): void {
    const { zxid, time } = header;
    switch (txn.type) {
      case OpCode.create:
      case OpCode.create2:
        this.#create(header, txn, txn.isEphemeral ? header.sessionId : 0n);
        return;
      case OpCode.createContainer:
        this.#create(header, txn, CONTAINER_OWNER);
        return;
      case OpCode.createTTL:
        this.#create(header, txn, BigInt.asIntN(64, TTL_OWNER | BigInt(txn.ttl)));
        return;
      case OpCode.delete:
      case OpCode.deleteContainer:
        this.#delete(txn.path, zxid);
        return;
      case OpCode.setData:
      case OpCode.reconfig: {
        const node = this.znodes.get(txn.path);
        if (node === undefined) return;
        const stat = { ...node.stat, mzxid: zxid, mtime: time, version: txn.version };
        this.znodes.set(txn.path, { ...node, data: txn.data?.slice() ?? null, stat });
        return;
      }
      case OpCode.setACL: {
        const node = this.znodes.get(txn.path);
        if (node === undefined) return;
        const aclId = this.#aclIdOf(txn.acl);
        this.znodes.set(txn.path, { ...node, aclId, stat: { ...node.stat, aversion: txn.version } });
        return;
      }
      case OpCode.multi:
        if (txn.txns.some((part) => part.type === OpCode.error)) return;
        for (const part of txn.txns) this.#applyTxn(header, part);
        return;
      case OpCode.createSession:
        this.sessions.set(header.sessionId, txn.timeoutMs);
        return;
      case OpCode.closeSession: {
        this.sessions.delete(header.sessionId);
        for (const path of txn.paths ?? []) this.#delete(path, zxid);
        // "Unexpected extra paths under session": ephemerals that the txn does not list are deleted too.
        for (const path of this.ephemeralsOf(header.sessionId)) this.#delete(path, zxid);
        return;
      }
      case OpCode.check:
      case OpCode.error:
        return;
    }
  }

  ephemeralsOf(sessionId: bigint): readonly string[] {
    return [...this.znodes].filter(([, { stat }]) => stat.ephemeralOwner === sessionId).map(([path]) => path);
  }

  hasChildren(path: string): boolean {
    const prefix = path === '' ? '/' : `${path}/`;
    return [...this.znodes.keys()].some((other) => other.startsWith(prefix));
  }

  /** Sessions and tree, as sent to a learner (without the signature) and as stored in a file (without its frame). */
  writeSnapshot(writer: JuteWriter = new JuteWriter()): Uint8Array {
    writer.int(this.sessions.size);
    for (const [sessionId, timeoutMs] of this.sessions) {
      writer.longBig(sessionId);
      writer.int(timeoutMs);
    }
    writer.int(this.#acls.size);
    for (const [id, acl] of this.#acls) {
      writer.longBig(id);
      writeAclList(writer, acl);
    }
    for (const [path, { data, aclId, stat }] of this.znodes) {
      writer.ustring(path);
      writer.buffer(data);
      writer.longBig(aclId);
      writeStat(writer, stat);
    }
    writer.ustring('/');
    return writer.toBytes();
  }

  /** @returns the length of the snapshot in bytes; 0 when it is incomplete, and nothing has changed then */
  readSnapshot(bytes: Uint8Array): number {
    const reader = new JuteReader(bytes);
    const sessions = new Map<bigint, number>();
    for (let left = reader.int(); left > 0 && !reader.failed; left--) sessions.set(reader.longBig(), reader.int());
    const acls = new Map<bigint, readonly Acl[]>();
    for (let left = reader.int(); left > 0 && !reader.failed; left--) acls.set(reader.longBig(), readAclList(reader));
    const znodes = new Map<string, ApacheZnode>();
    for (;;) {
      const path = reader.ustring();
      if (reader.failed || path === null) return 0;
      if (path === '/') break;
      znodes.set(path, { data: reader.buffer()?.slice() ?? null, aclId: reader.longBig(), stat: readStat(reader) });
    }
    this.sessions = sessions;
    this.#acls = acls;
    this.znodes = znodes;
    this.#committedLog = [];
    return reader.position;
  }

  aclOf(path: string): readonly Acl[] {
    return this.#acls.get(this.znodes.get(path)?.aclId ?? -1n) ?? OPEN_ACL;
  }

  #create(
    { zxid, time }: TxnHeader,
    txn: { path: string; data: Uint8Array | null; acl: readonly Acl[]; parentCversion: number },
    ephemeralOwner: bigint,
  ): void {
    const parentPath = parentOf(txn.path);
    const parent = this.znodes.get(parentPath);
    if (parent === undefined || this.znodes.has(txn.path)) return;
    const cversion = Math.max(
      parent.stat.cversion,
      txn.parentCversion < 0 ? parent.stat.cversion + 1 : txn.parentCversion,
    );
    this.znodes.set(parentPath, {
      ...parent,
      stat: { ...parent.stat, cversion, pzxid: Math.max(parent.stat.pzxid, zxid) },
    });
    const stat = { ...EMPTY_STAT, czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: time, mtime: time, ephemeralOwner };
    this.znodes.set(txn.path, { data: txn.data?.slice() ?? null, aclId: this.#aclIdOf(txn.acl), stat });
  }

  #delete(path: string, zxid: Zxid): void {
    if (!this.znodes.delete(path)) return;
    const parentPath = parentOf(path);
    const parent = this.znodes.get(parentPath);
    if (parent === undefined) return;
    this.znodes.set(parentPath, { ...parent, stat: { ...parent.stat, pzxid: Math.max(parent.stat.pzxid, zxid) } });
  }

  #aclIdOf(acl: readonly Acl[]): bigint {
    const text = JSON.stringify(acl);
    for (const [id, other] of this.#acls) if (JSON.stringify(other) === text) return id;
    const id = [...this.#acls.keys()].reduce((max, other) => (other > max ? other : max), 0n) + 1n;
    this.#acls.set(
      id,
      acl.map((entry) => ({ ...entry })),
    );
    return id;
  }
}

/** The parent of `/a` is the root, whose path is empty in 3.8.0. */
export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

const EMPTY_STAT: ApacheStat = {
  czxid: 0,
  mzxid: 0,
  ctime: 0,
  mtime: 0,
  version: 0,
  cversion: 0,
  aversion: 0,
  ephemeralOwner: 0n,
  pzxid: 0,
};

const EMPTY_ZNODE: ApacheZnode = { data: new Uint8Array(0), aclId: -1n, stat: EMPTY_STAT };

function writeStat(writer: JuteWriter, stat: ApacheStat): void {
  for (const value of [stat.czxid, stat.mzxid, stat.ctime, stat.mtime]) writer.long(value);
  for (const value of [stat.version, stat.cversion, stat.aversion]) writer.int(value);
  writer.longBig(stat.ephemeralOwner);
  writer.long(stat.pzxid);
}

function readStat(reader: JuteReader): ApacheStat {
  return {
    czxid: reader.long(),
    mzxid: reader.long(),
    ctime: reader.long(),
    mtime: reader.long(),
    version: reader.int(),
    cversion: reader.int(),
    aversion: reader.int(),
    ephemeralOwner: reader.longBig(),
    pzxid: reader.long(),
  };
}

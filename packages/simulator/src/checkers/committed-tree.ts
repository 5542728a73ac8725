/**
 * The tree as it must have been after each committed txn: C folded by a small model of its own, which shares nothing with
 * the servers' tree. Every path keeps all of its states, so that "what was there at zxid z" is a binary search.
 *
 * Folding also shows txns that nobody should have committed: W5 (sequence numbers), W6 (arithmetic of the stat), S3
 * (ephemerals and their sessions).
 */
import {
  type CloseSessionTxn,
  ErrorCode,
  OpCode,
  parentOf,
  type SetAclTxn,
  type SetDataTxn,
  type Stat,
  type Txn,
  type TxnEntry,
  type TxnHeader,
} from '@meerkat/protocol';
import { hex } from './violation.ts';

/** What was at a path from a zxid on. Nobody changes it. */
export interface ZnodeState {
  readonly zxid: number;
  /** false: nothing; the other fields are those of before. */
  readonly exists: boolean;
  readonly data: Uint8Array | null;
  readonly czxid: number;
  readonly mzxid: number;
  readonly pzxid: number;
  readonly ctime: number;
  readonly mtime: number;
  readonly version: number;
  /** Number of children ever created. */
  readonly cversion: number;
  readonly aversion: number;
  /** Session of an ephemeral, else 0n; containers and TTL znodes belong to nobody. */
  readonly owner: bigint;
  readonly numChildren: number;
}

export type ChangeType = 'created' | 'deleted' | 'changed' | 'children';

/** What a watch on `path` can tell. */
export interface Change {
  readonly zxid: number;
  /** Position among all changes: those of one multi have one zxid. */
  readonly position: number;
  readonly type: ChangeType;
  readonly path: string;
}

export interface SessionLife {
  readonly timeoutMs: number;
  readonly createdZxid: number;
  /** null: it was not closed. */
  closedZxid: number | null;
}

/** A tree at some zxid, as the beginning of what is judged: what was before has been judged, and is forgotten. */
export interface CommittedBase {
  readonly zxid: number;
  /** What is there, by path. */
  readonly states: ReadonlyMap<string, ZnodeState>;
  /** The sessions that live. */
  readonly sessions: ReadonlyMap<bigint, SessionLife>;
}

type OnFault = (invariant: string, message: string) => void;

export class CommittedTree {
  readonly committed: readonly TxnEntry[];
  readonly sessions: Map<bigint, SessionLife> = new Map();
  readonly changes: Change[] = [];
  readonly #states: Map<string, ZnodeState[]> = new Map();
  /** Names that a znode has ever had below it. */
  readonly #names: Map<string, Set<string>> = new Map();
  readonly #ephemerals: Map<bigint, Set<string>> = new Map();
  readonly #changesByPath: Map<string, Change[]> = new Map();
  readonly #indexes: Map<number, number> = new Map();
  readonly #onFault: OnFault;
  /** What `committed` follows; 0 when that is an empty tree. */
  readonly baseZxid: number;

  /** @param base what `committed` follows; default: an empty tree */
  constructor(committed: readonly TxnEntry[], onFault: OnFault, base: CommittedBase = EMPTY_BASE) {
    this.committed = committed;
    this.#onFault = onFault;
    this.baseZxid = base.zxid;
    for (const [id, life] of base.sessions) this.sessions.set(id, { ...life });
    for (const [path, state] of base.states) {
      this.#states.set(path, [state]);
      if (path !== '/') this.#nameBelow(path);
      if (state.owner !== 0n) this.#ephemeralsOf(state.owner).add(path);
    }
    for (let i = 0; i < committed.length; i++) {
      const { header, txn } = committed[i]!;
      this.#indexes.set(header.zxid, i);
      this.#apply(header, txn);
    }
  }

  /** Zxid of the last txn, or that of the base when nothing was committed. */
  get lastZxid(): number {
    return this.committed[this.committed.length - 1]?.header.zxid ?? this.baseZxid;
  }

  /** The tree as it is at its end, for those who judge what follows. */
  get base(): CommittedBase {
    const states = new Map<string, ZnodeState>();
    for (const path of this.#states.keys()) {
      const state = this.#now(path);
      if (state !== null) states.set(path, state);
    }
    const sessions = new Map([...this.sessions].filter(([, { closedZxid }]) => closedZxid === null));
    return { zxid: this.lastZxid, states, sessions };
  }

  /** The committed txn of a zxid, or null. */
  entryAt(zxid: number): TxnEntry | null {
    const index = this.#indexes.get(zxid);
    return index === undefined ? null : this.committed[index]!;
  }

  /** Zxid of the txn before this one; that of the base for the first. */
  zxidBefore(zxid: number): number {
    const index = this.#indexes.get(zxid) ?? 0;
    return this.committed[index - 1]?.header.zxid ?? this.baseZxid;
  }

  /** What was at a path after everything up to `zxid`; null: nothing. */
  stateAt(path: string, zxid: number): ZnodeState | null {
    const states = this.#states.get(path);
    if (states === undefined) return null;
    const state = states[countUpTo(states, zxid) - 1];
    return state?.exists === true ? state : null;
  }

  /** Names of children at that time, sorted. */
  childrenAt(path: string, zxid: number): string[] {
    const names = [...(this.#names.get(path) ?? [])];
    const prefix = path === '/' ? '/' : `${path}/`;
    return names.filter((name) => this.stateAt(prefix + name, zxid) !== null).sort();
  }

  /** Paths that have ever been there. */
  paths(): Iterable<string> {
    return this.#states.keys();
  }

  /** All changes of one path, in order. */
  changesOf(path: string): readonly Change[] {
    return this.#changesByPath.get(path) ?? [];
  }

  #apply(header: TxnHeader, txn: Txn): void {
    switch (txn.type) {
      case OpCode.create:
      case OpCode.create2:
        this.#create(header, txn.path, txn.data, txn.parentCversion, txn.isEphemeral ? header.sessionId : 0n);
        return;
      case OpCode.createContainer:
      case OpCode.createTTL:
        this.#create(header, txn.path, txn.data, txn.parentCversion, 0n);
        return;
      case OpCode.delete:
      case OpCode.deleteContainer:
        this.#delete(header, txn.path);
        return;
      case OpCode.setData:
      case OpCode.reconfig:
        this.#setData(header, txn);
        return;
      case OpCode.setACL:
        this.#setAcl(header, txn);
        return;
      case OpCode.multi:
        if (txn.txns.some((part) => part.type === OpCode.error)) return;
        for (const part of txn.txns) this.#apply(header, part);
        return;
      case OpCode.createSession:
        this.sessions.set(header.sessionId, {
          timeoutMs: txn.timeoutMs,
          createdZxid: header.zxid,
          closedZxid: null,
        });
        return;
      case OpCode.closeSession:
        this.#closeSession(header, txn);
        return;
      case OpCode.check:
      case OpCode.error:
        return;
    }
  }

  #create(header: TxnHeader, path: string, data: Uint8Array | null, parentCversion: number, owner: bigint): void {
    const { zxid, time } = header;
    const parentPath = parentOf(path);
    const parent = this.#now(parentPath);
    if (parent === null || this.#now(path) !== null) {
      const why = parent === null ? 'its parent does not exist' : 'it exists';
      this.#onFault('W6', `${hex(zxid)} creates ${path} although ${why}`);
      return;
    }
    if (parentCversion >= 0 && parentCversion !== parent.cversion + 1) {
      const message = `${hex(zxid)} creates child number ${parentCversion} of ${parentPath}, which has had ${parent.cversion}`;
      this.#onFault('W5', message);
    }
    if (owner !== 0n) {
      const session = this.sessions.get(owner);
      if (session === undefined || session.closedZxid !== null) {
        this.#onFault(
          'S3',
          `${hex(zxid)} creates ${path}, an ephemeral of session 0x${owner.toString(16)}, which is not alive`,
        );
      }
      this.#ephemeralsOf(owner).add(path);
    }
    const made = { ...NOTHING, zxid, exists: true, data, czxid: zxid, mzxid: zxid, pzxid: zxid };
    this.#push(path, { ...made, ctime: time, mtime: time, owner });
    this.#nameBelow(path);
    this.#push(parentPath, {
      ...parent,
      zxid,
      cversion: Math.max(parent.cversion, parentCversion < 0 ? parent.cversion + 1 : parentCversion),
      pzxid: zxid,
      numChildren: parent.numChildren + 1,
    });
    this.#change(zxid, 'created', path);
    this.#change(zxid, 'children', parentPath);
  }

  #delete(header: TxnHeader, path: string): void {
    const { zxid } = header;
    const state = this.#now(path);
    const parentPath = parentOf(path);
    const parent = this.#now(parentPath);
    if (state === null || parent === null || state.numChildren > 0) {
      const why = state === null ? 'it does not exist' : `it has ${state.numChildren} children`;
      this.#onFault('W6', `${hex(zxid)} deletes ${path} although ${why}`);
      return;
    }
    if (state.owner !== 0n) this.#ephemerals.get(state.owner)?.delete(path);
    this.#push(path, { ...state, zxid, exists: false });
    this.#push(parentPath, { ...parent, zxid, pzxid: zxid, numChildren: parent.numChildren - 1 });
    this.#change(zxid, 'deleted', path);
    this.#change(zxid, 'children', parentPath);
  }

  #setData({ zxid, time }: TxnHeader, { path, data, version }: SetDataTxn): void {
    const state = this.#now(path);
    if (state === null) {
      this.#onFault('W6', `${hex(zxid)} sets ${path}, which does not exist`);
      return;
    }
    const isReconfig = version === -1;
    if (!isReconfig && version !== state.version + 1) {
      this.#onFault('W6', `${hex(zxid)} takes ${path} from version ${state.version} to ${version}`);
    }
    this.#push(path, { ...state, zxid, data, mzxid: zxid, mtime: time, version });
    this.#change(zxid, 'changed', path);
  }

  #setAcl({ zxid }: TxnHeader, { path, version }: SetAclTxn): void {
    const state = this.#now(path);
    if (state === null) {
      this.#onFault('W6', `${hex(zxid)} sets the ACL of ${path}, which does not exist`);
      return;
    }
    if (version !== state.aversion + 1) {
      this.#onFault('W6', `${hex(zxid)} takes ${path} from aversion ${state.aversion} to ${version}`);
    }
    this.#push(path, { ...state, zxid, aversion: version });
  }

  #closeSession(header: TxnHeader, txn: CloseSessionTxn): void {
    const { zxid, sessionId } = header;
    const session = this.sessions.get(sessionId);
    if (session !== undefined && session.closedZxid === null) session.closedZxid = zxid;
    const owned = new Set(this.#ephemerals.get(sessionId) ?? []);
    const name = `session 0x${sessionId.toString(16)}`;
    for (const path of txn.paths ?? owned) {
      if (!owned.delete(path)) {
        this.#onFault('S3', `${hex(zxid)} ends ${name} and deletes ${path}, which it does not own`);
        continue;
      }
      this.#delete(header, path);
    }
    for (const path of owned) {
      this.#onFault('S3', `${hex(zxid)} ends ${name} and leaves its ephemeral ${path}`);
      this.#delete(header, path);
    }
    this.#ephemerals.delete(sessionId);
  }

  #ephemeralsOf(owner: bigint): Set<string> {
    let paths = this.#ephemerals.get(owner);
    if (paths === undefined) {
      paths = new Set();
      this.#ephemerals.set(owner, paths);
    }
    return paths;
  }

  #now(path: string): ZnodeState | null {
    const states = this.#states.get(path);
    const state = states?.[states.length - 1];
    return state?.exists === true ? state : null;
  }

  /** Of several states of one zxid (a multi) only the last one can be seen. */
  #push(path: string, state: ZnodeState): void {
    const states = this.#states.get(path);
    if (states === undefined) this.#states.set(path, [state]);
    else if (states[states.length - 1]!.zxid === state.zxid) states[states.length - 1] = state;
    else states.push(state);
  }

  #nameBelow(path: string): void {
    const parent = parentOf(path);
    const name = path.slice(path.lastIndexOf('/') + 1);
    const names = this.#names.get(parent);
    if (names === undefined) this.#names.set(parent, new Set([name]));
    else names.add(name);
  }

  #change(zxid: number, type: ChangeType, path: string): void {
    const change = { zxid, position: this.changes.length, type, path };
    this.changes.push(change);
    const changes = this.#changesByPath.get(path);
    if (changes === undefined) this.#changesByPath.set(path, [change]);
    else changes.push(change);
  }
}

const NOTHING: ZnodeState = {
  zxid: 0,
  exists: false,
  data: null,
  czxid: 0,
  mzxid: 0,
  pzxid: 0,
  ctime: 0,
  mtime: 0,
  version: 0,
  cversion: 0,
  aversion: 0,
  owner: 0n,
  numChildren: 0,
};

/** What every tree begins with, and how many children each has. */
const SYSTEM_ZNODES: readonly (readonly [string, number])[] = [
  ['/', 1],
  ['/zookeeper', 2],
  ['/zookeeper/quota', 0],
  ['/zookeeper/config', 0],
];

const EMPTY_BASE: CommittedBase = {
  zxid: 0,
  states: new Map(SYSTEM_ZNODES.map(([path, numChildren]) => [path, { ...NOTHING, exists: true, numChildren }])),
  sessions: new Map(),
};

/** How many of the states, or changes, are not behind `zxid`. */
export function countUpTo(list: readonly { readonly zxid: number }[], zxid: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (list[middle]!.zxid <= zxid) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** What a client is told of a state (DataNode.copyStat). */
export function statOf(state: ZnodeState): Stat {
  return {
    czxid: state.czxid,
    mzxid: state.mzxid,
    ctime: state.ctime,
    mtime: state.mtime,
    version: state.version,
    cversion: state.cversion * 2 - state.numChildren,
    aversion: state.aversion,
    ephemeralOwner: state.owner,
    dataLength: state.data?.length ?? 0,
    numChildren: state.numChildren,
    pzxid: state.pzxid,
  };
}

/** The error that a write deserves at a state, as far as the tree decides; `ok` when it succeeds. `version` −1 is any. */
export function errorOfWrite(
  tree: CommittedTree,
  write: { readonly op: 'create' | 'set' | 'delete'; readonly path: string; readonly version: number },
  zxid: number,
): number {
  const state = tree.stateAt(write.path, zxid);
  if (write.op === 'create') {
    const parent = tree.stateAt(parentOf(write.path), zxid);
    if (parent === null) return ErrorCode.noNode;
    if (state !== null) return ErrorCode.nodeExists;
    return parent.owner === 0n ? ErrorCode.ok : ErrorCode.noChildrenForEphemerals;
  }
  if (state === null) return ErrorCode.noNode;
  if (write.version !== -1 && write.version !== state.version) return ErrorCode.badVersion;
  return write.op === 'delete' && state.numChildren > 0 ? ErrorCode.notEmpty : ErrorCode.ok;
}

/**
 * The tree as it must have been after each committed txn: C applied to a small independent model, which shares nothing
 * with the servers' tree. Every path keeps all of its states, so that "what was there at zxid z" is a binary search.
 *
 * Applying also reveals txns that should not have been committed: W5 (sequence numbers), W6 (arithmetic of the stat),
 * S3 (ephemerals and their sessions), D11 (the paths listed in a closeSession).
 */
import {
  type Acl,
  type CloseSessionTxn,
  hexZxid,
  nameOf,
  OpCode,
  parentOf,
  type SetAclTxn,
  type SetDataTxn,
  type Txn,
  type TxnEntry,
  type TxnHeader,
} from '@meerkat/protocol';
import { ChildHistory } from './child-history.ts';
import { NOTHING, type ZnodeState } from './znode-state.ts';

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

/** A tree at some zxid, as the base for what is checked: what came before was checked already, and is dropped. */
export interface CommittedBase {
  readonly zxid: number;
  /** What is there, by path. */
  readonly states: ReadonlyMap<string, ZnodeState>;
  /** The sessions that live. */
  readonly sessions: ReadonlyMap<bigint, SessionLife>;
}

type AnyCreateTxn = Extract<Txn, { readonly parentCversion: number }>;
type OnFault = (invariant: string, message: string) => void;

export class CommittedTree {
  readonly committed: readonly TxnEntry[];
  readonly sessions: Map<bigint, SessionLife> = new Map();
  readonly changes: Change[] = [];
  readonly #states: Map<string, ZnodeState[]> = new Map();
  /** States that the same multi has replaced. */
  readonly #insideMultis: Map<string, ZnodeState[]> = new Map();
  /** Of each znode that has ever had children. */
  readonly #children: Map<string, ChildHistory> = new Map();
  readonly #ephemerals: Map<bigint, Set<string>> = new Map();
  readonly #changesByPath: Map<string, Change[]> = new Map();
  readonly #indexes: Map<number, number> = new Map();
  readonly #onFault: OnFault;
  /** What `committed` follows; 0 when that is an empty tree. */
  readonly baseZxid: number;
  readonly #txnBytesMax: number;

  /**
   * @param base what `committed` follows; default: an empty tree
   * @param txnBytesMax the largest txn of this ensemble; default: that of servers without `jute.maxbuffer`
   */
  constructor(
    committed: readonly TxnEntry[],
    onFault: OnFault,
    base: CommittedBase = EMPTY_BASE,
    txnBytesMax: number = DEFAULT_TXN_BYTES_MAX,
  ) {
    this.committed = committed;
    this.#onFault = onFault;
    this.baseZxid = base.zxid;
    this.#txnBytesMax = txnBytesMax;
    for (const [id, life] of base.sessions) this.sessions.set(id, { ...life });
    for (const [path, state] of base.states) {
      this.#states.set(path, [state]);
      if (path !== '/') this.#noteChild(path, 0, true);
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

  /** The tree at the end, as the base of the txns that follow. */
  get base(): CommittedBase {
    const states = new Map<string, ZnodeState>();
    for (const path of this.#states.keys()) {
      const state = this.#now(path);
      if (state !== null) states.set(path, state);
    }
    const sessions = new Map([...this.sessions].filter(([, { closedZxid }]) => closedZxid === null));
    return { zxid: this.lastZxid, states, sessions };
  }

  /**
   * Whether this is a zxid of C. A log that ends there is C up to there; one that ends elsewhere has txns at its end that are
   * not committed.
   */
  has(zxid: number): boolean {
    return zxid <= this.baseZxid || this.entryAt(zxid) !== null;
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

  /** Every state that a path was in from `zxid` to `until`. */
  statesBetween(path: string, zxid: number, until: number): readonly ZnodeState[] {
    const states = this.#states.get(path) ?? [];
    return states.slice(Math.max(countUpTo(states, zxid) - 1, 0), countUpTo(states, until));
  }

  /** Every list of permissions that a path had from `zxid` to `until`, those inside a multi included. */
  aclsBetween(path: string, zxid: number, until: number): readonly (readonly Acl[])[] {
    const inside = this.#insideMultis.get(path) ?? [];
    const passed = inside.slice(countUpTo(inside, zxid), countUpTo(inside, until));
    return [...this.statesBetween(path, zxid, until), ...passed].map(({ acl }) => acl);
  }

  /** Names of children at that time, sorted. */
  childrenAt(path: string, zxid: number): string[] {
    return this.#children.get(path)?.namesAt(zxid).sort() ?? [];
  }

  /** Paths that have ever existed. */
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
        this.#create(header, txn, txn.isEphemeral ? header.sessionId : 0n);
        return;
      case OpCode.createContainer:
      case OpCode.createTTL:
        this.#create(header, txn, 0n);
        return;
      case OpCode.delete:
        this.#delete(header, txn.path);
        return;
      case OpCode.deleteContainer:
        this.#collect(header, txn.path);
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

  #create(header: TxnHeader, txn: AnyCreateTxn, owner: bigint): void {
    const { zxid, time } = header;
    const { path, data, acl, parentCversion } = txn;
    const parentPath = parentOf(path);
    const parent = this.#now(parentPath);
    if (parent === null || this.#now(path) !== null) {
      const why = parent === null ? 'its parent does not exist' : 'it exists';
      this.#onFault('W6', `${hexZxid(zxid)} creates ${path} although ${why}`);
      return;
    }
    if (parentCversion >= 0 && parentCversion !== parent.cversion + 1) {
      const message = `${hexZxid(zxid)} creates child number ${parentCversion} of ${parentPath}, which has had ${parent.cversion}`;
      this.#onFault('W5', message);
    }
    if (owner !== 0n) {
      const session = this.sessions.get(owner);
      if (session === undefined || session.closedZxid !== null) {
        this.#onFault(
          'S3',
          `${hexZxid(zxid)} creates ${path}, an ephemeral of session 0x${owner.toString(16)}, which is not alive`,
        );
      }
      this.#ephemeralsOf(owner).add(path);
    }
    const made = { ...NOTHING, zxid, exists: true, data, czxid: zxid, mzxid: zxid, pzxid: zxid };
    const isContainer = txn.type === OpCode.createContainer;
    const ttlMs = txn.type === OpCode.createTTL ? txn.ttl : null;
    this.#push(path, { ...made, ctime: time, mtime: time, owner, acl, isContainer, ttlMs });
    this.#noteChild(path, zxid, true);
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

  /** W8: the service deletes containers that have had children and expired TTL znodes, and only without children. */
  #collect(header: TxnHeader, path: string): void {
    const state = this.#now(path);
    if (state !== null) {
      const { isContainer, ttlMs, cversion, mtime } = state;
      const isOver = ttlMs !== null && header.time - mtime > ttlMs;
      if (!isOver && !(isContainer && cversion > 0)) {
        const what = isContainer ? 'a container that never had a child' : 'no container';
        const why = ttlMs === null ? what : `${header.time - mtime} ms old, of ${ttlMs}`;
        this.#onFault('W8', `${hexZxid(header.zxid)} collects ${path}, which is ${why}`);
      }
    }
    this.#delete(header, path);
  }

  #delete(header: TxnHeader, path: string): void {
    const { zxid } = header;
    const state = this.#now(path);
    const parentPath = parentOf(path);
    const parent = this.#now(parentPath);
    if (state === null || parent === null || state.numChildren > 0) {
      const why = state === null ? 'it does not exist' : `it has ${state.numChildren} children`;
      this.#onFault('W6', `${hexZxid(zxid)} deletes ${path} although ${why}`);
      return;
    }
    if (state.owner !== 0n) this.#ephemerals.get(state.owner)?.delete(path);
    this.#push(path, { ...state, zxid, exists: false });
    this.#noteChild(path, zxid, false);
    this.#push(parentPath, { ...parent, zxid, pzxid: zxid, numChildren: parent.numChildren - 1 });
    this.#change(zxid, 'deleted', path);
    this.#change(zxid, 'children', parentPath);
  }

  #setData({ zxid, time }: TxnHeader, { path, data, version }: SetDataTxn): void {
    const state = this.#now(path);
    if (state === null) {
      this.#onFault('W6', `${hexZxid(zxid)} sets ${path}, which does not exist`);
      return;
    }
    const isReconfig = version === -1;
    if (!isReconfig && version !== state.version + 1) {
      this.#onFault('W6', `${hexZxid(zxid)} takes ${path} from version ${state.version} to ${version}`);
    }
    this.#push(path, { ...state, zxid, data, mzxid: zxid, mtime: time, version });
    this.#change(zxid, 'changed', path);
  }

  #setAcl({ zxid }: TxnHeader, { path, acl, version }: SetAclTxn): void {
    const state = this.#now(path);
    if (state === null) {
      this.#onFault('W6', `${hexZxid(zxid)} sets the ACL of ${path}, which does not exist`);
      return;
    }
    if (version !== state.aversion + 1) {
      this.#onFault('W6', `${hexZxid(zxid)} takes ${path} from aversion ${state.aversion} to ${version}`);
    }
    this.#push(path, { ...state, zxid, acl, aversion: version });
  }

  #closeSession(header: TxnHeader, txn: CloseSessionTxn): void {
    const { zxid, sessionId } = header;
    const session = this.sessions.get(sessionId);
    if (session !== undefined && session.closedZxid === null) session.closedZxid = zxid;
    const owned = new Set(this.#ephemerals.get(sessionId) ?? []);
    const name = `session 0x${sessionId.toString(16)}`;
    const isTooMuch = closeSessionBytes(owned) > this.#txnBytesMax;
    const listed = txn.paths ?? [...owned];
    for (const path of listed) {
      if (!owned.delete(path)) {
        this.#onFault('S3', `${hexZxid(zxid)} ends ${name} and deletes ${path}, which it does not own`);
        continue;
      }
      this.#delete(header, path);
    }
    const parents = new Set(listed.map(parentOf));
    // What is not listed goes in the order of the paths.
    for (const path of [...owned].sort()) {
      if (!isTooMuch) this.#onFault('S3', `${hexZxid(zxid)} ends ${name} and leaves its ephemeral ${path}`);
      else if (!parents.has(parentOf(path)) && closeSessionBytes([...listed, path]) <= this.#txnBytesMax) {
        this.#onFault('D11', `${hexZxid(zxid)} ends ${name} and lists nothing below the parent of ${path}`);
      }
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

  /** Of several states of one zxid (a multi) only the last one can be read. */
  #push(path: string, state: ZnodeState): void {
    const states = listOf(this.#states, path);
    const last = states[states.length - 1];
    if (last?.zxid === state.zxid) {
      listOf(this.#insideMultis, path).push(last);
      states.pop();
    }
    states.push(state);
  }

  #noteChild(path: string, zxid: number, isThere: boolean): void {
    const parent = parentOf(path);
    let children = this.#children.get(parent);
    if (children === undefined) {
      children = new ChildHistory();
      this.#children.set(parent, children);
    }
    children.note(zxid, nameOf(path), isThere);
  }

  #change(zxid: number, type: ChangeType, path: string): void {
    const change = { zxid, position: this.changes.length, type, path };
    this.changes.push(change);
    listOf(this.#changesByPath, path).push(change);
  }
}

function listOf<T>(lists: Map<string, T[]>, path: string): T[] {
  let list = lists.get(path);
  if (list === undefined) {
    list = [];
    lists.set(path, list);
  }
  return list;
}

/** Twice the default of `jute.maxbuffer`. */
const DEFAULT_TXN_BYTES_MAX = 2 * 0xfffff;
const ENCODER = new TextEncoder();

/** A header of 32 bytes, a digest of 12, and a list of texts, each with its length. */
function closeSessionBytes(paths: Iterable<string>): number {
  let bytes = 32 + 4 + 12;
  for (const path of paths) bytes += 4 + ENCODER.encode(path).length;
  return bytes;
}

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

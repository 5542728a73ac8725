/** Writes and their outcomes: C1, C4, C6, D4, S5, W5 and W6 of their replies. */
import { ErrorCode, hexZxid, OpCode, parentOf, type Txn, type TxnEntry } from '@meerkat/protocol';
import type { MultiPart, Operation, OperationRequest, WriteRequest } from '../history.ts';
import { isSameAcl } from './access.ts';
import { type ClientLog, describe, type Sent } from './client-log.ts';
import type { CommittedTree } from './committed-tree.ts';
import { differenceOfStats } from './stat-difference.ts';
import type { Violations } from './violation.ts';
import { expectedError, type WriteAttempt } from './write-attempt.ts';
import { statOf } from './znode-state.ts';

type CreateWish = Extract<OperationRequest, { readonly op: 'create' }>;
type Write = Extract<OperationRequest, { op: 'create' | 'set' | 'delete' | 'setAcl' | 'multi' }>;

/** Op codes of client requests that change something. */
const WRITE_OPS: ReadonlySet<number> = new Set<number>([
  OpCode.create,
  OpCode.create2,
  OpCode.createContainer,
  OpCode.createTTL,
  OpCode.setData,
  OpCode.setACL,
  OpCode.delete,
  OpCode.multi,
]);

export class WriteRules {
  readonly #log: ClientLog;
  readonly #tree: CommittedTree;
  readonly #violations: Violations;
  readonly #hasLocalSessions: boolean;
  /** Txns that an operation has led to, errors excluded. */
  readonly #effects: Map<Operation, number[]> = new Map();

  /** @param hasLocalSessions some sessions are known to their server alone */
  constructor(log: ClientLog, tree: CommittedTree, violations: Violations, hasLocalSessions: boolean) {
    this.#log = log;
    this.#tree = tree;
    this.#violations = violations;
    this.#hasLocalSessions = hasLocalSessions;
  }

  check(): void {
    this.#attribute();
    for (const operation of this.#log.history.operations) this.#checkOutcome(operation);
    this.#checkRealTime();
    this.#checkSequences();
  }

  /**
   * Finds the operation behind each committed change, and checks that those of one client are in its order. A local
   * session may have expired everywhere but at its own server, which may execute its requests later: then the order of a
   * client ends with its session.
   */
  #attribute(): void {
    const last: Map<string, { readonly sent: Sent; readonly zxid: number }> = new Map();
    const orderKey = ({ operation }: Sent, sessionId: bigint): string =>
      this.#hasLocalSessions ? `${operation!.client} ${sessionId}` : operation!.client;
    for (const entry of this.#tree.committed) {
      const { sessionId, cxid, zxid } = entry.header;
      if (!isClientWrite(entry.txn) || !this.#log.knowsSession(sessionId)) continue;
      const sent = this.#log.sentBy(sessionId, cxid);
      // A request that could not be decoded may have been any write, so nothing is checked.
      if (sent.some(({ operation, opCode }) => operation === null && WRITE_OPS.has(opCode))) continue;
      const source = this.#sourceOf(entry, sent, (one) => last.get(orderKey(one, sessionId))?.sent.order ?? 0);
      if (source === null) {
        const message = `${hexZxid(zxid)} is committed for session 0x${sessionId.toString(16)}, which has not asked for it (xid ${cxid})`;
        this.#report(null, 'C4', message);
        continue;
      }
      const operation = source.operation!;
      const effects = this.#effects.get(operation) ?? [];
      effects.push(zxid);
      this.#effects.set(operation, effects);
      const key = orderKey(source, sessionId);
      const before = last.get(key);
      if (before !== undefined && before.sent.order > source.order) {
        const invariant = before.sent.connection === source.connection ? 'C1' : 'S5';
        const earlier = `${describe(before.sent.operation!)}, which was sent after it, as ${hexZxid(before.zxid)}`;
        this.#report(operation, invariant, `committed as ${hexZxid(zxid)}, behind ${earlier}`);
      }
      if (before === undefined || before.sent.order < source.order) last.set(key, { sent: source, zxid });
    }
  }

  /**
   * Finds which of the requests with this session and xid led to the txn: one that matches it and has no other txn yet.
   * Of several in doubt, each on its own connection, one that comes in order.
   *
   * @param orderSoFar of the request of that client that was sent last, of those that are committed
   */
  #sourceOf(entry: TxnEntry, sent: readonly Sent[], orderSoFar: (one: Sent) => number): Sent | null {
    const meaning = sent.filter(({ operation }) => operation !== null && isMeant(operation.request, entry.txn));
    const reported = meaning.find(({ operation }) => operation!.zxid === entry.header.zxid);
    // A request that was answered under another zxid is already matched.
    const open = meaning.filter(({ operation }) => operation!.zxid === null);
    const unused = open.filter(({ operation }) => !this.#effects.has(operation!));
    const inOrder = unused.find((one) => one.order > orderSoFar(one));
    return reported ?? inOrder ?? unused[0] ?? open[0] ?? meaning[0] ?? null;
  }

  #checkOutcome(operation: Operation): void {
    const { request, result, error, zxid } = operation;
    if (!isWrite(request)) return;
    const effects = this.#effects.get(operation) ?? [];
    if (effects.length > 1) {
      this.#report(operation, 'C4', `took effect ${effects.length} times, as ${effects.map(hexZxid).join(', ')}`);
    }
    if (result !== null) {
      this.#checkAcknowledged(operation, request, effects);
    } else if (error?.outcome === 'not-applied' && effects.length > 0) {
      const invariant = request.op === 'multi' ? 'C6' : 'C4';
      this.#report(
        operation,
        invariant,
        `failed with ${error.code} and took effect as ${effects.map(hexZxid).join(', ')}`,
      );
    } else if (error !== null && zxid !== null) {
      this.#checkRefused(operation, request, zxid, error.code);
    }
  }

  #checkAcknowledged(operation: Operation, request: Write, effects: readonly number[]): void {
    const { zxid, result } = operation;
    const entry = zxid === null ? null : this.#tree.entryAt(zxid);
    if (zxid === null || entry === null) {
      this.#report(
        operation,
        'D4',
        `was acknowledged with ${zxid === null ? 'no zxid' : hexZxid(zxid)}, which is not committed`,
      );
      return;
    }
    // A multi of checks alone changes nothing, and is a txn nevertheless.
    if (!effects.includes(zxid)) {
      this.#report(operation, 'C4', `was acknowledged as ${hexZxid(zxid)}, which is another txn`);
      return;
    }
    if (result?.op === 'multi') {
      const parts = entry.txn.type === OpCode.multi ? entry.txn.txns : [];
      const paths = result.results.map((part) => (part.op === 'create' ? part.path : null));
      parts.forEach((part, i) => {
        if (isCreate(part) && paths[i] !== part.path) {
          this.#report(operation, 'C6', `part ${i} created ${part.path}, and was told as ${paths[i]}`);
        }
      });
      if (request.op !== 'multi') return;
      const names = parts.map((part) => ('path' in part ? part.path : null));
      const wishes = request.parts.map((part, i) => wishOf(part, names[i] ?? part.path));
      const before = new Neighbourhood();
      for (const attempted of wishes) this.#checkDeserved(operation, before, attempted, zxid, ErrorCode.ok);
      return;
    }
    if (request.op === 'multi') return;
    const path = result?.op === 'create' ? result.path : request.path;
    this.#checkDeserved(operation, new Neighbourhood(), wishOf(request, path), zxid, ErrorCode.ok);
    if (result?.op !== 'create' && result?.op !== 'set' && result?.op !== 'setAcl') return;
    const state = this.#tree.stateAt(path, zxid);
    if (state === null) {
      this.#report(operation, 'C4', `was told of ${path}, which ${hexZxid(zxid)} did not create`);
      return;
    }
    const difference = differenceOfStats(result.stat, statOf(state));
    if (difference !== null)
      this.#report(operation, 'W6', `the stat in the reply of ${hexZxid(zxid)} is wrong: ${difference}`);
  }

  /** A refusal takes a zxid too, and the tree before it shows whether it was right. */
  #checkRefused(operation: Operation, request: Write, zxid: number, code: string): void {
    const entry = this.#tree.entryAt(zxid);
    const number = ERRORS_OF_TREE.get(code);
    if (entry === null || number === undefined) return;
    if (entry.header.sessionId !== operation.sessionId || entry.header.cxid !== operation.xid) return;
    const isMulti = request.op === 'multi';
    if (entry.txn.type !== (isMulti ? OpCode.multi : OpCode.error)) return;
    const parts = isMulti ? request.parts : [request];
    const failed = operation.error?.failedPart ?? 0;
    const part = parts[failed];
    // The name that it would have got is unknown.
    if (part === undefined || parts.some((one) => one.op === 'create' && one.isSequential)) return;
    const before = new Neighbourhood();
    for (const one of parts.slice(0, failed)) {
      this.#checkDeserved(operation, before, wishOf(one, one.path), zxid, ErrorCode.ok);
    }
    this.#checkDeserved(operation, before, wishOf(part, part.path), zxid, number);
  }

  /** Ignores parts that depend on earlier ones. @param before takes this one in */
  #checkDeserved(
    operation: Operation,
    before: Neighbourhood,
    attempted: WriteAttempt,
    zxid: number,
    actual: number,
  ): void {
    if (!before.add(attempted.path)) return;
    const identity = this.#log.identityOf(operation.client);
    const deserved = expectedError(this.#tree, attempted, identity, this.#tree.zxidBefore(zxid));
    if (deserved === actual) return;
    const what = `${attempted.op} ${attempted.path} ${actual === ErrorCode.ok ? 'succeeded' : `was refused with error ${actual}`}`;
    const due = deserved === ErrorCode.ok ? 'nothing was in the way' : `error ${deserved} was due`;
    this.#report(operation, 'C4', `${what} as ${hexZxid(zxid)}, where ${due}`);
  }

  /** A write that begins after another one was acknowledged comes behind it in C. */
  #checkRealTime(): void {
    let acknowledged = this.#tree.baseZxid;
    const before: Map<Operation, number> = new Map();
    for (const entry of this.#log.history.entries) {
      if (entry.kind === 'invoked') {
        if (isWrite(entry.operation.request)) before.set(entry.operation, acknowledged);
      } else if (entry.kind === 'completed') {
        const { operation } = entry;
        const { zxid, result, request } = operation;
        if (!isWrite(request) || result === null || zxid === null) continue;
        const earlier = before.get(operation) ?? 0;
        if (zxid <= earlier) {
          const message = `is ${hexZxid(zxid)}, and ${hexZxid(earlier)} had been acknowledged before it began`;
          this.#report(operation, 'C4', message);
        }
        acknowledged = Math.max(acknowledged, zxid);
      }
    }
  }

  /** Numbers of sequential znodes below one parent and with one prefix grow with their zxids. */
  #checkSequences(): void {
    const created: { readonly operation: Operation; readonly parent: string; number: number; zxid: number }[] = [];
    for (const operation of this.#log.history.operations) {
      const { request, result, zxid } = operation;
      if (request.op !== 'create' || !request.isSequential || result?.op !== 'create' || zxid === null) continue;
      const suffix = result.path.slice(request.path.length);
      if (!result.path.startsWith(request.path) || !/^\d{10}$/.test(suffix)) {
        this.#report(operation, 'W5', `was told ${result.path}, which is no sequential name of ${request.path}`);
        continue;
      }
      // A recreated parent starts counting again.
      const parent = parentOf(result.path);
      const parentKey = `${parent} ${this.#tree.stateAt(parent, zxid)?.czxid}`;
      created.push({ operation, parent: parentKey, number: Number(suffix), zxid });
    }
    const last: Map<string, { readonly number: number; readonly zxid: number }> = new Map();
    for (const { operation, parent, number, zxid } of created.sort((a, b) => a.zxid - b.zxid)) {
      const before = last.get(parent);
      if (before !== undefined && number <= before.number) {
        const message = `got number ${number} as ${hexZxid(zxid)}, and ${hexZxid(before.zxid)} had got ${before.number}`;
        this.#report(operation, 'W5', message);
      }
      last.set(parent, { number, zxid });
    }
  }

  #report(operation: Operation | null, invariant: string, message: string): void {
    if (operation === null) this.#violations.report(invariant, [], message);
    else
      this.#violations.reportAt(
        operation.endMs ?? operation.startMs,
        invariant,
        [],
        `${describe(operation)} ${message}`,
      );
  }
}

const ERRORS_OF_TREE: ReadonlyMap<string, number> = new Map([
  ['NONODE', ErrorCode.noNode],
  ['NODEEXISTS', ErrorCode.nodeExists],
  ['BADVERSION', ErrorCode.badVersion],
  ['NOTEMPTY', ErrorCode.notEmpty],
  ['NOCHILDRENFOREPHEMERALS', ErrorCode.noChildrenForEphemerals],
  ['NOAUTH', ErrorCode.noAuth],
]);

function wishOf(request: WriteRequest | MultiPart, path: string): WriteAttempt {
  return { op: request.op, path, version: request.op === 'create' ? -1 : request.version };
}

/** The paths of some parts of a multi. Two are near when one is the other, or its parent. */
class Neighbourhood {
  readonly #paths: Set<string> = new Set();
  readonly #parents: Set<string> = new Set();

  /** @returns false when it is near one of those that were added before */
  add(path: string): boolean {
    const parent = parentOf(path);
    const isNear = this.#paths.has(path) || this.#parents.has(path) || this.#paths.has(parent);
    this.#paths.add(path);
    this.#parents.add(parent);
    return !isNear;
  }
}

const WRITES: ReadonlySet<string> = new Set(['create', 'set', 'delete', 'setAcl', 'multi']);

function isWrite(request: OperationRequest): request is Write {
  return WRITES.has(request.op);
}

/** A change that a client has requested, successful or not; error txns excluded. */
function isClientWrite(txn: Txn): boolean {
  switch (txn.type) {
    case OpCode.error:
    case OpCode.createSession:
    case OpCode.closeSession:
    case OpCode.deleteContainer:
      return false;
    case OpCode.multi:
      return !txn.txns.some((part) => part.type === OpCode.error);
    default:
      return true;
  }
}

type AnyCreateTxn = Extract<Txn, { readonly parentCversion: number }>;

function isCreate(txn: Txn): txn is AnyCreateTxn {
  return 'parentCversion' in txn;
}

function isKindMeant({ mode, ttlMs }: CreateWish, txn: AnyCreateTxn): boolean {
  if (txn.type === OpCode.createContainer) return mode === 'container';
  if (txn.type === OpCode.createTTL) return txn.ttl === ttlMs;
  return mode !== 'container' && ttlMs === undefined && txn.isEphemeral === (mode === 'ephemeral');
}

/** The txn does what the request asked for. */
function isMeant(request: OperationRequest, txn: Txn): boolean {
  if (request.op === 'multi') {
    return (
      txn.type === OpCode.multi &&
      txn.txns.length === request.parts.length &&
      request.parts.every((part, i) => isPartMeant(part, txn.txns[i]!))
    );
  }
  return isWrite(request) && isPartMeant(request, txn);
}

const DECODER = new TextDecoder();

function isPartMeant(request: WriteRequest | MultiPart, txn: Txn): boolean {
  switch (request.op) {
    case 'create': {
      if (!isCreate(txn) || !isKindMeant(request, txn)) return false;
      const isName = request.isSequential ? txn.path.startsWith(request.path) : txn.path === request.path;
      const isData = DECODER.decode(txn.data ?? undefined) === request.data;
      return isName && isData && isSameAcl(txn.acl, request.acl);
    }
    case 'set':
      return (
        txn.type === OpCode.setData &&
        txn.path === request.path &&
        DECODER.decode(txn.data ?? undefined) === request.data &&
        (request.version === -1 || txn.version === request.version + 1)
      );
    case 'setAcl':
      return txn.type === OpCode.setACL && txn.path === request.path && isSameAcl(txn.acl, request.acl);
    case 'delete':
      return txn.type === OpCode.delete && txn.path === request.path;
    case 'check':
      return txn.type === OpCode.check && txn.path === request.path;
  }
}

/** Reads: C3 (the state of the zxid that the reply names, exactly) and C5 (after a sync, nothing acknowledged is missing). */
import { hexZxid } from '@meerkat/protocol';
import type { Operation } from '../history.ts';
import { mayRead } from './access.ts';
import { type ClientLog, describe } from './client-log.ts';
import type { CommittedTree } from './committed-tree.ts';
import { differenceOfStats } from './stat-difference.ts';
import type { Violations } from './violation.ts';
import { statOf } from './znode-state.ts';

const DECODER = new TextDecoder();

export class ReadRules {
  readonly #log: ClientLog;
  readonly #tree: CommittedTree;
  readonly #violations: Violations;

  constructor(log: ClientLog, tree: CommittedTree, violations: Violations) {
    this.#log = log;
    this.#tree = tree;
    this.#violations = violations;
  }

  check(): void {
    for (const operation of this.#log.history.operations) this.#checkState(operation);
    this.#checkFreshness();
  }

  #checkState(operation: Operation): void {
    const { request, zxid, result, error } = operation;
    if (request.op !== 'get' && request.op !== 'exists' && request.op !== 'children') return;
    // The service maintains these: no txn says what they contain.
    if (zxid === null || request.path === '/zookeeper' || request.path.startsWith('/zookeeper/')) return;
    if (this.#log.isReadOnly(operation) && !this.#tree.has(zxid)) return;
    if (zxid > this.#tree.lastZxid && zxid % 0x100000000 !== 0) {
      this.#report(
        operation,
        'C3',
        `shows ${hexZxid(zxid)}, and the committed txns end at ${hexZxid(this.#tree.lastZxid)}`,
      );
      return;
    }
    const state = this.#tree.stateAt(request.path, zxid);
    const isReadable = state === null || mayRead(state.acl, this.#log.identityOf(operation.client));
    if (error?.code === 'NOAUTH' && isReadable) {
      this.#report(operation, 'C7', `is refused at ${hexZxid(zxid)}, where it may be read`);
    } else if (result !== null && !isReadable) {
      this.#report(operation, 'C7', `is answered at ${hexZxid(zxid)}, where it may not be read`);
    }
    if (error?.code === 'NONODE' && state !== null) {
      this.#report(operation, 'C3', `finds nothing at ${hexZxid(zxid)}, where version ${state.version} of it was`);
    }
    if (result === null || !('stat' in result)) return;
    if (state === null || result.stat === null) {
      if (state === null && result.stat === null) return;
      const is = result.stat === null ? 'nothing' : 'a znode';
      this.#report(operation, 'C3', `finds ${is} at ${hexZxid(zxid)}, where ${state === null ? 'nothing' : 'one'} was`);
      return;
    }
    const difference = differenceOfStats(result.stat, statOf(state));
    if (difference !== null) this.#report(operation, 'C3', `the stat is not that of ${hexZxid(zxid)}: ${difference}`);
    if (result.op === 'get') {
      const data = DECODER.decode(state.data ?? undefined);
      if (data !== result.data) {
        this.#report(operation, 'C3', `reads ${quote(result.data)}, at ${hexZxid(zxid)} it was ${quote(data)}`);
      }
    } else if (result.op === 'children') {
      const due = this.#tree.childrenAt(request.path, zxid).join(' ');
      const names = [...result.names].sort().join(' ');
      if (names !== due) this.#report(operation, 'C3', `lists [${names}], at ${hexZxid(zxid)} they were [${due}]`);
    }
  }

  /** A sync, and a read with one in it, see everything that any client was told before they began. */
  #checkFreshness(): void {
    let reported = this.#tree.baseZxid;
    const before: Map<Operation, number> = new Map();
    for (const entry of this.#log.history.entries) {
      if (entry.kind !== 'invoked' && entry.kind !== 'completed') continue;
      const { operation } = entry;
      const { request, zxid, result } = operation;
      const isFresh = request.op === 'sync' || ('isLinearizable' in request && request.isLinearizable);
      if (entry.kind === 'invoked') {
        if (isFresh) before.set(operation, reported);
        continue;
      }
      if (result === null || zxid === null) continue;
      // It is guaranteed neither to be fresh nor to stay.
      if (this.#log.isReadOnly(operation)) {
        if (isFresh) this.#report(operation, 'C5', 'is answered by a server without a leader');
        continue;
      }
      const due = before.get(operation) ?? 0;
      if (isFresh && zxid < due) {
        this.#report(
          operation,
          'C5',
          `shows ${hexZxid(zxid)}, and ${hexZxid(due)} had been shown to a client before it began`,
        );
      }
      reported = Math.max(reported, zxid);
    }
  }

  #report(operation: Operation, invariant: string, message: string): void {
    this.#violations.reportAt(operation.endMs ?? operation.startMs, invariant, [], `${describe(operation)} ${message}`);
  }
}

/** Values may be long; their beginnings differ. */
function quote(data: string): string {
  return data.length > 60 ? `${JSON.stringify(data.slice(0, 60))} (${data.length} characters)` : JSON.stringify(data);
}

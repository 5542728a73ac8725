/**
 * Quotas: W9. A path has one while there is a `zookeeper_limits` below `/zookeeper/quota` for it; the service keeps what
 * is in use in `zookeeper_stats` beside it.
 *
 * What is in use is counted from all the states that a path and what is below it were in. No path with a quota lies
 * below another one.
 */
import { hexZxid, OpCode, type Txn } from '@meerkat/protocol';
import type { OperationRequest } from '../history.ts';
import { type ClientLog, describe } from './client-log.ts';
import { type CommittedTree, countUpTo } from './committed-tree.ts';
import type { FinalState, FinalZnode } from './final-rules.ts';
import type { Violations } from './violation.ts';

const QUOTA_ROOT = '/zookeeper/quota';
const LIMITS = '/zookeeper_limits';
const STATS = '/zookeeper_stats';
const DECODER = new TextDecoder();

interface Usage {
  readonly zxid: number;
  readonly count: number;
  readonly bytes: number;
}

/** Bytes and znodes that a write adds. */
interface Demand {
  readonly bytes: number;
  readonly count: number;
}

export class QuotaRules {
  readonly #tree: CommittedTree;
  readonly #violations: Violations;
  /** Paths that ever had a quota, and what was in use from which zxid on. */
  readonly #usages: Map<string, readonly Usage[]> = new Map();

  constructor(tree: CommittedTree, violations: Violations) {
    this.#tree = tree;
    this.#violations = violations;
    for (const path of tree.paths()) {
      if (!path.startsWith(QUOTA_ROOT) || !path.endsWith(LIMITS)) continue;
      const target = path.slice(QUOTA_ROOT.length, -LIMITS.length);
      this.#usages.set(target, usagesOf(target, tree));
    }
  }

  /**
   * A write is refused where it would exceed a hard limit, and only there.
   *
   * A leader decides by what it has applied: everything of earlier epochs, and some of its own.
   *
   * @param isEnforced the servers refuse what exceeds a limit
   */
  checkLimits(log: ClientLog, isEnforced: boolean): void {
    if (this.#usages.size === 0) return;
    for (const operation of log.history.operations) {
      const { request, error, zxid } = operation;
      if (error?.code !== 'QUOTAEXCEEDED' || zxid === null || request.op === 'multi') continue;
      if (this.#tree.entryAt(zxid)?.txn.type !== OpCode.error) continue;
      const demand = this.#demandOf(request, zxid);
      if (demand === null || this.#isPossible(demand.path, demand, zxid, false)) continue;
      this.#report(`${describe(operation)} is refused as ${hexZxid(zxid)}, which exceeds no limit`);
    }
    if (!isEnforced) return;
    for (const { header, txn } of this.#tree.committed) {
      for (const part of partsOf(txn)) {
        const demand = this.#demandOfTxn(part, header.zxid);
        if (demand === null || this.#isPossible(demand.path, demand, header.zxid, true)) continue;
        this.#report(`${hexZxid(header.zxid)} writes ${demand.path} and exceeds the limits of its quota`);
      }
    }
  }

  /** At rest the service says of each quota what is in use. */
  checkFinalStates(states: readonly FinalState[]): void {
    if (this.#usages.size === 0) return;
    for (const { server, lastZxid, znodes } of states) {
      for (const znode of znodes ?? []) this.#checkStats(server, lastZxid, znode);
    }
  }

  #checkStats(server: number, zxid: number, { path, data }: FinalZnode): void {
    if (!path.startsWith(QUOTA_ROOT) || !path.endsWith(STATS)) return;
    const target = path.slice(QUOTA_ROOT.length, -STATS.length);
    const usages = this.#usages.get(target);
    if (usages === undefined || this.#tree.stateAt(limitsOf(target), zxid) === null) return;
    const { count, bytes } = usageAt(usages, zxid);
    const found = DECODER.decode(data ?? undefined);
    if (found === `count=${count},bytes=${bytes}`) return;
    const message = `server ${server} says of the quota of ${target} ${found}, where count=${count},bytes=${bytes} are in use`;
    this.#violations.report('W9', [server], message);
  }

  #demandOf(request: OperationRequest, zxid: number): (Demand & { readonly path: string }) | null {
    if (request.op === 'create') return { path: request.path, bytes: lengthOf(request.data), count: 1 };
    if (request.op !== 'set') return null;
    return { path: request.path, bytes: lengthOf(request.data) - this.#lengthBefore(request.path, zxid), count: 0 };
  }

  #demandOfTxn(txn: Txn, zxid: number): (Demand & { readonly path: string }) | null {
    const { type } = txn;
    if ('parentCversion' in txn) return { path: txn.path, bytes: txn.data?.length ?? 0, count: 1 };
    if (type !== OpCode.setData) return null;
    return { path: txn.path, bytes: (txn.data?.length ?? 0) - this.#lengthBefore(txn.path, zxid), count: 0 };
  }

  #lengthBefore(path: string, zxid: number): number {
    return this.#tree.stateAt(path, this.#tree.zxidBefore(zxid))?.data?.length ?? 0;
  }

  /** Whether a leader that has applied anything from the beginning of its epoch up to `zxid` may have let it through, or refused it. */
  #isPossible(path: string, demand: Demand, zxid: number, isLetThrough: boolean): boolean {
    const target = this.#targetOf(path);
    if (target === null) return isLetThrough;
    const usages = this.#usages.get(target)!;
    const epochBegin = zxid - (zxid % 0x100000000);
    const last = this.#tree.zxidBefore(zxid);
    const limits = this.#tree.statesBetween(limitsOf(target), epochBegin, last);
    const from = Math.max(countUpTo(usages, epochBegin) - 1, 0);
    const inUse = usages.slice(from, countUpTo(usages, last));
    const texts = limits.map((state) => (state.exists ? state.data : null));
    if (limits.length === 0 || limits[0]!.zxid > epochBegin) texts.push(null);
    // Combines usage and limits of different moments, so it accepts more than is possible.
    return texts.some((text) => inUse.some((usage) => isWithin(usage, demand, text) === isLetThrough));
  }

  #targetOf(path: string): string | null {
    for (const target of this.#usages.keys()) if (path === target || path.startsWith(`${target}/`)) return target;
    return null;
  }

  #report(message: string): void {
    this.#violations.report('W9', [], message);
  }
}

function limitsOf(target: string): string {
  return QUOTA_ROOT + target + LIMITS;
}

/** What a znode and all below it were, from each zxid on at which that changed. */
function usagesOf(target: string, tree: CommittedTree): readonly Usage[] {
  const steps: { readonly zxid: number; readonly count: number; readonly bytes: number }[] = [];
  for (const path of tree.paths()) {
    if (path !== target && !path.startsWith(`${target}/`)) continue;
    let count = 0;
    let bytes = 0;
    for (const state of tree.statesBetween(path, 0, tree.lastZxid)) {
      const nextCount = state.exists ? 1 : 0;
      const nextBytes = state.exists ? (state.data?.length ?? 0) : 0;
      steps.push({ zxid: state.zxid, count: nextCount - count, bytes: nextBytes - bytes });
      count = nextCount;
      bytes = nextBytes;
    }
  }
  steps.sort((a, b) => a.zxid - b.zxid);
  const usages: Usage[] = [{ zxid: 0, count: 0, bytes: 0 }];
  for (const { zxid, count, bytes } of steps) {
    const last = usages.at(-1)!;
    if (last.zxid === zxid) usages.pop();
    usages.push({ zxid, count: last.count + count, bytes: last.bytes + bytes });
  }
  return usages;
}

function usageAt(usages: readonly Usage[], zxid: number): Usage {
  return usages[Math.max(countUpTo(usages, zxid) - 1, 0)]!;
}

/** Hard limits only: soft ones refuse nothing. */
function isWithin(usage: Usage, demand: Demand, limits: Uint8Array | null): boolean {
  const text = DECODER.decode(limits ?? undefined);
  const most = (key: string): number => {
    const number = new RegExp(`;${key}=(\\d+)`).exec(text)?.[1];
    return number === undefined ? Number.POSITIVE_INFINITY : Number(number);
  };
  const isCountWithin = demand.count === 0 || usage.count + demand.count <= most('countHardLimit');
  return isCountWithin && (demand.bytes === 0 || usage.bytes + demand.bytes <= most('byteHardLimit'));
}

function partsOf(txn: Txn): readonly Txn[] {
  if (txn.type !== OpCode.multi) return [txn];
  return txn.txns.some((part) => part.type === OpCode.error) ? [] : txn.txns;
}

function lengthOf(text: string): number {
  return new TextEncoder().encode(text).length;
}

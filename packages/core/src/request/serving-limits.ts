import { ErrorCode, OpCode, type Request } from '@meerkat/protocol';
import type { LimitOptions } from '../base/limit-options.ts';
import type { Trace } from '../base/ports.ts';
import type { WatchManager } from '../watch/watch-manager.ts';

export const LIMITS = ['sessions', 'connects', 'watches', 'growth', 'large-requests', 'late-requests'] as const;
export type LimitName = (typeof LIMITS)[number];

/**
 * Refuses requests and connections to protect the server from overload. Each refusal is counted; the trace reports each
 * limit at most once a second, with the number of refusals.
 */
export class ServingLimits {
  readonly options: LimitOptions;
  readonly #watches: WatchManager;
  readonly #trace: Trace;
  readonly #counts: Map<LimitName, number> = new Map(LIMITS.map((limit) => [limit, 0]));
  /** Time and count of the last report of each limit. */
  readonly #reported: Map<LimitName, { ms: number; count: number }> = new Map();
  /** Why requests that add data are refused; null while they are not. */
  #growthRefusal: string | null = null;

  constructor(options: LimitOptions, watches: WatchManager, trace: Trace) {
    this.options = options;
    this.#watches = watches;
    this.#trace = trace;
  }

  /** Refusals since the start. */
  countOf(limit: LimitName): number {
    return this.#counts.get(limit) ?? 0;
  }

  get growthRefusal(): string | null {
    return this.#growthRefusal;
  }

  /** Set by the host while memory or disk space is low. */
  set growthRefusal(reason: string | null) {
    this.#growthRefusal = reason;
  }

  /** True when `refusalOf` must be called. */
  get isTight(): boolean {
    return this.#growthRefusal !== null || this.options.watchesMax > 0;
  }

  /** @returns ok, or throttledOp for a refused request; deletions and reads without a watch are never refused */
  refusalOf(request: Request, nowMs: number): ErrorCode {
    if (this.#growthRefusal !== null && makesGrow(request)) {
      this.refuse('growth', this.#growthRefusal, nowMs);
      return ErrorCode.throttledOp;
    }
    const { watchesMax } = this.options;
    if (watchesMax > 0 && leavesWatch(request) && this.#watches.data.count + this.#watches.child.count >= watchesMax) {
      this.refuse('watches', `there are ${watchesMax} watches, as many as watches.max allows`, nowMs);
      return ErrorCode.throttledOp;
    }
    return ErrorCode.ok;
  }

  /** @returns why no session may be created; null when one may */
  sessionRefusal(count: number, nowMs: number): string | null {
    const { sessionsMax } = this.options;
    if (sessionsMax === 0 || count < sessionsMax) return null;
    const reason = `there are ${count} sessions, and sessions.max allows ${sessionsMax}`;
    this.refuse('sessions', reason, nowMs);
    return LIMIT_REACHED + reason;
  }

  refuse(limit: LimitName, reason: string, nowMs: number): void {
    const count = this.countOf(limit) + 1;
    this.#counts.set(limit, count);
    const reported = this.#reported.get(limit);
    if (reported !== undefined && nowMs - reported.ms < REPORT_INTERVAL_MS) return;
    this.#trace.emit({ kind: 'limit-reached', limit, reason, refused: count - (reported?.count ?? 0) });
    this.#reported.set(limit, { ms: nowMs, count });
  }
}

/** Prefix of the close reason of a connection that exceeds a limit; the trace reports the limit itself only once. */
export const LIMIT_REACHED = 'a limit of this server is reached: ';

const REPORT_INTERVAL_MS = 1000;

/** Whether it may add znodes or data to the tree. setData and setACL count, even if they shrink the data. */
function makesGrow(request: Request): boolean {
  switch (request.op) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTTL:
    case OpCode.setData:
    case OpCode.setACL:
      return true;
    case OpCode.multi:
      return request.ops.some((operation) => operation.op !== OpCode.delete && operation.op !== OpCode.check);
    default:
      return false;
  }
}

/** setWatches does not count: a client gets its watches back after a reconnect. */
function leavesWatch(request: Request): boolean {
  return 'watch' in request ? request.watch : request.op === OpCode.addWatch;
}

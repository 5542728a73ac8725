import { ErrorCode, OpCode, type Request } from '@meerkat/protocol';
import type { LimitOptions } from '../base/limit-options.ts';
import type { Trace } from '../base/ports.ts';
import type { WatchManager } from '../watch/watch-manager.ts';

/** What is refused by a limit. */
export const LIMITS = ['sessions', 'connects', 'watches', 'growth', 'large-requests', 'late-requests'] as const;
export type LimitName = (typeof LIMITS)[number];

/**
 * What this server refuses so that it stays well for the others. Each refusal is counted; the trace hears of each limit once
 * a second at most, with how many there were.
 */
export class ServingLimits {
  readonly options: LimitOptions;
  readonly #watches: WatchManager;
  readonly #trace: Trace;
  readonly #counts: Map<LimitName, number> = new Map(LIMITS.map((limit) => [limit, 0]));
  /** When it was told of last, and how many had been refused then. */
  readonly #told: Map<LimitName, { ms: number; count: number }> = new Map();
  /** Why nothing may grow any more; null while it may. */
  #growthRefusal: string | null = null;

  constructor(options: LimitOptions, watches: WatchManager, trace: Trace) {
    this.options = options;
    this.#watches = watches;
    this.#trace = trace;
  }

  /** Refused since the start. */
  countOf(limit: LimitName): number {
    return this.#counts.get(limit) ?? 0;
  }

  get growthRefusal(): string | null {
    return this.#growthRefusal;
  }

  /** The host has seen that memory or disk run short, or that there is enough again. */
  set growthRefusal(reason: string | null) {
    this.#growthRefusal = reason;
  }

  /** True when `refusalOf` has to be asked. */
  get isTight(): boolean {
    return this.#growthRefusal !== null || this.options.watchesMax > 0;
  }

  /** @returns ok, or throttledOp for a request that is not carried out; reads and deletions always are */
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
    const told = this.#told.get(limit);
    if (told !== undefined && nowMs - told.ms < TOLD_MS) return;
    this.#trace.emit({ kind: 'limit-reached', limit, reason, refused: count - (told?.count ?? 0) });
    this.#told.set(limit, { ms: nowMs, count });
  }
}

/** How the reason of a connection begins that is closed by a limit: what there is to say is said once for all of them. */
export const LIMIT_REACHED = 'a limit of this server is reached: ';

const TOLD_MS = 1000;

/** Whether it adds to the tree: znodes or data. Data may become less, too; nobody knows before. */
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

/** What a client had before it was disconnected is given back to it. */
function leavesWatch(request: Request): boolean {
  return 'watch' in request ? request.watch : request.op === OpCode.addWatch;
}

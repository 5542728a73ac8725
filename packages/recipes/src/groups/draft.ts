import { type Data, NoAuthError, QuotaExceededError, RequestTooLargeError, ZooKeeperError } from '@meerkat/client';
import { asDoubtful } from '../kernel/doubt.ts';
import { LossStreak } from '../kernel/loss-streak.ts';

/** Data to be written, and the failures of writing it. */
export class Draft {
  readonly data: Data;
  /** Its number among the calls of `set`. */
  readonly revision: number;
  readonly #losses = new LossStreak();
  /** An attempt may have been applied although its reply was lost. */
  #isDoubtful = false;

  /** @param data is copied: callers may reuse their buffer, while the znode may have to be recreated much later */
  constructor(data: Data, revision = 0) {
    this.data = data instanceof Uint8Array ? new Uint8Array(data) : data;
    this.revision = revision;
  }

  /** Writing it has cost so many connections that it is retried less often: see COSTLY_PAUSE_MS. */
  get isCostly(): boolean {
    return this.#losses.isTooLong;
  }

  /** Writing it has failed. @returns the error to report, as of `explain` */
  failed(error: unknown, path: string): unknown {
    this.#losses.noted(error, this.data?.length ?? 0);
    this.#isDoubtful ||= error instanceof ZooKeeperError && error.outcome === 'unknown';
    return this.explain(error, path);
  }

  /**
   * @returns RequestTooLargeError instead of the error once too many connections were lost in a row; of outcome
   *   'unknown' when an earlier attempt may have been applied
   */
  explain(error: unknown, path: string): unknown {
    const about = { operation: 'set', path };
    const reason = this.#losses.explain(error, about);
    return this.#isDoubtful ? asDoubtful(reason, about) : reason;
  }

  /** Writing it got a reply. */
  written(): void {
    this.#losses.end();
    this.#isDoubtful = false;
  }
}

/** Milliseconds between attempts to write data that costs the connection. */
export const COSTLY_PAUSE_MS = 5000;

/** The service refuses this data; it may accept other data. */
export function isRefusal(error: unknown): error is Error {
  return REFUSALS.some((kind) => error instanceof kind);
}

const REFUSALS = [RequestTooLargeError, QuotaExceededError, NoAuthError] as const;

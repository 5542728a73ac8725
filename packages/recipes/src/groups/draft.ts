import { type Data, NoAuthError, QuotaExceededError, RequestTooLargeError, ZooKeeperError } from '@meerkat/client';
import { asDoubtful } from '../kernel/doubt.ts';
import { LossStreak } from '../kernel/loss-streak.ts';

/** Data that are to be written, and what trying that has cost. */
export class Draft {
  readonly data: Data;
  /** Which it is of those that were given to `set`. */
  readonly revision: number;
  readonly #losses = new LossStreak();
  /** An attempt may have been applied although its answer was lost. */
  #isDoubtful = false;

  /** @param data are copied: callers may write to their bytes again, while the znode may have to be recreated much later */
  constructor(data: Data, revision = 0) {
    this.data = data instanceof Uint8Array ? new Uint8Array(data) : data;
    this.revision = revision;
  }

  /** Writing it has cost so many connections that it is to be tried more rarely: see COSTLY_PAUSE_MS. */
  get isCostly(): boolean {
    return this.#losses.isTooLong;
  }

  /** Writing it has failed. @returns what for, as `explain` reports */
  failed(error: unknown, path: string): unknown {
    this.#losses.noted(error, this.data?.length ?? 0);
    this.#isDoubtful ||= error instanceof ZooKeeperError && error.outcome === 'unknown';
    return this.explain(error, path);
  }

  /**
   * @returns RequestTooLargeError instead of an error once too many connections were lost in a row; of outcome 'unknown' when an
   *   attempt before it may have been applied
   */
  explain(error: unknown, path: string): unknown {
    const about = { operation: 'set', path };
    const reason = this.#losses.explain(error, about);
    return this.#isDoubtful ? asDoubtful(reason, about) : reason;
  }

  /** Writing it was answered. */
  written(): void {
    this.#losses.end();
    this.#isDoubtful = false;
  }
}

/** Milliseconds between attempts to write what costs the connection. */
export const COSTLY_PAUSE_MS = 5000;

/** The service does not take these data; the next it may. */
export function isRefusal(error: unknown): error is Error {
  return REFUSALS.some((kind) => error instanceof kind);
}

const REFUSALS = [RequestTooLargeError, QuotaExceededError, NoAuthError] as const;

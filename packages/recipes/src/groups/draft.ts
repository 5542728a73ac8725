import { type Data, NoAuthError, QuotaExceededError, RequestTooLargeError } from '@meerkat/client';
import { LossStreak } from '../loss-streak.ts';

/** Data that are to be written, and what trying that has cost. */
export class Draft {
  readonly data: Data;
  /** Which it is of those that were given to `set`. */
  readonly revision: number;
  readonly #losses = new LossStreak();

  /** @param data are copied: callers may write to their bytes again, while the znode may have to be made again much later */
  constructor(data: Data, revision = 0) {
    this.data = data instanceof Uint8Array ? new Uint8Array(data) : data;
    this.revision = revision;
  }

  /** Writing it has cost so many connections that it is to be tried more rarely: see COSTLY_PAUSE_MS. */
  get isCostly(): boolean {
    return this.#losses.isTooLong;
  }

  /** Writing it has failed. @returns what for, as `explain` tells */
  failed(error: unknown, path: string): unknown {
    this.#losses.noted(error, this.data?.length ?? 0);
    return this.explain(error, path);
  }

  /** @returns RequestTooLargeError instead of an error once too many connections were lost in a row */
  explain(error: unknown, path: string): unknown {
    return this.#losses.explain(error, { operation: 'set', path });
  }

  /** Writing it was answered. */
  written(): void {
    this.#losses.end();
  }
}

/** Milliseconds between attempts to write what costs the connection. */
export const COSTLY_PAUSE_MS = 5000;

/** The service does not take these data; the next it may. */
export function isRefusal(error: unknown): error is Error {
  return REFUSALS.some((kind) => error instanceof kind);
}

const REFUSALS = [RequestTooLargeError, QuotaExceededError, NoAuthError] as const;

import type { Metrics } from '../metrics/metrics.ts';
import { type AdminAuthorization, type Caller, NOT_SERVING, type Refusal } from './authorization.ts';

/** A snapshot that has been written. */
export interface TakenSnapshot {
  readonly path: string;
  readonly zxid: number;
  /** Of the file. */
  readonly bytes: number;
}

export interface SnapshotCommandParts {
  readonly isEnabled: boolean;
  readonly intervalMs: number;
  readonly authorization: AdminAuthorization;
  readonly metrics: Metrics;
  isServing(): boolean;
  monotonicMs(): number;
  /** Writes a snapshot of what is applied, or finds the one that is there. Rejects when that fails. */
  take(): Promise<TakenSnapshot>;
}

/**
 * The admin command `snapshot` (3.9): writes a snapshot and gives its bytes. Checked in this order: who asks (401, 403),
 * whether the server serves (200 with a text, as ZooKeeper), whether it is switched on (503), whether it is too early (429).
 */
export class SnapshotCommand {
  readonly #parts: SnapshotCommandParts;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(parts: SnapshotCommandParts) {
    this.#parts = parts;
  }

  async run(caller: Caller): Promise<TakenSnapshot | Refusal> {
    const { isEnabled, intervalMs, metrics } = this.#parts;
    const refusal = this.#parts.authorization.refusalOf(caller, NOT_SERVING);
    if (refusal !== null) return refusal;
    if (!this.#parts.isServing()) return NOT_SERVING;
    if (!isEnabled) return { status: 503, error: null };
    const nowMs = this.#parts.monotonicMs();
    if (nowMs - this.#lastMs < intervalMs) {
      metrics.snapshotsRateLimited++;
      return { status: 429, error: null };
    }
    this.#lastMs = nowMs;
    try {
      return await this.#parts.take();
    } catch {
      // The reason is in the log.
      return { status: 500, error: null };
    }
  }
}

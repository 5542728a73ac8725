import type { Clock, Trace, TraceEvent } from '@meerkat/core';

/** Count, sum and extremes of values (ZooKeeper's basic summary); all 0 before the first. */
export class Summary {
  count = 0;
  sum = 0;
  min = 0;
  max = 0;

  add(value: number): void {
    this.min = this.count === 0 ? value : Math.min(this.min, value);
    this.max = Math.max(this.max, value);
    this.sum += value;
    this.count++;
  }

  get average(): number {
    return this.count === 0 ? 0 : this.sum / this.count;
  }

  reset(): void {
    this.count = 0;
    this.sum = 0;
    this.min = 0;
    this.max = 0;
  }
}

/**
 * What has happened in numbers, under ZooKeeper's names: a listener of the core's trace.
 *
 * The names are those of `mntr` without `zk_`. Durations are whole milliseconds, as in ZooKeeper.
 */
export class Metrics implements Trace {
  readonly counters: Record<CounterName, number> = {
    connection_request_count: 0,
    snapshot_error_count: 0,
    stale_sessions_expired: 0,
    bytes_received_count: 0,
    digest_mismatches_count: 0,
  };
  readonly summaries: Record<SummaryName, Summary> = {
    fsynctime: new Summary(),
    sync_processor_batch_size: new Summary(),
    snapshottime: new Summary(),
    dbinittime: new Summary(),
    startup_txns_loaded: new Summary(),
  };
  /** Refused writes by the first part of the path that a quota is on. */
  readonly quotaExceeded: Map<string, number> = new Map();
  readonly #clock: Clock;
  readonly #startedMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
  }

  /** Milliseconds since the server was started. */
  get uptimeMs(): number {
    return Math.floor(this.#clock.monotonicMs() - this.#startedMs);
  }

  onBytesReceived(bytes: number): void {
    this.counters.bytes_received_count += bytes;
  }

  emit(event: TraceEvent): void {
    const { counters, summaries } = this;
    switch (event.kind) {
      case 'session-created':
      case 'session-resumed':
      case 'session-refused':
        counters.connection_request_count++;
        break;
      case 'session-expired':
        counters.stale_sessions_expired++;
        break;
      case 'log-synced':
        summaries.fsynctime.add(Math.round(event.syncMs));
        summaries.sync_processor_batch_size.add(event.txns);
        break;
      case 'snapshot-written':
        summaries.snapshottime.add(Math.round(event.ms));
        break;
      case 'snapshot-failed':
        counters.snapshot_error_count++;
        break;
      case 'digest-mismatch':
        counters.digest_mismatches_count++;
        break;
      case 'recovered':
        summaries.dbinittime.add(this.uptimeMs);
        summaries.startup_txns_loaded.add(event.txns);
        break;
      case 'quota-exceeded': {
        if (!event.isHard) break;
        const namespace = event.path.split('/')[1] ?? '';
        this.quotaExceeded.set(namespace, (this.quotaExceeded.get(namespace) ?? 0) + 1);
        break;
      }
      default:
        break;
    }
  }

  /** `srst`: gauges stay. */
  reset(): void {
    for (const name of Object.keys(this.counters) as CounterName[]) this.counters[name] = 0;
    for (const summary of Object.values(this.summaries)) summary.reset();
    this.quotaExceeded.clear();
  }
}

type CounterName =
  | 'connection_request_count'
  | 'snapshot_error_count'
  | 'stale_sessions_expired'
  | 'bytes_received_count'
  | 'digest_mismatches_count';
type SummaryName = 'fsynctime' | 'sync_processor_batch_size' | 'snapshottime' | 'dbinittime' | 'startup_txns_loaded';

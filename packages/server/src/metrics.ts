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
    looking_count: 0,
    diff_count: 0,
    snap_count: 0,
    proposal_count: 0,
    unsuccessful_handshake: 0,
    tls_handshake_exceeded: 0,
  };
  /** TLS handshakes that failed because of the client's certificate. */
  certificateFailures = 0;
  readonly summaries: Record<SummaryName, Summary> = {
    fsynctime: new Summary(),
    sync_processor_batch_size: new Summary(),
    snapshottime: new Summary(),
    dbinittime: new Summary(),
    startup_txns_loaded: new Summary(),
    election_time: new Summary(),
  };
  /** Refused writes by the first part of the path that a quota is on. */
  readonly quotaExceeded: Map<string, number> = new Map();
  readonly #clock: Clock;
  readonly #startedMs: number;
  /** When it began to look for a leader; −1 while it does not. */
  #lookingSinceMs = -1;
  #establishedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
  }

  /** Milliseconds since the server was started. */
  get uptimeMs(): number {
    return Math.floor(this.#clock.monotonicMs() - this.#startedMs);
  }

  /** Milliseconds since the epoch of this server's leader was established. */
  get leaderUptimeMs(): number {
    return Math.floor(this.#clock.monotonicMs() - this.#establishedMs);
  }

  onBytesReceived(bytes: number): void {
    this.counters.bytes_received_count += bytes;
  }

  onHandshakeFailed(isAuthentication: boolean): void {
    this.counters.unsuccessful_handshake++;
    if (isAuthentication) this.certificateFailures++;
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
      case 'role-changed':
        this.#onRoleChanged(event.role === 'looking');
        break;
      case 'epoch-established':
        this.#establishedMs = this.#clock.monotonicMs();
        break;
      case 'learner-synchronizing':
        // A truncation is followed by what comes after it, as a difference is.
        if (event.mode === 'snap') counters.snap_count++;
        else counters.diff_count++;
        break;
      case 'proposed':
        counters.proposal_count++;
        break;
      default:
        break;
    }
  }

  #onRoleChanged(isLooking: boolean): void {
    const nowMs = this.#clock.monotonicMs();
    if (isLooking) this.counters.looking_count++;
    else if (this.#lookingSinceMs >= 0) this.summaries.election_time.add(Math.round(nowMs - this.#lookingSinceMs));
    this.#lookingSinceMs = isLooking ? nowMs : -1;
  }

  /** `srst`: gauges stay. */
  reset(): void {
    for (const name of Object.keys(this.counters) as CounterName[]) this.counters[name] = 0;
    for (const summary of Object.values(this.summaries)) summary.reset();
    this.quotaExceeded.clear();
    this.certificateFailures = 0;
  }
}

type CounterName =
  | 'connection_request_count'
  | 'snapshot_error_count'
  | 'stale_sessions_expired'
  | 'bytes_received_count'
  | 'digest_mismatches_count'
  | 'looking_count'
  | 'diff_count'
  | 'snap_count'
  | 'proposal_count'
  | 'unsuccessful_handshake'
  | 'tls_handshake_exceeded';
type SummaryName =
  | 'fsynctime'
  | 'sync_processor_batch_size'
  | 'snapshottime'
  | 'dbinittime'
  | 'startup_txns_loaded'
  | 'election_time';

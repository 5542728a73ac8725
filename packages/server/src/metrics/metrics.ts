import { type Clock, Histogram, type Meters, type Trace, type TraceEvent } from '@meerkat/core';
import type { EnsembleAnswers } from '../auth/apache-schemes.ts';
import { isLoopback } from '../auth/ip-address.ts';

type Role = 'none' | 'looking' | 'leading' | 'following' | 'observing';

/**
 * What has happened in numbers: a listener of the core's trace, beside the `Meters` in which the core itself counts.
 *
 * Nothing is ever set back; `srst` is a matter of who shows the numbers (`MonitorBaseline`). Durations are microseconds.
 */
export class Metrics implements Trace {
  connectRequests = 0;
  connectionsDropped = 0;
  sessionsExpired = 0;
  bytesReceived = 0;
  digestMismatches = 0;
  snapshotErrors = 0;
  snapshotsRateLimited = 0;
  restoreErrors = 0;
  restoresRateLimited = 0;
  unrecoverableErrors = 0;
  handshakesFailed = 0;
  handshakesExceeded = 0;
  /** Connections of clients without TLS, of a server that speaks TLS to clients: from this machine, and from others. */
  plainLocalClients = 0;
  plainRemoteClients = 0;
  /** TLS handshakes that failed because of the client's certificate. */
  certificateFailures = 0;
  syncsOverThreshold = 0;
  readonly ensembleAnswers: EnsembleAnswers = { success: 0, fail: 0, skip: 0 };
  lookings = 0;
  diffs = 0;
  snaps = 0;
  /** Of this server as a leader, and as a learner. */
  proposals = 0;
  commits = 0;
  commitsReceived = 0;

  readonly fsync: Histogram = new Histogram();
  readonly batch: Histogram = new Histogram();
  readonly snapshot: Histogram = new Histogram();
  readonly restore: Histogram = new Histogram();
  readonly databaseInit: Histogram = new Histogram();
  readonly snapshotLoad: Histogram = new Histogram();
  readonly replay: Histogram = new Histogram();
  readonly txnsReplayed: Histogram = new Histogram();
  readonly election: Histogram = new Histogram();
  readonly unavailable: Histogram = new Histogram();
  readonly leaderUnavailable: Histogram = new Histogram();
  readonly followerSync: Histogram = new Histogram();
  readonly observerSync: Histogram = new Histogram();
  readonly quorumAck: Histogram = new Histogram();
  /** Learners that were being synchronized in one way when another one began. */
  readonly diffsInFlight: Histogram = new Histogram();
  readonly snapsInFlight: Histogram = new Histogram();
  /** Refused writes by the first part of the path that a quota is on. */
  readonly quotaExceeded: Map<string, number> = new Map();

  readonly #clock: Clock;
  readonly #syncWarningMs: number;
  readonly #startedMs: number;
  readonly #proposed = new ProposalTimes();
  readonly #syncing = new Map<number, 'diff' | 'snap'>();
  #meters: Meters | null = null;
  #role: Role = 'none';
  /** When it began to look for a leader; −1 once it serves. */
  #lookingSinceMs = -1;
  #roleSinceMs = 0;
  #establishedMs = 0;
  #committed = 0;

  /** @param syncWarningMs from which on a sync counts as slow */
  constructor(clock: Clock, syncWarningMs: number) {
    this.#clock = clock;
    this.#syncWarningMs = syncWarningMs;
    this.#startedMs = clock.monotonicMs();
  }

  /** What the core counts; there once the core is. */
  follow(meters: Meters): void {
    this.#meters = meters;
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
    this.bytesReceived += bytes;
  }

  /** @param ip of the other end */
  onPlainClient(ip: Uint8Array): void {
    if (isLoopback(ip)) this.plainLocalClients++;
    else this.plainRemoteClients++;
  }

  onHandshakeFailed(isAuthentication: boolean): void {
    this.handshakesFailed++;
    if (isAuthentication) this.certificateFailures++;
  }

  emit(event: TraceEvent): void {
    switch (event.kind) {
      case 'session-created':
      case 'session-resumed':
      case 'session-refused':
        this.connectRequests++;
        break;
      case 'connection-closed':
        if (event.reason === CLOSED_BY_PEER) this.connectionsDropped++;
        break;
      case 'session-expired':
        this.sessionsExpired++;
        break;
      case 'log-synced':
        this.fsync.add(event.syncMs * 1000);
        this.batch.add(event.txns);
        if (event.syncMs > this.#syncWarningMs) this.syncsOverThreshold++;
        break;
      case 'snapshot-written':
        this.snapshot.add(event.ms * 1000);
        break;
      case 'snapshot-failed':
        this.snapshotErrors++;
        break;
      case 'digest-mismatch':
        this.digestMismatches++;
        break;
      case 'recovered':
        this.databaseInit.add((event.snapshotMs + event.replayMs) * 1000);
        this.snapshotLoad.add(event.snapshotMs * 1000);
        this.replay.add(event.replayMs * 1000);
        this.txnsReplayed.add(event.txns);
        break;
      case 'quota-exceeded': {
        const namespace = event.path.split('/')[1] ?? '';
        this.quotaExceeded.set(namespace, (this.quotaExceeded.get(namespace) ?? 0) + 1);
        break;
      }
      case 'role-changed':
        this.#onRoleChanged(event.role);
        break;
      case 'epoch-established':
        this.#onEstablished();
        break;
      case 'learner-synchronizing':
        this.#onSynchronizing(event.serverId, event.mode === 'snap' ? 'snap' : 'diff');
        break;
      case 'learner-synchronized':
        this.#syncing.delete(event.serverId);
        break;
      case 'learner-closed':
        if (event.serverId !== null) this.#syncing.delete(event.serverId);
        break;
      case 'proposed':
        this.proposals++;
        this.#proposed.onProposed(event.zxid, this.#meters?.turnStartedMs ?? 0);
        break;
      case 'committed':
        this.#onCommitted(event.zxid);
        break;
      case 'failed':
        this.unrecoverableErrors++;
        break;
      default:
        break;
    }
  }

  #onRoleChanged(role: Exclude<Role, 'none'>): void {
    const nowMs = this.#clock.monotonicMs();
    if (role === 'looking') {
      this.lookings++;
      if (this.#lookingSinceMs < 0) this.#lookingSinceMs = nowMs;
      this.#proposed.clear();
      this.#syncing.clear();
    } else if (this.#role === 'looking') {
      this.election.add((nowMs - this.#roleSinceMs) * 1000);
    }
    this.#role = role;
    this.#roleSinceMs = nowMs;
  }

  #onEstablished(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#establishedMs = nowMs;
    const syncMicros = (nowMs - this.#roleSinceMs) * 1000;
    if (this.#role === 'following') this.followerSync.add(syncMicros);
    else if (this.#role === 'observing') this.observerSync.add(syncMicros);
    if (this.#lookingSinceMs < 0) return;
    const micros = (nowMs - this.#lookingSinceMs) * 1000;
    this.#lookingSinceMs = -1;
    this.unavailable.add(micros);
    if (this.#role === 'leading') this.leaderUnavailable.add(micros);
  }

  #onSynchronizing(serverId: number, mode: 'diff' | 'snap'): void {
    if (mode === 'snap') this.snaps++;
    // A truncation is followed by what comes after it, as a difference is.
    else this.diffs++;
    this.#syncing.set(serverId, mode);
    const others = [...this.#syncing.values()].filter((other) => other === mode).length;
    (mode === 'snap' ? this.snapsInFlight : this.diffsInFlight).add(others);
  }

  /** A watermark; the first one of an epoch ends the history that the epoch began with. */
  #onCommitted(zxid: number): void {
    const isSameEpoch = Math.floor(zxid / EPOCH) === Math.floor(this.#committed / EPOCH);
    const txns = isSameEpoch ? zxid - this.#committed : zxid % EPOCH;
    this.#committed = zxid;
    if (this.#role === 'leading') {
      const isHistory = this.#lookingSinceMs >= 0;
      if (isHistory) return;
      this.commits += txns;
      this.#proposed.onCommitted(zxid, this.#clock.monotonicMs(), this.quorumAck);
    } else if (this.#lookingSinceMs < 0) {
      this.commitsReceived += txns;
    }
  }
}

/**
 * When what a leader has proposed was proposed: the last zxid of each turn, so that a thousand proposals of one turn are
 * one entry. Of more turns than there is room for the newest are not measured.
 */
class ProposalTimes {
  readonly #zxids = new Float64Array(TURNS_MAX);
  readonly #atMs = new Float64Array(TURNS_MAX);
  readonly #counts = new Uint32Array(TURNS_MAX);
  #start = 0;
  #length = 0;

  onProposed(zxid: number, turnStartedMs: number): void {
    const newest = (this.#start + this.#length - 1) % TURNS_MAX;
    if (this.#length > 0 && this.#atMs[newest] === turnStartedMs) {
      this.#zxids[newest] = zxid;
      this.#counts[newest]!++;
      return;
    }
    if (this.#length === TURNS_MAX) return;
    const next = (this.#start + this.#length) % TURNS_MAX;
    this.#length++;
    this.#zxids[next] = zxid;
    this.#atMs[next] = turnStartedMs;
    this.#counts[next] = 1;
  }

  /** @param latency microseconds of every txn up to here */
  onCommitted(zxid: number, nowMs: number, latency: Histogram): void {
    while (this.#length > 0 && this.#zxids[this.#start]! <= zxid) {
      latency.add((nowMs - this.#atMs[this.#start]!) * 1000, this.#counts[this.#start]!);
      this.#start = (this.#start + 1) % TURNS_MAX;
      this.#length--;
    }
  }

  clear(): void {
    this.#length = 0;
  }
}

const EPOCH = 2 ** 32;
const TURNS_MAX = 1024;
/** Why a connection is gone that its client has closed without ending its session first. */
const CLOSED_BY_PEER = 'closed by peer';

import type { Txn } from '@meerkat/protocol';
import { OPERATION_ENTRIES } from '../operations.ts';
import type { Clock } from '../ports.ts';
import { Histogram } from './histogram.ts';
import { LearnerMeters } from './learner-meters.ts';
import { NamespaceMeters } from './namespace-meters.ts';

/**
 * What a server counts while it works: plain numbers and histograms for metrics. Nothing is ever reset, and nothing
 * depends on it.
 *
 * A request does not read the clock. Requests that are answered within their turn all get the same latency, measured
 * once at the end of the turn, when replies are sent. Requests that wait for several turns are noted with the time at
 * which they arrived, and measured then too.
 */
export class Meters {
  readonly #clock: Clock;
  /** Monotonic milliseconds, with fraction, at which this turn began; 0 before the first. */
  turnStartedMs = 0;
  #isInTurn = false;

  /** Microseconds from the first event of a turn to the end of the turn. */
  readonly turns: Histogram = new Histogram();
  /**
   * Microseconds from a request to the end of the turn that answered it: reads, and writes of this server's clients.
   */
  readonly reads: Histogram = new Histogram();
  readonly updates: Histogram = new Histogram();
  readonly #operations: readonly Histogram[] = Array.from({ length: SLOTS }, () => new Histogram());

  /** Bytes sent to clients, and those of watch events among them; length prefixes included. */
  sentBytes = 0;
  eventBytes = 0;
  /** Txns prepared from requests here, learners' requests included; txns received from a leader; txns applied. */
  prepared = 0;
  proposalsReceived = 0;
  applied = 0;
  /**
   * Milliseconds from the creation of a txn, by the clock of the server that made it, to its arrival at this learner.
   */
  readonly proposalDelay: Histogram = new Histogram();
  /** The same until it is applied here. */
  readonly propagation: Histogram = new Histogram();
  /** The same until this learner's acknowledgement, and until its leader's COMMIT arrives. */
  readonly ackDelay: Histogram = new Histogram();
  readonly commitDelay: Histogram = new Histogram();
  /** For a leader. */
  readonly learners: LearnerMeters = new LearnerMeters();
  /** Clients that resumed a session; sessions that a learner asked this leader to revalidate. */
  reconnections = 0;
  revalidations = 0;
  /** Connections that timed out without asking for a session. */
  sessionlessExpired = 0;
  /**
   * How often a connection was not read because of `request_throttle_max_requests`, and milliseconds its requests
   * waited.
   */
  throttleWaits = 0;
  readonly throttleWait: Histogram = new Histogram();
  /** Requests older than their session's timeout, and connections closed with such requests, by either side. */
  staleRequests = 0;
  staleRequestsDropped = 0;
  /**
   * Probability that a connecting client is dropped, 0 … 1; tokens missing from the bucket when a client was admitted.
   */
  connectDropChance = 0;
  readonly tokenDeficit: Histogram = new Histogram();
  readonly namespaces: NamespaceMeters = new NamespaceMeters();

  /** Reads answered at once in this turn, by operation. */
  readonly #turnReads = new Uint32Array(SLOTS);
  /** Delayed requests answered in this turn: operation and arrival time. */
  readonly #waitedOps = new Int8Array(WAITED_MAX);
  readonly #waitedSinceMs = new Float64Array(WAITED_MAX);
  #waitedCount = 0;
  #turnApplied = 0;
  #newestTxnMs = 0;
  #turnReceived = 0;
  #newestReceivedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Microseconds that requests of one operation took. */
  operation(op: number): Histogram {
    return this.#operations[op & OPERATION_MASK]!;
  }

  /** The first event of a turn. @returns its time in monotonic milliseconds */
  onTurnStart(): number {
    this.turnStartedMs = this.#clock.monotonicMs();
    this.#isInTurn = true;
    return this.turnStartedMs;
  }

  /** A read, or a ping, was answered in the turn in which it arrived. */
  onReadAtOnce(op: number): void {
    this.#turnReads[op & OPERATION_MASK]!++;
  }

  /** A request of an earlier turn was answered. @param sinceMs beginning of the turn in which it arrived */
  onAnswered(op: number, sinceMs: number): void {
    if (this.#waitedCount === WAITED_MAX) this.#measureWaited(this.#clock.monotonicMs());
    this.#waitedOps[this.#waitedCount] = op;
    this.#waitedSinceMs[this.#waitedCount] = sinceMs;
    this.#waitedCount++;
  }

  /** A txn was applied. @param timeMs when it was made, by the wall clock of the server that made it */
  onApplied(timeMs: number, txn: Txn): void {
    this.applied++;
    this.#turnApplied++;
    this.#newestTxnMs = timeMs;
    this.namespaces.onTxn(txn);
  }

  /** This learner received a txn from its leader. */
  onProposalReceived(timeMs: number): void {
    this.proposalsReceived++;
    this.#turnReceived++;
    this.#newestReceivedMs = timeMs;
  }

  /** Replies and events have been sent. */
  onTurnEnd(): void {
    if (!this.#isInTurn) return;
    this.#isInTurn = false;
    const nowMs = this.#clock.monotonicMs();
    const micros = (nowMs - this.turnStartedMs) * 1000;
    this.turns.add(micros);
    this.#measureReads(micros);
    if (this.#waitedCount > 0) this.#measureWaited(nowMs);
    if (this.#turnReceived > 0) {
      this.proposalDelay.add(this.#clock.wallMs() - this.#newestReceivedMs, this.#turnReceived);
      this.#turnReceived = 0;
    }
    if (this.#turnApplied > 0) {
      this.propagation.add(this.#clock.wallMs() - this.#newestTxnMs, this.#turnApplied);
      this.#turnApplied = 0;
    }
  }

  #measureReads(micros: number): void {
    let all = 0;
    for (const op of READS) {
      const count = this.#turnReads[op & OPERATION_MASK]!;
      if (count === 0) continue;
      this.operation(op).add(micros, count);
      this.#turnReads[op & OPERATION_MASK] = 0;
      all += count;
    }
    if (all > 0) this.reads.add(micros, all);
  }

  #measureWaited(nowMs: number): void {
    // Requests of one operation from the same turn took equally long and are mostly adjacent: they are counted
    // together.
    for (let i = 0, next = 0; i < this.#waitedCount; i = next) {
      const op = this.#waitedOps[i]!;
      const sinceMs = this.#waitedSinceMs[i]!;
      for (next = i + 1; next < this.#waitedCount; next++) {
        if (this.#waitedOps[next] !== op || this.#waitedSinceMs[next] !== sinceMs) break;
      }
      const micros = (nowMs - sinceMs) * 1000;
      this.operation(op).add(micros, next - i);
      if (IS_READ[op & OPERATION_MASK] === 1) this.reads.add(micros, next - i);
      else this.updates.add(micros, next - i);
    }
    this.#waitedCount = 0;
  }
}

/** Operation codes are small, including the negative ones. */
const OPERATION_MASK = 127;
const SLOTS = OPERATION_MASK + 1;
/** Answers kept until the end of a turn; more are measured earlier. */
const WAITED_MAX = 4096;

const READS: readonly number[] = OPERATION_ENTRIES.filter(([, { isRead }]) => isRead).map(([op]) => op);
const IS_READ = new Uint8Array(SLOTS);
for (const op of READS) IS_READ[op & OPERATION_MASK] = 1;

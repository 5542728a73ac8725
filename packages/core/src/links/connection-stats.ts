import { OPERATION_ENTRIES } from '../base/operations.ts';

/** What `cons` prints about a connection (ServerCnxn). Latencies and response times in monotonic milliseconds. */
export class ConnectionStats {
  /** Wall-clock milliseconds. */
  readonly establishedWallMs: number;
  packetsReceived = 0;
  packetsSent = 0;
  /** Op code of its last request, or the name that `cons` prints for operations without one; null before the first. */
  #lastOperation: number | string | null = null;
  lastCxid = 0;
  lastZxid = 0;
  lastResponseMs = 0;
  lastLatencyMs = 0;
  minLatencyMs = 0;
  maxLatencyMs = 0;
  #latencyTotal = 0;
  #latencyCount = 0;

  constructor(establishedWallMs: number) {
    this.establishedWallMs = establishedWallMs;
  }

  onRequest(xid: number, op: number): void {
    this.#lastOperation = op;
    if (xid > 0) this.lastCxid = xid;
  }

  /** It asked for a session. */
  onConnectRequest(): void {
    this.#lastOperation = 'SESS';
  }

  /** Short name of its last operation; null before the first, and for an operation without a short name. */
  get lastOperation(): string | null {
    const last = this.#lastOperation;
    return typeof last === 'number' ? (SHORT_NAMES.get(last) ?? null) : last;
  }

  onReply(zxid: number, latencyMs: number, nowMs: number): void {
    this.lastZxid = zxid;
    this.lastResponseMs = nowMs;
    this.lastLatencyMs = latencyMs;
    if (latencyMs < this.minLatencyMs) this.minLatencyMs = latencyMs;
    if (latencyMs > this.maxLatencyMs) this.maxLatencyMs = latencyMs;
    this.#latencyTotal += latencyMs;
    this.#latencyCount++;
  }

  get averageLatencyMs(): number {
    return this.#latencyCount === 0 ? 0 : Math.floor(this.#latencyTotal / this.#latencyCount);
  }

  /** As after `crst`: no latency is known, so the next one becomes the minimum. */
  reset(): void {
    this.packetsReceived = 0;
    this.packetsSent = 0;
    this.#lastOperation = 'NA';
    this.lastCxid = -1;
    this.lastZxid = -1;
    this.lastResponseMs = 0;
    this.lastLatencyMs = 0;
    this.minLatencyMs = Number.MAX_SAFE_INTEGER;
    this.maxLatencyMs = 0;
    this.#latencyTotal = 0;
    this.#latencyCount = 0;
  }
}

const SHORT_NAMES: ReadonlyMap<number, string | null> = new Map(
  OPERATION_ENTRIES.map(([op, { shortName }]) => [op, shortName]),
);

/**
 * The moments of a connection from which its deadlines follow. All are monotonic milliseconds.
 *
 *     sent ──────────► proven: a request was sent at this moment and has been answered, so the session lived then
 *      │   T/3          │    T = session timeout
 *      ▼                ▼
 *     ping        lost at proven + T          heard + 2T/3: silent, another server is tried
 *
 * Two thirds leave the last third for finding another server before the session is lost (ClientCnxn's readTimeout).
 */
export class Timing {
  #sessionTimeoutMs: number;
  #sentAtMs = 0;
  #heardAtMs = 0;
  #provenAtMs = 0;
  #connectSentAtMs = 0;
  #patienceUntilMs = 0;
  #probeAtMs = Number.POSITIVE_INFINITY;
  #probePauseMs = PROBE_PAUSE_MIN_MS;

  constructor(sessionTimeoutMs: number) {
    this.#sessionTimeoutMs = sessionTimeoutMs;
  }

  get sentAtMs(): number {
    return this.#sentAtMs;
  }

  get heardAtMs(): number {
    return this.#heardAtMs;
  }

  /** Sending of the last request that has been answered. */
  get provenAtMs(): number {
    return this.#provenAtMs;
  }

  get pingAtMs(): number {
    return this.#sentAtMs + this.#sessionTimeoutMs / 3;
  }

  get silentAtMs(): number {
    return Math.max(this.#heardAtMs + (this.#sessionTimeoutMs * 2) / 3, this.#patienceUntilMs);
  }

  get lostAtMs(): number {
    return this.#provenAtMs + this.#sessionTimeoutMs;
  }

  /** While read-only: when the next server is asked whether it is read-write. */
  get probeAtMs(): number {
    return this.#probeAtMs;
  }

  /** The connect request is about to be sent. */
  onConnecting(nowMs: number): void {
    this.#connectSentAtMs = nowMs;
    this.#sentAtMs = nowMs;
  }

  /** The handshake is over: the connect request has been answered. */
  onReady(nowMs: number, sessionTimeoutMs: number): void {
    this.#sessionTimeoutMs = sessionTimeoutMs;
    this.#provenAtMs = this.#connectSentAtMs;
    this.#heardAtMs = nowMs;
    this.#patienceUntilMs = 0;
    this.#probePauseMs = PROBE_PAUSE_MIN_MS;
    this.#probeAtMs = nowMs + this.#probePauseMs;
  }

  onSending(nowMs: number): void {
    this.#sentAtMs = nowMs;
  }

  onHeard(nowMs: number): void {
    this.#heardAtMs = nowMs;
  }

  onProven(sentAtMs: number): void {
    if (sentAtMs > this.#provenAtMs) this.#provenAtMs = sentAtMs;
  }

  /** Nothing ran for a while: what the server sent meanwhile is read within the next turns of the event loop. */
  onStall(nowMs: number): void {
    this.#patienceUntilMs = nowMs + this.#sessionTimeoutMs / 6;
  }

  onProbe(nowMs: number): void {
    this.#probePauseMs = Math.min(this.#probePauseMs * 2, PROBE_PAUSE_MAX_MS);
    this.#probeAtMs = nowMs + this.#probePauseMs;
  }
}

/** Pauses between two probes while read-only double from the one to the other (ClientCnxn). Milliseconds. */
const PROBE_PAUSE_MIN_MS = 100;
const PROBE_PAUSE_MAX_MS = 60_000;

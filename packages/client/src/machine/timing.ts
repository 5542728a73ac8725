/**
 * The times of a connection that determine its deadlines. All are monotonic milliseconds.
 *
 *     sent ──────────► answered: a request was sent at this time and has been answered
 *      │   T/3          │    T = session timeout
 *      ▼                ▼
 *     ping        lost at answered + T        heard + 2T/3: silent, another server is tried
 *
 * Two thirds leave the last third for finding another server before the session is lost (ClientCnxn's readTimeout).
 *
 * A reply of a server with a quorum also proves that the session lived at the time of the request, and is certain to be
 * ours until then + T. A server without a quorum cannot inform the ensemble, so its replies prove nothing.
 */
export class Timing {
  #sessionTimeoutMs: number;
  #sentAtMs = 0;
  #receivedAtMs = 0;
  #answeredAtMs = 0;
  #sureUntilMs = Number.NEGATIVE_INFINITY;
  #hasQuorum = false;
  #connectSentAtMs = 0;
  #graceUntilMs = 0;

  constructor(sessionTimeoutMs: number) {
    this.#sessionTimeoutMs = sessionTimeoutMs;
  }

  get sentAtMs(): number {
    return this.#sentAtMs;
  }

  get receivedAtMs(): number {
    return this.#receivedAtMs;
  }

  /** Sending of the last request that has been answered. */
  get answeredAtMs(): number {
    return this.#answeredAtMs;
  }

  get pingAtMs(): number {
    return this.#sentAtMs + this.#sessionTimeoutMs / 3;
  }

  get silentAtMs(): number {
    return Math.max(this.#receivedAtMs + (this.#sessionTimeoutMs * 2) / 3, this.#graceUntilMs);
  }

  get lostAtMs(): number {
    return this.#answeredAtMs + this.#sessionTimeoutMs;
  }

  /** Until when the session is certain to be ours, as known now; −∞ when it is not known to be. */
  get sureUntilMs(): number {
    return this.#sureUntilMs;
  }

  /** The connect request is about to be sent. */
  onConnecting(nowMs: number): void {
    this.#connectSentAtMs = nowMs;
    this.#sentAtMs = nowMs;
  }

  /** The handshake is complete: the connect request has been answered. */
  onReady(nowMs: number, sessionTimeoutMs: number, hasQuorum: boolean): void {
    this.#sessionTimeoutMs = sessionTimeoutMs;
    this.#hasQuorum = hasQuorum;
    this.#answeredAtMs = this.#connectSentAtMs;
    if (hasQuorum) this.#sureUntilMs = this.#connectSentAtMs + sessionTimeoutMs;
    this.#receivedAtMs = nowMs;
    this.#graceUntilMs = 0;
  }

  onSending(nowMs: number): void {
    this.#sentAtMs = nowMs;
  }

  onReceived(nowMs: number): void {
    this.#receivedAtMs = nowMs;
  }

  /** A request has been answered on the current connection. */
  onAnswered(sentAtMs: number): void {
    if (sentAtMs <= this.#answeredAtMs) return;
    this.#answeredAtMs = sentAtMs;
    if (this.#hasQuorum) this.#sureUntilMs = sentAtMs + this.#sessionTimeoutMs;
  }

  /** Everything known of the session is void until a server with a quorum confirms it. */
  onUnsure(): void {
    this.#sureUntilMs = Number.NEGATIVE_INFINITY;
  }

  /** The event loop was blocked: data received meanwhile is read within the next turns. */
  onStall(nowMs: number): void {
    this.#graceUntilMs = nowMs + this.#sessionTimeoutMs / 6;
  }
}

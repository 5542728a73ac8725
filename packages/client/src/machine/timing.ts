/**
 * The moments of a connection from which its deadlines follow. All are monotonic milliseconds.
 *
 *     sent ──────────► answered: a request was sent at this moment and has been answered
 *      │   T/3          │    T = session timeout
 *      ▼                ▼
 *     ping        lost at answered + T        heard + 2T/3: silent, another server is tried
 *
 * Two thirds leave the last third for finding another server before the session is lost (ClientCnxn's readTimeout).
 *
 * What a server with a quorum has answered is proven, too: the session lived at the moment of the sending, and is ours for
 * certain until proven + T. A server without a quorum cannot tell the others that it lives, so its answers prove nothing.
 */
export class Timing {
  #sessionTimeoutMs: number;
  #sentAtMs = 0;
  #heardAtMs = 0;
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

  get heardAtMs(): number {
    return this.#heardAtMs;
  }

  /** Sending of the last request that has been answered. */
  get answeredAtMs(): number {
    return this.#answeredAtMs;
  }

  get pingAtMs(): number {
    return this.#sentAtMs + this.#sessionTimeoutMs / 3;
  }

  get silentAtMs(): number {
    return Math.max(this.#heardAtMs + (this.#sessionTimeoutMs * 2) / 3, this.#graceUntilMs);
  }

  get lostAtMs(): number {
    return this.#answeredAtMs + this.#sessionTimeoutMs;
  }

  /** Until when the session is ours for certain, as far as is known by now; −∞ when it is not known to be. */
  get sureUntilMs(): number {
    return this.#sureUntilMs;
  }

  /** The connect request is about to be sent. */
  onConnecting(nowMs: number): void {
    this.#connectSentAtMs = nowMs;
    this.#sentAtMs = nowMs;
  }

  /** The handshake is over: the connect request has been answered. */
  onReady(nowMs: number, sessionTimeoutMs: number, hasQuorum: boolean): void {
    this.#sessionTimeoutMs = sessionTimeoutMs;
    this.#hasQuorum = hasQuorum;
    this.#answeredAtMs = this.#connectSentAtMs;
    if (hasQuorum) this.#sureUntilMs = this.#connectSentAtMs + sessionTimeoutMs;
    this.#heardAtMs = nowMs;
    this.#graceUntilMs = 0;
  }

  onSending(nowMs: number): void {
    this.#sentAtMs = nowMs;
  }

  onHeard(nowMs: number): void {
    this.#heardAtMs = nowMs;
  }

  /** A request has been answered on the connection that stands. */
  onAnswered(sentAtMs: number): void {
    if (sentAtMs <= this.#answeredAtMs) return;
    this.#answeredAtMs = sentAtMs;
    if (this.#hasQuorum) this.#sureUntilMs = sentAtMs + this.#sessionTimeoutMs;
  }

  /** Whatever was known of the session is void until a server with a quorum knows it. */
  onUnsure(): void {
    this.#sureUntilMs = Number.NEGATIVE_INFINITY;
  }

  /** Nothing ran for a while: what the server sent meanwhile is read within the next turns of the event loop. */
  onStall(nowMs: number): void {
    this.#graceUntilMs = nowMs + this.#sessionTimeoutMs / 6;
  }
}

import type { Authenticator, PeerAddress, SaslConversation, SaslStep } from '../base/ports.ts';

/** The SASL exchange of one connection, of which there is only one, from its first token to its success or failure. */
export class SaslExchange {
  /** The log already says why it will fail. */
  hasWarned = false;
  #phase: 'new' | 'begun' | 'over' = 'new';
  /** null until the first token has arrived, and when SASL is not configured. */
  #conversation: SaslConversation | null = null;

  /**
   * @returns null when SASL is not configured: every token is answered with an empty one, and the client continues
   * without SASL
   */
  step(token: Uint8Array, authenticator: Authenticator, remote: PeerAddress): SaslStep | null {
    if (this.#phase === 'over') return IS_OVER;
    if (this.#phase === 'new') this.#conversation = authenticator.startSasl(remote);
    this.#phase = 'begun';
    if (this.#conversation === null) return null;
    const step = this.#conversation.step(token);
    if (step.kind !== 'challenge') this.#phase = 'over';
    return step;
  }
}

const IS_OVER: SaslStep = { kind: 'failure', reason: 'its SASL exchange is over' };

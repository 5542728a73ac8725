import type { Authenticator, PeerAddress, SaslConversation, SaslStep } from '../base/ports.ts';

/** The SASL exchange of one connection: one for each, from its first token to its success or failure. */
export class SaslExchange {
  /** The log says already why it will fail. */
  hasWarned = false;
  #phase: 'new' | 'begun' | 'over' = 'new';
  /** null until the first token has come, and where there is no SASL. */
  #conversation: SaslConversation | null = null;

  /** @returns null where there is no SASL: every token is answered with none, and the client goes on without it */
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

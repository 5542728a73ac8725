import type { CallFailure } from './call.ts';

/** Credentials, sent first on every connection. Their caller is notified of the first reply. */
export class Credentials {
  readonly scheme: string;
  readonly auth: Uint8Array;
  #settle: ((failure: CallFailure | null) => void) | null;

  constructor(scheme: string, auth: Uint8Array, settle: ((failure: CallFailure | null) => void) | null) {
    this.scheme = scheme;
    this.auth = auth;
    this.#settle = settle;
  }

  /** null: a server has accepted them. Only the first reply is reported. */
  settleOnce(failure: CallFailure | null): void {
    const settle = this.#settle;
    this.#settle = null;
    settle?.(failure);
  }
}

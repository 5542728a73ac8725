import { Fifo } from '@meerkat/protocol';
import type { Call, FailureKind } from './call.ts';
import type { Connection } from './connection.ts';

/** Calls without a connection, in the order in which they will be sent on the next one. */
export class WaitingCalls {
  #calls: Fifo<Call> = new Fifo();

  get length(): number {
    return this.#calls.length;
  }

  push(call: Call): void {
    this.#calls.push(call);
  }

  /** Their connection is gone: they are sent before those that are queued already. */
  putFirst(again: readonly Call[]): void {
    const calls = new Fifo<Call>();
    for (const call of again) calls.push(call);
    for (const call of this.#calls.takeAll()) if (!call.isSettled) calls.push(call);
    this.#calls = calls;
  }

  sendOn(connection: Connection): void {
    const calls = this.#calls;
    this.#calls = new Fifo();
    for (let call = calls.shift(); call !== undefined; call = calls.shift()) {
      if (!call.isSettled) connection.send(call);
    }
  }

  /** @param server see `Call.fail` */
  failAll(kind: FailureKind, server: string | null, reason: string): void {
    for (const call of this.#calls.takeAll()) call.fail(kind, server, reason);
  }
}

import type { Client } from '@meerkat/client';
import { firstAbortOf } from '../kernel/abort.ts';
import { Deadline } from '../kernel/deadline.ts';
import { Latest } from '../kernel/latest.ts';
import type { Margin } from '../kernel/settings.ts';

/** Whether the znode is there and ours. */
export type Presence =
  | {
      readonly isPresent: true;
      /** zxid of its creation: larger than that of every znode that stood here before. */
      readonly token: bigint;
      /** Aborts as soon as that is no longer certain. */
      readonly signal: AbortSignal;
    }
  | {
      readonly isPresent: false;
      /**
       * - starting: not looked at yet.
       * - session-lost: the service may have taken it away with the session; it comes back with the next one.
       * - deleted: it was deleted; it is being recreated.
       * - stale: the znode of our previous process is there, and waited for.
       * - taken: another client's znode is there, and waited for.
       */
      readonly reason: 'starting' | 'session-lost' | 'deleted' | 'stale' | 'taken';
    };

/** Whether we may be sure of an ephemeral znode of ours, from what was seen of it and of the session that holds it. */
export class Certainty {
  readonly presences: Latest<Presence> = new Latest();
  readonly #client: Client;
  readonly #marginMs: Margin;
  readonly #deadline: Deadline;
  readonly #lookAgain: () => void;
  /** The client's signal of the session in which the znode is present, and what else ends its presence. */
  #held: { readonly lost: AbortSignal; readonly gone: AbortController } | null = null;

  /**
   * @param marginMs how long before the client gives its session up it is not certain any more
   * @param lookAgain the next answer of the service may show what this one does not
   */
  constructor(client: Client, marginMs: Margin, lookAgain: () => void) {
    this.#client = client;
    this.#marginMs = marginMs;
    this.#deadline = new Deadline(client, marginMs);
    this.#lookAgain = lookAgain;
    this.presences.publish({ isPresent: false, reason: 'starting' });
  }

  get presence(): Presence {
    return this.presences.current ?? { isPresent: false, reason: 'starting' };
  }

  /** The znode is there and ours, as far as can be known. */
  get isPresent(): boolean {
    const { presence } = this;
    return presence.isPresent && !presence.signal.aborted && this.#deadline.leftMs > 0;
  }

  /** Resolves with the token as soon as it is there for certain. Once the signal is aborted nothing of this call is kept. */
  async whenPresent(signal: AbortSignal): Promise<bigint> {
    const { clock } = this.#client.surroundings;
    for (;;) {
      const { token } = await this.presences.when(isPresence, signal);
      if (this.isPresent) return token;
      // The time is up, and no timer has rung yet. An answer that is here already may show that it is there as before.
      await new Promise<void>((resolve) => void clock.schedule(LOOK_AGAIN_MS, resolve));
    }
  }

  /**
   * It was seen, of a session of ours.
   *
   * @param token its czxid
   * @param lost the client's signal of that session, taken before the look
   */
  present(token: bigint, lost: AbortSignal): void {
    const { presence } = this;
    if (lost.aborted || this.presences.isOver) return;
    if (this.#deadline.leftMs <= 0) {
      // A margin as long as the session timeout leaves nothing, however quick the answer.
      if (this.#marginMs >= (this.#client.session?.timeoutMs ?? 0)) return;
      // The answer was slow. The next one may be quick enough.
      this.#client.surroundings.clock.schedule(LOOK_AGAIN_MS, this.#lookAgain);
      return;
    }
    if (presence.isPresent && presence.token === token && this.#held?.lost === lost) return;
    this.#held?.gone.abort();
    const gone = new AbortController();
    this.#held = { lost, gone };
    this.presences.publish({ isPresent: true, token, signal: firstAbortOf([lost, gone.signal]) });
    const stop = this.#deadline.watch(() => {
      this.absent('session-lost');
      // The next answer may show that it is there as before.
      this.#lookAgain();
    });
    gone.signal.addEventListener('abort', stop, { once: true });
  }

  absent(reason: 'session-lost' | 'deleted' | 'stale' | 'taken'): void {
    const { presence } = this;
    this.#held?.gone.abort();
    this.#held = null;
    if (presence.isPresent || presence.reason !== reason) this.presences.publish({ isPresent: false, reason });
  }

  /** No caller looks any more. @param error thrown to loops; null ends them. A caller that waits gets `reason` */
  end(error: Error | null, reason: Error): void {
    if (this.presence.isPresent) this.absent('deleted');
    this.presences.end(error, reason);
  }
}

function isPresence(presence: Presence): presence is Presence & { readonly isPresent: true } {
  return presence.isPresent;
}

/** Milliseconds. */
const LOOK_AGAIN_MS = 100;

import type { Client } from '@meerkat/client';
import { firstAbortOf } from '../kernel/abort.ts';
import { Deadline } from '../kernel/deadline.ts';
import { Latest } from '../kernel/latest.ts';
import type { Margin } from '../kernel/settings.ts';

/** Whether the znode exists and is ours. */
export type Presence =
  | {
      readonly isPresent: true;
      /** zxid of its creation: larger than that of every earlier znode at this path. */
      readonly token: bigint;
      /** Aborts as soon as that is no longer certain. */
      readonly signal: AbortSignal;
    }
  | {
      readonly isPresent: false;
      /**
       * - starting: not checked yet.
       * - session-lost: the service may have deleted it with the session; it is recreated in the next one.
       * - deleted: it was deleted; it is being recreated.
       * - stale: the znode of our previous process exists; waiting for its deletion.
       * - taken: another client's znode exists; waiting for its deletion.
       */
      readonly reason: 'starting' | 'session-lost' | 'deleted' | 'stale' | 'taken';
    };

/**
 * Whether the presence of our ephemeral znode is certain, derived from reads of it and from the state of its session.
 */
export class Certainty {
  readonly presences: Latest<Presence> = new Latest();
  readonly #client: Client;
  readonly #marginMs: Margin;
  readonly #deadline: Deadline;
  readonly #lookAgain: () => void;
  /**
   * The client's signal of the session that owns the znode, and a controller for other reasons that end its presence.
   */
  #held: { readonly lost: AbortSignal; readonly gone: AbortController } | null = null;

  /**
   * @param marginMs how long before the client considers the session lost its presence is no longer certain
   * @param lookAgain called when a later reply may show what this one does not
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

  /** The znode exists and is ours, as far as can be known. */
  get isPresent(): boolean {
    const { presence } = this;
    return presence.isPresent && !presence.signal.aborted && this.#deadline.leftMs > 0;
  }

  /** Resolves with the token once the presence is certain. Once the signal is aborted nothing of this call is kept. */
  async whenPresent(signal: AbortSignal): Promise<bigint> {
    const { clock } = this.#client.surroundings;
    for (;;) {
      const { token } = await this.presences.when(isPresence, signal);
      if (this.isPresent) return token;
      // The deadline has passed, and its timer has not fired yet. A reply that has already arrived may renew the
      // certainty.
      await new Promise<void>((resolve) => void clock.schedule(LOOK_AGAIN_MS, resolve));
    }
  }

  /**
   * The znode was seen, owned by a session of ours.
   *
   * @param token its czxid
   * @param lost the client's signal of that session, taken before the request
   */
  present(token: bigint, lost: AbortSignal): void {
    const { presence } = this;
    if (lost.aborted || this.presences.isOver) return;
    if (this.#deadline.leftMs <= 0) {
      // A margin as long as the session timeout leaves nothing, however fast the reply.
      if (this.#marginMs >= (this.#client.session?.timeoutMs ?? 0)) return;
      // The reply was slow. The next one may be fast enough.
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
      // The next reply may show that it still exists.
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

  /** Ends it. @param error thrown to loops; null ends them. Waiting callers get `reason` */
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

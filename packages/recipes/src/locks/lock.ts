import { type CallOptions, type Client, nameOf, onAbort } from '@meerkat/client';
import { renewParent } from '../kernel/contender.ts';
import { type Generation, Guarded } from '../kernel/guarded.ts';
import { type Held, Holding, type HoldingOptions } from '../kernel/holding.ts';
import { canMove, type Line } from '../kernel/line.ts';
import { NotHeldError } from '../kernel/not-held-error.ts';
import { SEQUENCE_HIGH } from '../kernel/overflow.ts';
import type { OwnedZnode } from '../kernel/owned-znode.ts';
import { sequenceOf } from '../kernel/sequence.ts';
import { isRevocation } from './revocation.ts';

/**
 * A lock that is held. Pass it to code that works under it; code that needs the lock for longer, or releases it on its
 * own, takes another handle with `reenter`. The lock is released with its last handle.
 *
 * @example
 * async function reprice(lock: Lock): Promise<void> {
 *   await using mine = lock.reenter();
 *   await mine.guarded.set('/price', '12');
 * }
 */
export class Lock implements Held {
  readonly guarded: Guarded;
  /** Aborts when another client requests the lock: release it soon, or ignore it. */
  readonly revocation: AbortSignal;
  readonly #client: Client;
  readonly #holding: Holding;
  readonly #handles: Set<Lock>;
  readonly #end = new AbortController();
  readonly #stopListening: () => void;

  constructor(client: Client, holding: Holding, revocation: AbortSignal, handles: Set<Lock> = new Set()) {
    this.#client = client;
    this.#holding = holding;
    this.#handles = handles;
    this.revocation = revocation;
    this.guarded = new Guarded(client, [this]);
    handles.add(this);
    // Without Node.js' limit of listeners: there may be any number of handles.
    this.#stopListening = onAbort(holding.signal, () => this.#end.abort(holding.signal.reason));
  }

  /** The znode that represents it. */
  get path(): string {
    return this.#holding.path;
  }

  /** The session that owns it. */
  get sessionId(): bigint {
    return this.#holding.sessionId;
  }

  get token(): bigint {
    return this.#holding.token;
  }

  get isHeld(): boolean {
    return !this.#end.signal.aborted && this.#holding.isHeld;
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  get generation(): Generation | undefined {
    return this.#holding.generation;
  }

  /** Another handle of the same lock, with its own release. @throws NotHeldError */
  reenter(): Lock {
    if (!this.isHeld) throw new NotHeldError(this.path, this.token, 'it cannot be entered again');
    return new Lock(this.#client, this.#holding, this.revocation, this.#handles);
  }

  /**
   * Releases this handle, and the lock with the last one.
   *
   * @returns once others can acquire it, if it was the last handle, or the session is lost
   * @throws NoAuthError when the service refuses the deletion: others wait until the session ends. It may be retried.
   *   Nothing happens when the promise is not awaited
   */
  release(options?: CallOptions): Promise<void> {
    this.#handles.delete(this);
    this.#stopListening();
    if (!this.#end.signal.aborted) this.#end.abort(new NotHeldError(this.path, this.token, 'it was released'));
    return this.#handles.size === 0 ? this.#holding.release(options) : Promise.resolve();
  }

  /** @internal Ends all handles without deleting the znode, which the caller does. */
  leave(why: string): void {
    this.#holding.leave(why);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

/** The lock for a place at the head of a line. */
export function takePlace(
  client: Client,
  line: Line,
  place: OwnedZnode,
  options: Omit<HoldingOptions, 'marginMs'> = {},
): Lock {
  const revocation = new AbortController();
  const isHigh = canMove(line) && (sequenceOf(nameOf(place.path)) ?? 0) >= SEQUENCE_HIGH;
  const holding = new Holding(client, place, {
    marginMs: line.marginMs,
    onRemoved: isHigh ? () => renewParent(client, line.path, {}) : undefined,
    onData: (data) => {
      if (isRevocation(data)) revocation.abort(new Error('another client asked for the lock'));
    },
    ...options,
  });
  return new Lock(client, holding, revocation.signal);
}

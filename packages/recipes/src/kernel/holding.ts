import { type CallOptions, type Client, NoNodeError, onAbort, type Stat, ZooKeeperError } from '@meerkat/client';
import { whenAborted } from './abort.ts';
import { Attempt } from './attempt.ts';
import { ignoreRejection } from './background.ts';
import { Deadline } from './deadline.ts';
import { type Generation, Guarded } from './guarded.ts';
import { NotHeldError } from './not-held-error.ts';
import type { OwnedZnode } from './owned-znode.ts';
import { persist, type Refusal, removeIfOurs, removeZnode } from './removal.ts';
import type { Margin } from './settings.ts';

/** Ownership of something: a lock, a lease, a leadership, several locks at once. */
export interface Held extends AsyncDisposable {
  /**
   * Fencing token, larger than that of every earlier holder: a store that refuses smaller tokens than it has seen is
   * fenced.
   */
  readonly token: bigint;
  /** Whether it is certain to be ours at this moment. Once false it stays false, and `signal` is aborted. */
  readonly isHeld: boolean;
  /** Aborts with a NotHeldError when ownership is no longer certain. */
  readonly signal: AbortSignal;
  /** Writes that the service refuses once it is not ours. */
  readonly guarded: Guarded;
  /** Releases it. */
  release(options?: CallOptions): Promise<void>;
}

export interface HoldingOptions {
  /**
   * Safety margin, in milliseconds: how long before the client's deadline ownership ends. Compensates for clock drift
   * and, where replies are not leased (`Client.hasLeasedAnswers`), for a server that is cut off from its leader and
   * continues answering: at most syncLimit × tickTime and a third of the session timeout.
   */
  readonly marginMs: Margin;
  /** Instead of the zxid of the znode's creation. */
  readonly token?: bigint | undefined;
  /** Deletes the znode in a special way, before the default one is tried. */
  readonly remove?: ((options: CallOptions) => Promise<void>) | undefined;
  /** `remove` affects no other holder even if an earlier attempt was applied: it is retried after lost connections. */
  readonly isRemoveSafe?: boolean | undefined;
  /** Others create znodes of the same name: it is deleted only after a check that it is ours. Default false. */
  readonly isNameShared?: boolean | undefined;
  /** Additionally checked by its guarded writes. */
  readonly generation?: Generation | undefined;
  /** Called once the znode is gone because of a release. */
  readonly onRemoved?: (() => Promise<void>) | undefined;
  /** Called with the data of the znode when it was changed. */
  readonly onData?: ((data: Uint8Array, stat: Stat) => void) | undefined;
}

/**
 * Ownership bound to one ephemeral znode: to the session that created it and to its czxid.
 *
 * It ends with `release`, when the client is no longer certain that the session lives, or when another client deletes
 * the znode, whichever comes first; it never starts again.
 */
export class Holding implements Held {
  readonly path: string;
  readonly token: bigint;
  /** The session that owns it. */
  readonly sessionId: bigint;
  readonly guarded: Guarded;
  readonly #client: Client;
  readonly #lost: AbortSignal;
  readonly #czxid: bigint;
  readonly #options: HoldingOptions;
  readonly #end = new AbortController();
  #stopListening: () => void = () => {};
  readonly #deadline: Deadline;
  #stopClock: () => void = () => {};
  #released: Promise<void> | null = null;

  /** @param own the znode that represents it */
  constructor(client: Client, own: OwnedZnode, options: HoldingOptions) {
    const { lost } = own;
    this.path = own.path;
    this.token = options.token ?? own.stat.czxid;
    this.#czxid = own.stat.czxid;
    this.sessionId = own.stat.ephemeralOwner;
    this.guarded = new Guarded(client, [this]);
    this.#client = client;
    this.#lost = lost;
    this.#options = options;
    this.#deadline = new Deadline(client, options.marginMs);
    const onLost = (): void => this.#lose('the session may be over', lost.reason);
    this.#stopListening = onAbort(lost, onLost);
    if (lost.aborted) return;
    this.#stopClock = this.#deadline.watch((why) => this.#lose(why));
    void this.#watch();
  }

  get isHeld(): boolean {
    if (this.#end.signal.aborted) return false;
    // A late reply may move the deadline before its timer fires: what was reported as over stays over.
    const passed = this.#deadline.passed;
    if (passed !== null) this.#lose(passed);
    return passed === null;
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  get generation(): Generation | undefined {
    return this.#options.generation;
  }

  /**
   * Releases it: from now on it is not held here, and others can acquire it as soon as the znode is deleted.
   *
   * @returns once the znode is gone, or the session lost. When the caller cancels, the deletion continues
   * @throws NoAuthError when the service refuses the deletion: others wait until the session ends. It may be retried.
   *   Nothing happens when the promise is not awaited
   */
  release(options: CallOptions = {}): Promise<void> {
    this.#finish('it was released');
    const released = this.#released ?? this.#settleWith(this.#deleteZnode(options));
    return ignoreRejection(this.#wait(released, options));
  }

  async #wait(released: Promise<void>, options: CallOptions): Promise<void> {
    const about = { operation: 'release', path: this.path };
    await new Attempt(this.#client, options, about, { isUnderWay: true }).waitFor(released);
  }

  /** @internal Ends it; the caller deletes the znode, or has done so. */
  leave(why: string): void {
    this.#released ??= Promise.resolve();
    this.#finish(why);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /** Ends it without a release. */
  #lose(why: string, cause?: unknown): void {
    if (this.#end.signal.aborted) return;
    // The same session may come back with the znode, and others would wait for it. Before the signal: an abort listener
    // that calls `release` waits for this deletion and does not delete a second time.
    void this.#settleWith(this.#untilLost(this.#removeZnode()));
    this.#finish(why, cause);
  }

  #settleWith(released: Promise<void>): Promise<void> {
    this.#released = released;
    released.catch(() => {
      this.#released = null;
    });
    return released;
  }

  async #deleteZnode(options: CallOptions): Promise<void> {
    await this.#untilLost(this.#remove(options));
    await this.#options.onRemoved?.().catch(passClientErrors);
  }

  #finish(why: string, cause?: unknown): void {
    this.#stopListening();
    this.#stopClock();
    if (this.#end.signal.aborted) return;
    this.#end.abort(new NotHeldError(this.path, this.token, why, cause === undefined ? undefined : { cause }));
  }

  /** @throws refusals of the service */
  async #untilLost(removed: Promise<Refusal>): Promise<void> {
    const { aborted, stop } = whenAborted(this.#lost);
    const refusal = await Promise.race([removed, aborted]).finally(stop);
    if (refusal instanceof ZooKeeperError) throw refusal;
  }

  #remove(options: CallOptions): Promise<Refusal> {
    const { remove, isRemoveSafe = false } = this.#options;
    if (remove === undefined) return this.#removeZnode();
    return this.#removeBy(() => remove(isRemoveSafe ? {} : options), isRemoveSafe);
  }

  async #removeBy(remove: () => Promise<void>, isSafe: boolean): Promise<Refusal> {
    let isDone = false;
    const attempt = async (): Promise<void> => {
      await remove();
      isDone = true;
    };
    if (isSafe) await persist(this.#client, this.sessionId, attempt);
    else await attempt().catch(passClientErrors);
    return isDone ? null : this.#removeZnode();
  }

  #removeZnode(): Promise<Refusal> {
    if (this.#options.isNameShared !== true) return removeZnode(this.#client, this.path, this.sessionId);
    return removeIfOurs(this.#client, this.path, this.sessionId, this.#czxid);
  }

  /** Reads the znode now and after each change, until it is over. */
  async #watch(): Promise<void> {
    const about = { operation: 'watch', path: this.path };
    const options = { acrossSessions: false, awaitsQuorum: true };
    const attempt = new Attempt(this.#client, { signal: this.#end.signal }, about, options);
    try {
      for (let round = 0; ; round++) {
        const { data, stat, changed } = await attempt.through(() => this.#client.get(this.path, { watch: true }));
        if (this.#end.signal.aborted) return;
        if (stat.czxid !== this.#czxid || stat.ephemeralOwner !== this.sessionId) {
          this.#lose('another client has put another znode in its place');
          return;
        }
        if (round > 0 || stat.version > 0) this.#options.onData?.(data, stat);
        await attempt.any([changed]);
      }
    } catch (error) {
      // Session loss is reported by the signal.
      if (error instanceof NoNodeError) this.#lose('its znode was deleted', error);
    }
  }
}

/** Errors of the service do not concern the caller of `release`. */
function passClientErrors(error: unknown): void {
  if (!(error instanceof ZooKeeperError)) throw error;
}

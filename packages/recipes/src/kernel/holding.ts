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

/** Something that is held: a lock, a lease, a leadership, several locks at once. */
export interface Held extends AsyncDisposable {
  /** Larger than that of every holder before: a store that refuses smaller ones than it has seen is fenced. */
  readonly token: bigint;
  /** Whether it is ours for certain, at this moment. Once it is not, it never is again, and `signal` is aborted. */
  readonly isHeld: boolean;
  /** Aborts as soon as it is not ours for certain, with a NotHeldError. */
  readonly signal: AbortSignal;
  /** Writes that the service refuses once it is not ours. */
  readonly guarded: Guarded;
  /** Gives it back. */
  release(options?: CallOptions): Promise<void>;
}

export interface HoldingOptions {
  /**
   * How long before the client's deadline it ends by itself, milliseconds. It makes good for clocks that run apart and, where
   * answers are not leased (`Client.hasLeasedAnswers`), for a server that is cut off from its leader and continues
   * answering: at most syncLimit × tickTime and a third of the session timeout.
   */
  readonly marginMs: Margin;
  /** Instead of the zxid of the znode's creation. */
  readonly token?: bigint | undefined;
  /** Deletes the znode in a way of its own, before everything else is tried. */
  readonly remove?: ((options: CallOptions) => Promise<void>) | undefined;
  /** It touches nothing of others also when an earlier attempt was carried out: it is repeated after lost connections. */
  readonly isRemoveSafe?: boolean | undefined;
  /** Others make znodes of the same name: it is only deleted after a look whether it is ours. Default false. */
  readonly isNameShared?: boolean | undefined;
  /** Then its guarded writes check this, too. */
  readonly generation?: Generation | undefined;
  /** Called once the znode is gone because it was given back. */
  readonly onRemoved?: (() => Promise<void>) | undefined;
  /** Called with the data of the znode when they were changed. */
  readonly onData?: ((data: Uint8Array, stat: Stat) => void) | undefined;
}

/**
 * What is held, bound to one ephemeral znode: to the session that made it and to the zxid of its creation.
 *
 * It ends with `release`, with the client's certainty that the session lives, or when the znode is deleted by another client;
 * whatever comes first, it never begins again.
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

  /** @param own the znode that stands for it */
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
    // A late answer may move the deadline before its timer rings: what was reported as over stays over.
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
   * Gives it back: from now on it is not held here, and others get it as soon as the znode is deleted.
   *
   * @returns once the znode is gone, or the session lost. When the caller gives up waiting, deletion continues
   * @throws NoAuthError when the service refuses the deletion: others wait until the session ends. It may be tried again.
   *   Nothing happens to a caller who does not wait for it
   */
  release(options: CallOptions = {}): Promise<void> {
    this.#finish('it was released');
    const released = this.#released ?? this.#settleWith(this.#giveBack(options));
    return ignoreRejection(this.#wait(released, options));
  }

  async #wait(released: Promise<void>, options: CallOptions): Promise<void> {
    const about = { operation: 'release', path: this.path };
    await new Attempt(this.#client, options, about, { isUnderWay: true }).waitFor(released);
  }

  /** @internal It is over; the caller deletes the znode, or has done it. */
  leave(why: string): void {
    this.#released ??= Promise.resolve();
    this.#finish(why);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /** It is over without having been given back. */
  #lose(why: string, cause?: unknown): void {
    if (this.#end.signal.aborted) return;
    // The same session may come back, and with it the znode, for which others would wait. Before the signal: the client that hears
    // it and gives it back waits for this, and deletes nothing a second time.
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

  async #giveBack(options: CallOptions): Promise<void> {
    await this.#untilLost(this.#remove(options));
    await this.#options.onRemoved?.().catch(passClientErrors);
  }

  #finish(why: string, cause?: unknown): void {
    this.#stopListening();
    this.#stopClock();
    if (this.#end.signal.aborted) return;
    this.#end.abort(new NotHeldError(this.path, this.token, why, cause === undefined ? undefined : { cause }));
  }

  /** @throws what the service refuses */
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

  /** Looks at the znode now and after each change, until it is over. */
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
      // The end of the session is reported by the signal.
      if (error instanceof NoNodeError) this.#lose('its znode was deleted', error);
    }
  }
}

/** What the service says of it is not the releaser's trouble. */
function passClientErrors(error: unknown): void {
  if (!(error instanceof ZooKeeperError)) throw error;
}

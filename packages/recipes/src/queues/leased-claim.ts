import {
  type CallOptions,
  type Client,
  NoNodeError,
  onAbort,
  SessionLostError,
  type Stat,
  TransactionError,
  type Watched,
  type Znode,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { asDoubtful } from '../kernel/doubt.ts';
import { isPassing, isSessionEnd } from '../kernel/failures.ts';
import type { Guarded } from '../kernel/guarded.ts';
import { Holding } from '../kernel/holding.ts';
import { NotHeldError } from '../kernel/not-held-error.ts';
import type { Margin } from '../kernel/settings.ts';
import type { Claim } from './claim.ts';

/** A lease to be created, or existing. */
export interface LeaseOrder {
  readonly name: string;
  /** Of the item. */
  readonly path: string;
  readonly leasePath: string;
  readonly uuid: string;
  readonly sessionId: bigint;
  /** The client's signal for the loss of that session. */
  readonly lost: AbortSignal;
  readonly marginMs: Margin;
}

/** An item under a lease of ours. */
export class LeasedClaim implements Claim {
  readonly name: string;
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly #client: Client;
  readonly #leasePath: string;
  readonly #holding: Holding;
  /** The czxid of the item: a later znode of its name is another item. */
  readonly #czxid: bigint | undefined;
  /** The znode may be another item, since it was deleted or its data changed. */
  #isDubious = false;
  #isDone = false;
  /** `done` is in progress; a second call would find that the first one has deleted the item. */
  #finishing: Promise<void> | null = null;
  #returning: Promise<void> | null = null;

  /** @param item null when it is gone already, and the lease is to be released */
  constructor(client: Client, { name, path, leasePath, lost, marginMs }: LeaseOrder, stat: Stat, item: Item | null) {
    this.name = name;
    this.path = path;
    this.data = item?.data ?? null;
    this.#czxid = item?.stat.czxid;
    this.#client = client;
    this.#leasePath = leasePath;
    this.#holding = new Holding(
      client,
      { path: leasePath, stat, lost },
      {
        marginMs,
        // The next client that leases the item creates a znode of the same name, also when ours was deleted by hand.
        isNameShared: true,
      },
    );
    if (item === null) return;
    item.changed.then(
      () => {
        this.#isDubious = true;
      },
      () => {},
    );
    onAbort(this.signal, () => item[Symbol.dispose]());
  }

  get token(): bigint {
    return this.#holding.token;
  }

  get isHeld(): boolean {
    return this.#holding.isHeld;
  }

  get signal(): AbortSignal {
    return this.#holding.signal;
  }

  get guarded(): Guarded {
    return this.#holding.guarded;
  }

  async done(options: CallOptions): Promise<void> {
    if (this.#isDone) return;
    const about = { operation: 'QueueItem.done', path: this.path };
    // Once begun it continues in the background, so that the fate of the item will be known.
    this.#finishing ??= this.#finish().finally(() => {
      this.#finishing = null;
    });
    await new Attempt(this.#client, options, about, { isUnderWay: true }).waitFor(this.#finishing);
  }

  async #finish(): Promise<void> {
    let isDoubtful = false;
    for (;;) {
      try {
        // Events of what happened meanwhile arrive after the requests that wait for the connection are sent.
        if (this.#client.state !== 'connected') this.#isDubious = true;
        if (this.#isDubious && !isDoubtful && this.isHeld) await this.#look();
        await this.#holding.guarded.commit((transaction) => transaction.delete(this.path).delete(this.#leasePath));
        break;
      } catch (error) {
        isDoubtful ||= isPassing(error) && error.outcome === 'unknown';
        if (await this.#isDoneDespite(error, isDoubtful)) break;
      }
    }
    this.#isDone = true;
    this.#holding.leave('it is done');
  }

  /** @returns false to retry @throws the failure, when it is not done or that cannot be known */
  async #isDoneDespite(error: unknown, isDoubtful: boolean): Promise<boolean> {
    if (isPassing(error) && this.#isOwnSession()) {
      await this.#client.whenConnected().catch((end: unknown) => {
        throw isDoubtful ? asDoubtful(end, { operation: 'done', path: this.path }) : end;
      });
      return false;
    }
    if (!isDoubtful) throw this.#asNotHeld(error);
    const isInQueue = this.#isOwnSession() ? await this.#isInQueue() : null;
    if (isInQueue === false) return true;
    if (isInQueue === true) throw this.#asNotHeld(error);
    const detail = 'the session ended before the answer';
    throw new SessionLostError({ operation: 'done', path: this.path, outcome: 'unknown', detail, cause: error });
  }

  #isOwnSession(): boolean {
    return this.#client.session?.id === this.#holding.sessionId && !this.#client.lostSignal.aborted;
  }

  /**
   * When the queue is deleted and recreated its numbers begin at 0 again, and another item may have the name of ours.
   *
   * @throws NotHeldError when ours is gone
   */
  async #look(): Promise<void> {
    const stat = await this.#client.exists(this.path, { read: 'linearizable' });
    if (stat?.czxid !== this.#czxid) throw new NotHeldError(this.#leasePath, this.token, DELETED);
  }

  /**
   * No other client deletes it while the lease lasts: if it is gone, our own earlier attempt was applied. (Or the lease
   * was deleted by hand at this moment, and another client has done the item: both look the same.) null: it cannot be
   * known, as the session is over.
   */
  async #isInQueue(): Promise<boolean | null> {
    try {
      const stat = await this.#client.exists(this.path, { read: 'linearizable' });
      return stat !== null && stat.czxid === this.#czxid;
    } catch {
      return null;
    }
  }

  #asNotHeld(error: unknown): unknown {
    const isGone = error instanceof TransactionError && error.cause instanceof NoNodeError;
    if (!isGone && !isSessionEnd(error)) return error;
    const why = isGone ? DELETED : 'the session is over';
    return new NotHeldError(this.#leasePath, this.token, why, { cause: error });
  }

  async release(options: CallOptions): Promise<void> {
    if (this.#isDone) return;
    this.#returning ??= this.#settle(
      this.#finishing === null ? this.#holding.release() : this.#returnAfter(this.#finishing),
    );
    const about = { operation: 'QueueItem.release', path: this.path };
    await new Attempt(this.#client, options, about, { isUnderWay: true }).waitFor(this.#returning);
  }

  /** What the service has refused may be retried. */
  #settle(returning: Promise<void>): Promise<void> {
    returning.catch(() => {
      this.#returning = null;
    });
    return returning;
  }

  /** Without the lease, a `done` that runs in the background would fail, or not know whether it has succeeded. */
  async #returnAfter(finishing: Promise<void>): Promise<void> {
    await finishing.catch(() => {});
    if (!this.#isDone) await this.#holding.release();
  }
}

/** What is known of the item. */
type Item = Znode<Uint8Array | null> & Watched;

const DELETED = 'the item was deleted by another client';

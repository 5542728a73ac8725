import {
  type CallOptions,
  type Client,
  type CreatedInTransaction,
  joinPath,
  NodeExistsError,
  NoNodeError,
  nullableBytes,
  SessionLostError,
  type Stat,
  type Transaction,
  TransactionError,
  type TransactionResult,
} from '@meerkat/client';
import { asDoubtful, Uncertainty } from '../doubt.ts';
import { makeUuidHex } from '../layout.ts';
import type { Guarded } from '../locks/guarded.ts';
import { Holding } from '../locks/holding.ts';
import { NotHeldError } from '../locks/not-held-error.ts';
import { removeIfOurs } from '../locks/removal.ts';
import { waitFor } from '../locks/wait-for.ts';
import { withoutSequence } from '../sequence.ts';
import { isPassing, isSessionEnd, Wait } from '../wait.ts';
import type { QueuePaths } from './layout.ts';
import type { Tally } from './tally.ts';

/** An item that is ours, before anybody has looked at its data. */
export interface Claim {
  readonly name: string;
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly token: bigint;
  readonly isHeld: boolean;
  readonly signal: AbortSignal;
  readonly guarded: Guarded | null;
  done(options: CallOptions): Promise<void>;
  giveBack(options: CallOptions): Promise<void>;
}

/** How items are claimed. */
export interface Claimer {
  /** Whether a claim leaves the place in the line of consumers in the same transaction. */
  readonly leavesPlace: boolean;
  /**
   * Goes on until the outcome is known: it has no limit, so that nothing is claimed that nobody knows of.
   *
   * @param placePath our place in the line of consumers; null for none
   * @returns null when somebody else was faster, or the session ended on the way
   */
  claim(name: string, placePath: string | null): Promise<Claim | null>;
}

/**
 * Claims items by an ephemeral znode of the same name, as Curator's lock path and kazoo's LockingQueue do.
 *
 *     check   <items>/<name>     it is still there: kazoo and Curator find out later
 *     create  <leases>/<name>    ephemeral; it holds a uuid by which we know it again when the reply was lost
 *     delete  our place in the line of consumers, so that the next one goes on at once
 */
export class LeaseClaimer implements Claimer {
  readonly leavesPlace = true;
  readonly #client: Client;
  readonly #paths: QueuePaths;
  readonly #marginMs: number;

  constructor(client: Client, paths: QueuePaths, marginMs: number) {
    this.#client = client;
    this.#paths = paths;
    this.#marginMs = marginMs;
  }

  async claim(name: string, placePath: string | null): Promise<Claim | null> {
    const client = this.#client;
    const uuid = makeUuidHex(client.surroundings.random);
    const lost = client.lostSignal;
    const sessionId = client.session?.id;
    const leasePath = joinPath(this.#paths.leases, name);
    if (sessionId === undefined) return null;
    const path = joinPath(this.#paths.items, name);
    const lease = { name, path, leasePath, uuid, sessionId, lost, marginMs: this.#marginMs };
    const doubt = new Uncertainty();
    try {
      const claim = await this.#create(lease, placePath, doubt);
      // The same session may come back with a lease that is given up here, or may have it still without the item.
      if (claim === null && (lost.aborted || doubt.exists)) void this.#forget(lease);
      return claim;
    } catch (error) {
      // It may have been made before, of an item that the service refuses to show, say.
      void this.#forget(lease);
      throw error;
    }
  }

  async #create(lease: LeaseOrder, placePath: string | null, doubt: Uncertainty): Promise<Claim | null> {
    const client = this.#client;
    const { lost } = lease;
    const wait = new Wait(client, {}, { operation: 'claim', path: lease.path });
    let place = placePath;
    let isThere = false;
    let isParentMissing = false;
    let made: Stat | null = null;
    for (;;) {
      // A request of this claim in a later session would make a lease that nobody here knows of.
      if (lost.aborted || client.session?.id !== lease.sessionId) return null;
      const transaction: Transaction<TransactionResult[]> = client.transaction();
      transaction.check(lease.path).create(lease.leasePath, lease.uuid, { mode: 'ephemeral' });
      if (place !== null) transaction.delete(place);
      try {
        if (isParentMissing) {
          await client.ensurePath(this.#paths.leases);
          isParentMissing = false;
          continue;
        }
        if (!isThere) {
          const [, created] = await transaction.commit();
          made = (created as CreatedInTransaction).stat;
          isThere = true;
        }
        return await this.#open(lease, made);
      } catch (error) {
        if (error instanceof TransactionError) {
          const { cause, index } = error;
          if (index === 1 && cause instanceof NodeExistsError) {
            if (!doubt.exists) return null;
            // Made by an earlier attempt of ours, or by somebody else.
            isThere = true;
          } else if (index === 0 || !(cause instanceof NoNodeError)) return refused(error);
          else if (index === 1) isParentMissing = true;
          else place = null;
        } else if (isSessionEnd(error)) return null;
        else if (!isPassing(error)) throw error;
        else {
          doubt.noted(error);
          await wait.recover();
        }
      }
    }
  }

  /**
   * Takes over the lease that we have made, and reads the item.
   *
   * @param made the stat of the lease as its creation told it; null when it told nothing, and the lease may be another's
   */
  async #open(lease: LeaseOrder, made: Stat | null): Promise<Claim | null> {
    const client = this.#client;
    try {
      const [stat, item] = await Promise.all([
        made ?? this.#find(lease),
        client.get(lease.path, { codec: nullableBytes }).catch((error: unknown) => {
          if (error instanceof NoNodeError) return null;
          throw error;
        }),
      ]);
      if (stat === null || lease.lost.aborted) return null;
      const claim = new LeasedClaim(client, lease, stat, item?.data ?? null);
      if (item !== null) return claim;
      // A consumer that knows nothing of leases has taken it.
      await claim.giveBack({});
      return null;
    } catch (error) {
      if (error instanceof NoNodeError || isSessionEnd(error)) return null;
      throw error;
    }
  }

  /** The stat of the lease, if it is the one that we have made. */
  async #find({ leasePath, uuid }: LeaseOrder): Promise<Stat | null> {
    const { data, stat } = await this.#client.get(leasePath, { codec: nullableBytes });
    return isOf(data, uuid) ? stat : null;
  }

  async #forget({ leasePath, uuid, sessionId }: LeaseOrder): Promise<void> {
    const client = this.#client;
    const wait = new Wait(client, {}, { operation: 'forget', path: leasePath });
    try {
      const options = { read: 'linearizable', codec: nullableBytes } as const;
      const { data, stat } = await wait.through((call) => client.get(leasePath, { ...call, ...options }));
      if (isOf(data, uuid)) await removeIfOurs(client, leasePath, sessionId, stat.czxid);
    } catch {
      // It is not there, or the client has ended.
    }
  }
}

/** A lease that is to be, or is. */
interface LeaseOrder {
  readonly name: string;
  /** Of the item. */
  readonly path: string;
  readonly leasePath: string;
  readonly uuid: string;
  readonly sessionId: bigint;
  /** The client's signal of the loss of that session. */
  readonly lost: AbortSignal;
  readonly marginMs: number;
}

function isOf(data: Uint8Array | null, uuid: string): boolean {
  return data !== null && new TextDecoder().decode(data) === uuid;
}

class LeasedClaim implements Claim {
  readonly name: string;
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly #client: Client;
  readonly #leasePath: string;
  readonly #holding: Holding;
  #isDone = false;
  /** `done` is under way; a second call would find what the first one has deleted. */
  #finishing: Promise<void> | null = null;
  #returning: Promise<void> | null = null;

  constructor(
    client: Client,
    { name, path, leasePath, lost, marginMs }: LeaseOrder,
    stat: Stat,
    data: Uint8Array | null,
  ) {
    this.name = name;
    this.path = path;
    this.data = data;
    this.#client = client;
    this.#leasePath = leasePath;
    this.#holding = new Holding(client, { path: leasePath, stat }, lost, {
      marginMs,
      // The next one who leases the item makes a znode of the same name, also where somebody has deleted ours by hand.
      isNameShared: true,
    });
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
    // Once begun it goes on in the background, so that it is known at some time what has become of the item.
    this.#finishing ??= this.#finish().finally(() => {
      this.#finishing = null;
    });
    await waitFor(this.#client, this.#finishing, options, about);
  }

  async #finish(): Promise<void> {
    let isDoubtful = false;
    for (;;) {
      try {
        await this.#holding.guarded.commit((transaction) => transaction.delete(this.path).delete(this.#leasePath));
        break;
      } catch (error) {
        isDoubtful ||= isPassing(error) && error.outcome === 'unknown';
        if (isPassing(error) && this.#isOwnSession()) {
          await this.#client.whenConnected().catch((end: unknown) => {
            throw isDoubtful ? asDoubtful(end, { operation: 'done', path: this.path }) : end;
          });
          continue;
        }
        if (!isDoubtful) throw this.#told(error);
        const isInQueue = this.#isOwnSession() ? await this.#isInQueue() : null;
        if (isInQueue === false) break;
        if (isInQueue === true) throw this.#told(error);
        const detail = 'the session ended before the answer';
        throw new SessionLostError({ operation: 'done', path: this.path, outcome: 'unknown', detail, cause: error });
      }
    }
    this.#isDone = true;
    this.#holding.leave('it is done');
  }

  #isOwnSession(): boolean {
    return this.#client.session?.id === this.#holding.sessionId && !this.#client.lostSignal.aborted;
  }

  /**
   * Nobody else deletes it while the lease lasts: if it is gone, our own earlier attempt was applied. (Or somebody has deleted
   * the lease by hand in this moment, and another one has done the item: both look the same.) null: it cannot be told, as the
   * session is over.
   */
  async #isInQueue(): Promise<boolean | null> {
    try {
      return (await this.#client.exists(this.path, { read: 'linearizable' })) !== null;
    } catch {
      return null;
    }
  }

  #told(error: unknown): unknown {
    const isGone = error instanceof TransactionError && error.cause instanceof NoNodeError;
    if (!isGone && !isSessionEnd(error)) return error;
    const why = isGone ? 'the item was deleted by somebody else' : 'the session is over';
    return new NotHeldError(this.#leasePath, this.token, why, { cause: error });
  }

  async giveBack(options: CallOptions): Promise<void> {
    if (this.#isDone) return;
    this.#returning ??= this.#finishing === null ? this.#holding.release() : this.#returnAfter(this.#finishing);
    await waitFor(this.#client, this.#returning, options, { operation: 'QueueItem.giveBack', path: this.path });
  }

  /** Without the lease a `done` for which its caller waits no longer would fail, or not know whether it has succeeded. */
  async #returnAfter(finishing: Promise<void>): Promise<void> {
    await finishing.catch(() => {});
    if (!this.#isDone) await this.#holding.release();
  }
}

/** Claims items by deleting them, for queues whose other consumers do that: what a consumer has when it dies is lost. */
export class RemovalClaimer implements Claimer {
  readonly leavesPlace = false;
  readonly #client: Client;
  readonly #paths: QueuePaths;
  readonly #tally: Tally;

  constructor(client: Client, paths: QueuePaths, tally: Tally) {
    this.#client = client;
    this.#paths = paths;
    this.#tally = tally;
  }

  async claim(name: string): Promise<Claim | null> {
    const path = joinPath(this.#paths.items, name);
    const wait = new Wait(this.#client, {}, { operation: 'claim', path });
    try {
      const { data, stat } = await wait.through((call) => this.#client.get(path, { ...call, codec: nullableBytes }));
      // With the tally the deletion happens once, and whether it was ours is known also when the reply was lost.
      await this.#tally.commit((transaction) => transaction.delete(path, { version: stat.version }));
      return new RemovedClaim(this.#client, { name, path, data, token: stat.czxid }, this.#tally);
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      if (error instanceof TransactionError) return refused(error);
      throw error;
    }
  }
}

interface Removed {
  readonly name: string;
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly token: bigint;
}

class RemovedClaim implements Claim {
  readonly name: string;
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly token: bigint;
  readonly guarded: null = null;
  readonly #client: Client;
  readonly #tally: Tally;
  readonly #end = new AbortController();
  #isDone = false;
  #returning: Promise<unknown> = Promise.resolve();

  constructor(client: Client, { name, path, data, token }: Removed, tally: Tally) {
    this.#client = client;
    this.name = name;
    this.path = path;
    this.data = data;
    this.token = token;
    this.#tally = tally;
  }

  get isHeld(): boolean {
    return !this.#end.signal.aborted;
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  async done(): Promise<void> {
    if (this.#isDone) return;
    if (!this.isHeld) throw new NotHeldError(this.path, this.token, 'it was given back');
    this.#isDone = true;
    this.#end.abort(new NotHeldError(this.path, this.token, 'it is done'));
  }

  async giveBack(options: CallOptions): Promise<void> {
    if (this.isHeld) {
      this.#end.abort(new NotHeldError(this.path, this.token, 'it was given back'));
      const stem = withoutSequence(this.path);
      // It is nowhere until then, so it goes on when the caller has no patience left.
      this.#returning = this.#tally.commit((transaction) => transaction.create(stem, this.data, { sequential: true }));
    }
    await waitFor(this.#client, this.#returning, options, { operation: 'QueueItem.giveBack', path: this.path });
  }
}

/** Somebody else has the item: that is an answer. Everything else, missing rights say, is told. */
function refused(error: TransactionError): null {
  const { code } = error.cause;
  if (code === 'NONODE' || code === 'NODEEXISTS' || code === 'BADVERSION') return null;
  throw error;
}

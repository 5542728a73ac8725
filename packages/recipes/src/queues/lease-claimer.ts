import {
  type Client,
  type CreatedInTransaction,
  joinPath,
  NodeExistsError,
  NoNodeError,
  nullableBytes,
  type Stat,
  type Transaction,
  TransactionError,
  type TransactionResult,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { Uncertainty } from '../kernel/doubt.ts';
import { isSessionEnd, nullIfMissing } from '../kernel/failures.ts';
import { makeUuidHex } from '../kernel/layout.ts';
import { persist } from '../kernel/removal.ts';
import type { Margin } from '../kernel/settings.ts';
import { type Claim, type Claimer, refused } from './claim.ts';
import type { QueuePaths } from './layout.ts';
import { LeasedClaim, type LeaseOrder } from './leased-claim.ts';

/**
 * Claims items by an ephemeral znode of the same name, as Curator's lock path and kazoo's LockingQueue do.
 *
 *     check   <items>/<name>     it still exists: kazoo and Curator find out later
 *     create  <leases>/<name>    ephemeral; holds a uuid by which we recognize it when the reply was lost
 *     delete  our place in the line of consumers, so that the next one continues at once
 */
export class LeaseClaimer implements Claimer {
  readonly leavesPlace = true;
  readonly #client: Client;
  readonly #paths: QueuePaths;
  readonly #marginMs: Margin;

  constructor(client: Client, paths: QueuePaths, marginMs: Margin) {
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
      // The same session may come back with a lease that is abandoned here, or may still have it without the item.
      if (claim === null && (lost.aborted || doubt.exists)) void this.#forget(lease);
      return claim;
    } catch (error) {
      // It may have been created before, for instance for an item that the service refuses to show.
      void this.#forget(lease);
      throw error;
    }
  }

  async #create(lease: LeaseOrder, placePath: string | null, doubt: Uncertainty): Promise<Claim | null> {
    const client = this.#client;
    const attempt = new Attempt(client, {}, { operation: 'claim', path: lease.path }, { awaitsQuorum: true });
    const claiming: Claiming = { lease, place: placePath, isThere: false, isParentMissing: false, made: null };
    for (;;) {
      // A request of this claim in a later session would create a lease that is not known here.
      if (lease.lost.aborted || client.session?.id !== lease.sessionId) return null;
      try {
        await this.#send(claiming);
        return await this.#open(lease, claiming.made);
      } catch (error) {
        if (isSessionEnd(error)) return null;
        if (!(error instanceof TransactionError)) await attempt.recover(doubt.noted(error));
        else if (!canGoOn(claiming, error, doubt)) return null;
      }
    }
  }

  /** Creates the lease, unless it is known to exist, and its parent where that is known to be missing. */
  async #send(claiming: Claiming): Promise<void> {
    const { lease, place } = claiming;
    if (claiming.isThere) return;
    if (claiming.isParentMissing) await this.#client.ensurePath(this.#paths.leases);
    claiming.isParentMissing = false;
    const transaction: Transaction<TransactionResult[]> = this.#client.transaction();
    transaction.check(lease.path).create(lease.leasePath, lease.uuid, { mode: 'ephemeral' });
    if (place !== null) transaction.delete(place);
    const [, created] = await transaction.commit();
    claiming.made = (created as CreatedInTransaction).stat;
    claiming.isThere = true;
  }

  /**
   * Takes over the lease that we have created, and reads the item.
   *
   * @param made the stat returned by the creation of the lease; null without one, when the lease may be another
   *   client's
   */
  async #open(lease: LeaseOrder, made: Stat | null): Promise<Claim | null> {
    const client = this.#client;
    try {
      const stat = made ?? (await this.#find(lease));
      if (stat === null) return null;
      const item = await client.get(lease.path, { codec: nullableBytes, watch: true }).catch(nullIfMissing);
      if (lease.lost.aborted) {
        item?.[Symbol.dispose]();
        return null;
      }
      const claim = new LeasedClaim(client, lease, stat, item);
      if (item !== null) return claim;
      // A consumer without leases has taken it.
      await claim.release({});
      return null;
    } catch (error) {
      if (error instanceof NoNodeError || isSessionEnd(error)) return null;
      throw error;
    }
  }

  /** The stat of the lease, if it is ours. */
  async #find({ leasePath, uuid }: LeaseOrder): Promise<Stat | null> {
    const { data, stat } = await this.#client.get(leasePath, { codec: nullableBytes });
    return isOf(data, uuid) ? stat : null;
  }

  /** Removes a lease that may exist, or may still be created: it would block the item as long as the session lives. */
  async #forget({ leasePath, uuid, sessionId }: LeaseOrder): Promise<void> {
    const client = this.#client;
    await persist(client, sessionId, async () => {
      const { data } = await client.get(leasePath, { read: 'linearizable', codec: nullableBytes });
      if (isOf(data, uuid)) await client.delete(leasePath);
    });
  }
}

/** A claim in progress. */
interface Claiming {
  readonly lease: LeaseOrder;
  /** Our place in the line of consumers, which is left with the claim; null when there is none, or it has been left. */
  place: string | null;
  /** The lease was created: by us, or by another client. */
  isThere: boolean;
  isParentMissing: boolean;
  /** The stat returned by the creation of the lease. */
  made: Stat | null;
}

/** Whether to retry after a refusal. @returns false when another client has the item @throws what `refused` does */
function canGoOn(claiming: Claiming, error: TransactionError, doubt: Uncertainty): boolean {
  const { cause, index } = error;
  if (index === 1 && cause instanceof NodeExistsError) {
    // Created by an earlier attempt of ours, or by another client.
    claiming.isThere = doubt.exists;
    return doubt.exists;
  }
  if (index === 0 || !(cause instanceof NoNodeError)) {
    refused(error);
    return false;
  }
  if (index === 1) claiming.isParentMissing = true;
  else claiming.place = null;
  return true;
}

function isOf(data: Uint8Array | null, uuid: string): boolean {
  return data !== null && new TextDecoder().decode(data) === uuid;
}

import {
  type Client,
  type CreatedInTransaction,
  joinPath,
  NodeExistsError,
  NoNodeError,
  NotReadOnlyError,
  nullableBytes,
  type Stat,
  type Transaction,
  TransactionError,
  type TransactionResult,
} from '@meerkat/client';
import { Uncertainty } from '../doubt.ts';
import { makeUuidHex } from '../layout.ts';
import { persist } from '../locks/removal.ts';
import { isPassing, isSessionEnd, Wait } from '../wait.ts';
import { type Claim, type Claimer, refused } from './claim.ts';
import type { QueuePaths } from './layout.ts';
import { LeasedClaim, type LeaseOrder } from './leased-claim.ts';

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
        else if (!isPassing(error) && !(error instanceof NotReadOnlyError)) throw error;
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
      const stat = made ?? (await this.#find(lease));
      if (stat === null) return null;
      const item = await client.get(lease.path, { codec: nullableBytes, watch: true }).catch(passNoNode);
      if (lease.lost.aborted) {
        item?.[Symbol.dispose]();
        return null;
      }
      const claim = new LeasedClaim(client, lease, stat, item);
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

  /** It may be there, or come to be: without us it would keep the item from everybody as long as the session lives. */
  async #forget({ leasePath, uuid, sessionId }: LeaseOrder): Promise<void> {
    const client = this.#client;
    await persist(client, sessionId, async () => {
      const { data } = await client.get(leasePath, { read: 'linearizable', codec: nullableBytes });
      if (isOf(data, uuid)) await client.delete(leasePath);
    });
  }
}

function passNoNode(error: unknown): null {
  if (error instanceof NoNodeError) return null;
  throw error;
}

function isOf(data: Uint8Array | null, uuid: string): boolean {
  return data !== null && new TextDecoder().decode(data) === uuid;
}

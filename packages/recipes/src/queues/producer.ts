import {
  AbortedError,
  type About,
  BadArgumentsError,
  BadVersionError,
  type CallOptions,
  type Client,
  joinPath,
  NodeExistsError,
  NoNodeError,
  nameOf,
  RequestTooLargeError,
  TimeoutError,
  type Transaction,
  TransactionError,
  type TransactionResult,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { contend } from '../kernel/contender.ts';
import type { Line } from '../kernel/line.ts';
import { Remedy, SequenceExhaustedError, warnIfHigh } from '../kernel/overflow.ts';
import type { OwnedZnode } from '../kernel/owned-znode.ts';
import { removeZnode } from '../kernel/removal.ts';
import { sequenceOf } from '../kernel/sequence.ts';
import { sharedLockSettings } from '../kernel/settings.ts';
import type { QueuePaths } from './layout.ts';
import type { Progress, Tally } from './tally.ts';

/*
 * Putting items, each exactly once (`tally.ts`), and in the order of the calls.
 *
 * Puts during a transaction are queued and then sent together, in one transaction. So the order is kept whatever
 * connections do, and many concurrent puts cost little more than one.
 *
 * A queue with `itemsMax` never exceeds that because of puts here: every put also sets the znode of the lines at a
 * version that was read before the items were counted. A concurrent put makes it fail, and it counts again. (Producers
 * that use Curator or kazoo do not take part in that; Curator's own limit is not exact either.) Producers that find the
 * queue full stand in a line, of which only the first watches the items.
 */

/** The producers' side of a queue. */
export class Producer {
  readonly #client: Client;
  readonly #paths: QueuePaths;
  readonly #tally: Tally;
  readonly #itemsMax: number;
  readonly #line: Line;
  #pending: Pending[] = [];
  #isRunning = false;
  /** Aborted when the put that waits for room is cancelled. */
  #withdrawal = new AbortController();
  /** At the head of the producers that wait for room. */
  #place: OwnedZnode | null = null;

  constructor(client: Client, paths: QueuePaths, tally: Tally, itemsMax: number) {
    this.#client = client;
    this.#paths = paths;
    this.#tally = tally;
    this.#itemsMax = itemsMax;
    this.#line = { ...sharedLockSettings({}), path: paths.producers, marker: MARKER, markers: [MARKER] };
  }

  /**
   * @param items all of them are put, next to each other, or none
   * @throws AbortedError, TimeoutError: of outcome 'unknown' when they were in flight already
   */
  async put(items: readonly NewItem[], options: CallOptions, about: About): Promise<void> {
    if (items.length === 0) return;
    if (items.length > this.#itemsMax) throw new RangeError(`the queue never has room for ${items.length} items`);
    const pending = new Pending(items);
    this.#pending.push(pending);
    if (!this.#isRunning) void this.#run();
    const attempt = new Attempt(this.#client, options, about);
    try {
      await attempt.waitFor(pending.settled);
    } catch (error) {
      if (!(error instanceof AbortedError || error instanceof TimeoutError)) throw error;
      if (pending.sending?.mayBeApplied === true) attempt.doubt();
      else if (this.#isBounded) attempt.obstacle = `there was no room: itemsMax is ${this.#itemsMax}`;
      this.#withdraw(pending);
      throw attempt.toCallerError(error);
    }
  }

  get #isBounded(): boolean {
    return this.#itemsMax !== Number.POSITIVE_INFINITY;
  }

  #withdraw(pending: Pending): void {
    pending.isGivenUp = true;
    const { sending } = pending;
    if (sending !== null) {
      // The others of its transaction continue without it.
      if (!sending.mayBeApplied) sending.end.abort();
      return;
    }
    const isFirst = this.#pending[0] === pending;
    this.#pending = this.#pending.filter((other) => other !== pending);
    // The wait for room is for the first put; the next one may need less.
    if (isFirst) this.#withdrawal.abort();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#pending.length > 0) {
      await this.#sendNext().catch((error: unknown) => this.#refuseAll(error));
      if (this.#withdrawal.signal.aborted) this.#withdrawal = new AbortController();
    }
    this.#leaveLine();
    this.#isRunning = false;
  }

  /** Rejects all queued puts: none was sent, and their next attempt would fail for the same reason. */
  #refuseAll(error: unknown): void {
    if (this.#withdrawal.signal.aborted) return;
    for (const pending of this.#pending.splice(0)) pending.reject(error);
  }

  #sendNext(): Promise<void> {
    return this.#isBounded ? this.#sendBounded() : this.#send(this.#nextBatch(this.#itemsMax), null);
  }

  /**
   * As many as fit, from the first on.
   *
   * @param itemsMax number of items for which there is room; a single put may be larger than the usual limit of a batch
   */
  #nextBatch(itemsMax: number): Pending[] {
    const batch: Pending[] = [];
    let count = 0;
    let length = 0;
    for (const pending of this.#pending) {
      count += pending.items.length;
      for (const { data } of pending.items) length += data?.length ?? 0;
      const isFull = count > ITEMS_PER_BATCH || length > BYTES_PER_BATCH || pending.isAlone;
      if (count > itemsMax || (batch.length > 0 && isFull)) break;
      batch.push(pending);
      if (pending.isAlone) break;
    }
    return batch;
  }

  async #sendBounded(): Promise<void> {
    const attempt = this.#attempt('put');
    const [lines, items] = await attempt.through((call) => {
      const { lines: linesPath, items: itemsPath } = this.#paths;
      return Promise.all([this.#client.exists(linesPath, call), this.#client.exists(itemsPath, call)]);
    });
    if (lines === null || items === null) {
      await this.#ensurePaths();
      return;
    }
    const batch = this.#nextBatch(this.#itemsMax - items.numChildren);
    if (batch.length === 0) await this.#awaitChange(items.cversion);
    else await this.#send(batch, lines.version);
  }

  /** Waits in the line, and then until the children of the queue change from this version. */
  async #awaitChange(cversion: number): Promise<void> {
    const { signal } = this.#withdrawal;
    const about = { operation: 'put', path: this.#paths.items };
    // The same session may come back with the znode, behind which all producers would wait, including us.
    if (this.#place?.lost.aborted === true) this.#leaveLine();
    if (this.#place === null) {
      this.#place = await contend(this.#line, new Attempt(this.#client, { signal }, about, { awaitsQuorum: true }));
      return;
    }
    const { lost } = this.#place;
    const attempt = this.#attempt('put');
    try {
      using items = await attempt.through((call) => this.#client.children(this.#paths.items, { ...call, watch: true }));
      if (items.stat.cversion === cversion) await attempt.any([items.changed], { lost });
    } catch (error) {
      // The queue was deleted: that is a change, too.
      if (!(error instanceof NoNodeError)) throw error;
    }
  }

  /** @param linesVersion the required version of the znode of the lines; null where the queue has no limit */
  async #send(batch: readonly Pending[], linesVersion: number | null): Promise<void> {
    const sent = new Set(batch);
    this.#pending = this.#pending.filter((pending) => !sent.has(pending));
    const sending: Sending = { end: new AbortController(), mayBeApplied: false };
    for (const pending of batch) pending.sending = sending;
    const { lines, items: itemsPath } = this.#paths;
    const items = batch.flatMap((pending) => pending.items);
    const build = (transaction: Transaction<[]>): Transaction<TransactionResult[]> => {
      const growing = transaction as Transaction<TransactionResult[]>;
      if (linesVersion !== null) growing.set(lines, '', { version: linesVersion });
      for (const { stem, data } of items) growing.create(joinPath(itemsPath, stem), data, { sequential: true });
      return growing;
    };
    try {
      const results = await this.#tally.commit(build, { signal: sending.end.signal }, sending);
      for (const pending of batch) pending.resolve();
      this.#leaveLine();
      const last = results?.at(-1) ?? null;
      if (last !== null && 'path' in last) {
        warnIfHigh(itemsPath, sequenceOf(nameOf(last.path)) ?? 0, Remedy.byHand);
      }
    } catch (error) {
      if (error instanceof AbortedError && sending.end.signal.aborted) this.#putBack(batch);
      else await this.#onRefused(batch, linesVersion, error);
    }
  }

  async #onRefused(batch: readonly Pending[], linesVersion: number | null, error: unknown): Promise<void> {
    if (!(error instanceof TransactionError)) {
      const isUnsent = error instanceof BadArgumentsError || error instanceof RequestTooLargeError;
      if (!isUnsent || batch.length === 1) {
        for (const pending of batch) pending.reject(error);
        return;
      }
      // The error does not show which item cannot be sent.
      for (const pending of batch) pending.isAlone = true;
      this.#putBack(batch);
      return;
    }
    // Nothing was applied.
    const { cause } = error;
    const isBound = linesVersion !== null && error.index === 0;
    if (cause instanceof NoNodeError) {
      // Put back first: they share the failure of creating the paths.
      this.#putBack(batch);
      await this.#ensurePaths();
    } else if (isBound && cause instanceof BadVersionError) this.#putBack(batch);
    else {
      const guilty = isBound ? batch[0] : pendingAt(batch, error.index - (linesVersion === null ? 0 : 1));
      // A sequential znode can exist already only with the number that an exhausted Apache server returns repeatedly.
      guilty?.reject(
        cause instanceof NodeExistsError ? new SequenceExhaustedError(this.#paths.items, NO_NUMBER) : cause,
      );
      this.#putBack(batch.filter((pending) => pending !== guilty));
    }
  }

  /** They wait for their turn again, except for cancelled ones: these could be put very late. */
  #putBack(batch: readonly Pending[]): void {
    for (const pending of batch) pending.sending = null;
    this.#pending = [...batch.filter(({ isGivenUp }) => !isGivenUp), ...this.#pending];
  }

  async #ensurePaths(): Promise<void> {
    const attempt = this.#attempt('put');
    const paths = this.#isBounded ? [this.#paths.items, this.#paths.lines] : [this.#paths.items];
    for (const path of paths) await attempt.through((call) => this.#client.ensurePath(path, call));
  }

  #attempt(operation: string): Attempt {
    return new Attempt(this.#client, { signal: this.#withdrawal.signal }, { operation, path: this.#paths.items });
  }

  #leaveLine(): void {
    const place = this.#place;
    this.#place = null;
    if (place !== null) void removeZnode(this.#client, place.path, place.stat.ephemeralOwner);
  }
}

/** An item to be put. */
export interface NewItem {
  /** Its name without the number. */
  readonly stem: string;
  readonly data: Uint8Array | null;
}

/** A transaction in flight. */
interface Sending extends Progress {
  /** Ends it as long as nothing was sent. */
  readonly end: AbortController;
}

/** One call of `put`. */
class Pending {
  readonly items: readonly NewItem[];
  readonly settled: Promise<void>;
  /** The transaction that it is part of; null: it waits for its turn. */
  sending: Sending | null = null;
  /** Its caller has cancelled. */
  isGivenUp = false;
  /** It is sent alone, so that a failure can be attributed to it. */
  isAlone = false;
  #resolve!: () => void;
  #reject!: (error: unknown) => void;

  constructor(items: readonly NewItem[]) {
    this.items = items;
    this.settled = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // A caller that has cancelled does not handle its rejection.
    this.settled.catch(() => {});
  }

  resolve(): void {
    this.#resolve();
  }

  reject(error: unknown): void {
    this.#reject(error);
  }
}

/** The call that the operation at this index of a transaction belongs to. */
function pendingAt(batch: readonly Pending[], index: number): Pending | undefined {
  let left = index;
  return batch.find(({ items }) => {
    left -= items.length;
    return left < 0;
  });
}

const MARKER = 'producer-';
const NO_NUMBER =
  'and the item that had it last is still there. Once the queue is empty, delete the znode and it starts again at 0; or use ' +
  'another path';
const ITEMS_PER_BATCH = 100;
/** Servers refuse requests of more than 1 MiB. */
const BYTES_PER_BATCH = 512 * 1024;

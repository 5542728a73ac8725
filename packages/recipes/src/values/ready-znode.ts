import {
  BadVersionError,
  type CallOptions,
  type Client,
  joinPath,
  NodeExistsError,
  NoNodeError,
  type Transaction,
  TransactionError,
  type TransactionResult,
  text,
  type ZooKeeperError,
} from '@meerkat/client';
import type { Attempt } from '../kernel/attempt.ts';
import { withDoubt } from '../kernel/doubt.ts';
import { isPassing } from '../kernel/failures.ts';

/** The contents of *ready*. */
export interface Ready {
  readonly text: string;
  readonly names: readonly string[];
  /** −1: there is none. */
  readonly version: number;
  readonly zxid: bigint;
}

/** A znode of a set. */
export interface Entry {
  readonly name: string;
  readonly data: Uint8Array | null;
}

/** The znode that names the kept sets of a `PublishedSet`, the one in force first. */
export class ReadyZnode {
  readonly path: string;
  readonly #root: string;
  readonly #client: Client;
  readonly #keep: number;

  /**
   * @param root the parent of the sets, and of this znode
   * @param keep number of sets that are named, at least 1
   */
  constructor(client: Client, root: string, keep: number) {
    this.path = joinPath(root, 'ready');
    this.#root = root;
    this.#client = client;
    this.#keep = keep;
  }

  /** Its contents; it may be missing. */
  async read(call: CallOptions, read: 'local' | 'linearizable'): Promise<Ready> {
    try {
      const { data, stat } = await this.#client.get(this.path, { ...call, read, codec: text });
      const names = data.split('\n').filter((name) => name !== '');
      return { text: data, names, version: stat.version, zxid: stat.mzxid };
    } catch (error) {
      if (error instanceof NoNodeError) return { text: '', names: [], version: -1, zxid: 0n };
      throw error;
    }
  }

  /**
   * Names a set in *ready*, in one transaction with its znodes if they are given.
   *
   * @returns false when *ready* was changed since it was read, and this set is not in force and never will be
   */
  async putInForce(ready: Ready, name: string, entries: readonly Entry[] | null, attempt: Attempt): Promise<boolean> {
    const names = [name, ...ready.names.filter((other) => other !== name)].slice(0, this.#keep);
    const writing: Writing = { ready, name, names, entries, doubt: null };
    try {
      for (;;) {
        const answer = await this.#write(writing, attempt);
        if (answer === 'done') return true;
        if (writing.doubt === null && answer === 'again') continue;
        const isInForce = writing.doubt === null ? false : await this.#ask(writing, answer === 'gone', attempt);
        if (isInForce !== null) return isInForce;
      }
    } catch (error) {
      throw withDoubt(error, writing.doubt ?? undefined, attempt.about);
    }
  }

  /** @returns 'conflict' when *ready* has changed, 'gone' when the set is gone; 'again' when nothing was decided */
  async #write(writing: Writing, attempt: Attempt): Promise<'done' | 'conflict' | 'gone' | 'again'> {
    const { ready, name, names, entries } = writing;
    try {
      await this.#transaction(ready, name, names, entries).commit(attempt.next());
      return 'done';
    } catch (error) {
      if (isPassing(error)) {
        if (error.outcome === 'unknown') writing.doubt = error;
        await attempt.reconnect();
        return 'again';
      }
      if (!(error instanceof TransactionError) || !isConflict(error)) throw error;
      const isFirst = error.index === 0 && error.cause instanceof NoNodeError;
      if (isFirst && entries === null) return 'gone';
      if (!isFirst) return 'conflict';
      await attempt.prepare((call) => this.#client.ensurePath(this.#root, call));
      return 'again';
    }
  }

  /**
   * Whether *ready* is ours, so that the write in doubt was applied, or another client's.
   *
   * @param isGone the set was deleted: it is not created again, so a write that is still in flight will be refused, too
   * @returns null when that is not decided yet
   */
  async #ask({ ready, name, names, doubt }: Writing, isGone: boolean, attempt: Attempt): Promise<boolean | null> {
    const now = await attempt.through((call) => this.read(call, 'linearizable'));
    if (now.version === ready.version) return isGone ? false : null;
    if (now.version === ready.version + 1) return now.text === names.join('\n');
    if (now.names.includes(name) && !ready.names.includes(name)) return true;
    throw doubt;
  }

  #transaction(
    ready: Ready,
    name: string,
    names: readonly string[],
    entries: readonly Entry[] | null,
  ): Transaction<TransactionResult[]> {
    const transaction: Transaction<TransactionResult[]> = this.#client.transaction();
    const list = names.join('\n');
    const root = joinPath(this.#root, name);
    if (entries !== null) transaction.create(root, null);
    for (const entry of entries ?? []) transaction.create(joinPath(root, entry.name), entry.data);
    // A set that another publisher took for an orphan must not be named.
    if (entries === null) transaction.check(root);
    if (ready.version < 0) transaction.create(this.path, list);
    else transaction.set(this.path, list, { version: ready.version });
    return transaction;
  }
}

/** A change of *ready*. */
interface Writing {
  readonly ready: Ready;
  readonly name: string;
  readonly names: readonly string[];
  readonly entries: readonly Entry[] | null;
  /** How a reply was lost, if that left the outcome unknown. */
  doubt: ZooKeeperError | null;
}

/** Another publisher was faster, or has deleted the set because it was. */
function isConflict({ cause }: TransactionError): boolean {
  return cause instanceof BadVersionError || cause instanceof NodeExistsError || cause instanceof NoNodeError;
}

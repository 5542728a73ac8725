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
import { withDoubt } from '../doubt.ts';
import { isPassing, type Wait } from '../wait.ts';

/** What *ready* says. */
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

/** The znode that names the sets of a `PublishedSet` that are kept, the one in force first. */
export class ReadyZnode {
  readonly path: string;
  readonly #root: string;
  readonly #client: Client;
  readonly #keep: number;

  /**
   * @param root of the sets, and of this
   * @param keep sets that are named, at least 1
   */
  constructor(client: Client, root: string, keep: number) {
    this.path = joinPath(root, 'ready');
    this.#root = root;
    this.#client = client;
    this.#keep = keep;
  }

  /** What it says; it may be missing. */
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
  async putInForce(ready: Ready, name: string, entries: readonly Entry[] | null, wait: Wait): Promise<boolean> {
    const names = [name, ...ready.names.filter((other) => other !== name)].slice(0, this.#keep);
    let doubt: ZooKeeperError | null = null;
    try {
      for (;;) {
        let isGone = false;
        try {
          await this.#transaction(ready, name, names, entries).commit(wait.next());
          return true;
        } catch (error) {
          if (isPassing(error)) {
            if (error.outcome === 'unknown') doubt = error;
            await wait.recover();
          } else if (!(error instanceof TransactionError)) throw error;
          else if (entries !== null && error.index === 0 && error.cause instanceof NoNodeError) {
            await wait.prepare((call) => this.#client.ensurePath(this.#root, call));
          } else if (!isConflict(error)) throw error;
          else if (doubt === null) return false;
          else isGone = entries === null && error.index === 0 && error.cause instanceof NoNodeError;
        }
        if (doubt === null) continue;
        // Is it ours, which expected this version and was carried out, or somebody else's?
        const now = await wait.through((call) => this.read(call, 'linearizable'));
        if (now.version === ready.version) {
          // Nobody makes a set again that was deleted: what is still on its way will be refused, too.
          if (isGone) return false;
          continue;
        }
        if (now.version === ready.version + 1) return now.text === names.join('\n');
        if (now.names.includes(name) && !ready.names.includes(name)) return true;
        throw doubt;
      }
    } catch (error) {
      throw withDoubt(error, doubt ?? undefined, wait.about);
    }
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

/** Another publisher was faster, or has deleted the set because it was. */
function isConflict({ cause }: TransactionError): boolean {
  return cause instanceof BadVersionError || cause instanceof NodeExistsError || cause instanceof NoNodeError;
}

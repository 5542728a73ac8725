import {
  BadVersionError,
  type CallOptions,
  type Client,
  type Codec,
  DecodeError,
  joinPath,
  NodeExistsError,
  NoNodeError,
  nullableBytes,
  type Observation,
  type ObserveOptions,
  parentOf,
  type ReadOptions,
  type Stat,
  type Transaction,
  TransactionError,
  type TransactionResult,
  ZooKeeperError,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { bestEffort } from '../kernel/background.ts';
import { checkLimit } from '../kernel/bounds.ts';
import { withDoubt } from '../kernel/doubt.ts';
import { isPassing } from '../kernel/failures.ts';
import { makeUuidHex } from '../kernel/layout.ts';

export interface ConfigurationOptions<T> {
  /** How the value is stored in the znode. A value that it refuses is never published. */
  readonly codec: Codec<T>;
  /** The number of former versions kept for `rollback`, besides the one in force. At least 1, default 10. */
  readonly keep?: number | undefined;
}

/** A published version. */
export interface ConfigurationVersion<T> {
  readonly value: T;
  /** Of the znode: 0 is the first, and each publication is one more, including rollbacks. */
  readonly version: number;
}

/**
 * A typed configuration of a fleet: all of its properties in one znode, so that they change together.
 *
 *     /app/config                             {"port":8080}   in force; plain data, for readers of any kind
 *     /app/config/v0000000004-91c06f2a7d11…   {"port":8080}   a copy of each of the last versions
 *     /app/config/v0000000003-5b2f9d0e5e3b…   {"port":80}
 *
 * A value is first read back through the codec before it is written: a value that its schema refuses is never
 * published. A new version and its copy are one transaction, to which a copy of the version before is added if some
 * other program has written that. The name of a copy has a UUID, so that a writer whose reply was lost recognizes its
 * own write, also in a later session: an update is applied once or not at all, and `rollback` finds what was in force.
 * It writes an old value as a new version: versions never decrease, and a rollback can be rolled back.
 *
 * @example
 * const settings = new Configuration(client, '/app/config', { codec: json(z.object({ port: z.number() })) });
 * await settings.update((current) => ({ ...current, port: 8080 }));
 * for await (const { data } of settings.observe()) console.log(data?.port);
 * await settings.rollback();
 */
export class Configuration<T> {
  readonly path: string;
  readonly #client: Client;
  readonly #codec: Codec<T>;
  readonly #keep: number;

  constructor(client: Client, path: string, options: ConfigurationOptions<T>) {
    const { codec, keep = 10 } = options;
    checkLimit('keep', keep);
    this.path = path;
    this.#client = client;
    this.#codec = codec;
    this.#keep = keep;
  }

  /** The version in force; null when there is none yet. @throws DecodeError when the schema refuses it */
  async get(options: ReadOptions = {}): Promise<ConfigurationVersion<T> | null> {
    const found = await this.#attempt('get', options).through((call) =>
      this.#find(this.path, { ...call, read: options.read }),
    );
    return found === null ? null : { value: await this.#decode(found.data), version: found.stat.version };
  }

  /** The current value, and then each that is in force. A value that the schema refuses comes with its `error`. */
  observe(options?: ObserveOptions): Observation<T> {
    return this.#client.observe(this.path, this.#codec, options);
  }

  /**
   * Publishes an update of the current configuration.
   *
   * @param change is given null when there is none yet. May be called several times; undefined changes nothing, and
   *   neither does a result after the caller's deadline
   * @returns the version in force as far as this update knows; null when there is none and none was published
   * @throws DecodeError when the schema refuses the current value, or the next one: nothing is changed
   */
  update(
    change: (current: T | null, version: number | null) => T | undefined | Promise<T | undefined>,
    options: CallOptions = {},
  ): Promise<ConfigurationVersion<T> | null> {
    return this.#replace('update', options, async (found, _, attempt) => {
      const current = found === null ? null : await this.#decode(found.data);
      const changed = change(current, found?.stat.version ?? null);
      // A slow change is not awaited beyond the caller's deadline.
      if (changed instanceof Promise) await attempt.any([changed]);
      const next = await changed;
      return next === undefined ? undefined : this.#codec.encode(next);
    });
  }

  /** Publishes a value unconditionally. @throws DecodeError when the schema refuses it */
  async set(value: T, options: CallOptions = {}): Promise<ConfigurationVersion<T>> {
    const data = this.#codec.encode(value);
    const published = await this.#replace('set', options, async () => data);
    return published as ConfigurationVersion<T>;
  }

  /**
   * Publishes again what was in force before, or at a certain version.
   *
   * @param options `to`: the version to restore; default: the one before the one in force
   * @throws RangeError when that version is not kept; DecodeError when the current schema refuses it
   */
  async rollback(options: CallOptions & { readonly to?: number | undefined } = {}): Promise<ConfigurationVersion<T>> {
    const published = await this.#replace('rollback', options, async (found, copies, attempt) => {
      const inForce = found?.stat.version ?? -1;
      const version = options.to ?? inForce - 1;
      const path = copies.pathOf.get(version);
      if (path !== undefined) {
        const kept = await attempt.through((call) => this.#find(path, call));
        return kept === null ? AGAIN : kept.data;
      }
      if (copies.inForce !== inForce) return AGAIN;
      const versions = [...copies.pathOf.keys()].join(', ');
      const wanted =
        version < 0
          ? `there is nothing before the first version of ${this.path}`
          : `version ${version} of ${this.path} is not kept`;
      throw new RangeError(`${wanted}; kept are: ${versions || 'none'}`);
    });
    return published as ConfigurationVersion<T>;
  }

  /** The former versions that are kept, the newest first. */
  async history(options: CallOptions = {}): Promise<readonly number[]> {
    const kept = await this.#attempt('history', options).through((call) => this.#copies(call, 'linearizable'));
    return [...kept.pathOf.keys()].filter((version) => version < kept.inForce);
  }

  /** A kept version. @returns null when it is not kept */
  async at(version: number, options: CallOptions = {}): Promise<T | null> {
    return this.#attempt('at', options).through(async (call) => {
      const path = (await this.#copies(call, 'linearizable')).pathOf.get(version);
      if (path === undefined) return null;
      const copy = await this.#find(path, call);
      return copy === null ? null : this.#decode(copy.data);
    });
  }

  async #replace(
    method: string,
    options: CallOptions,
    make: (found: Found | null, copies: Copies, attempt: Attempt) => Promise<Made>,
  ): Promise<ConfigurationVersion<T> | null> {
    const attempt = this.#attempt(method, options);
    const doubts: Doubt<T>[] = [];
    try {
      for (let round = 1; ; round++) {
        const read = round === 1 ? 'local' : 'linearizable';
        const found = await attempt.through((call) => this.#find(this.path, { ...call, read }));
        const copies = await attempt.through((call) =>
          this.#copies(call, doubts.length > 0 ? 'linearizable' : 'local'),
        );
        const applied = settle(doubts, found, copies);
        if (applied !== null) return applied;
        // The remaining doubtful write expects this very version: it is retried unchanged, and the caller is not asked
        // again.
        const [doubt] = doubts;
        const data = doubt === undefined ? await makeOf(make(found, copies, attempt), read) : doubt.data;
        if (data === AGAIN) continue;
        if (data === undefined) {
          return found === null ? null : { value: await this.#decode(found.data), version: found.stat.version };
        }
        const value = await this.#decode(data, attempt.about.operation);
        const published = { value, version: found === null ? 0 : (found.stat.version + 1) | 0 };
        const name = this.#copyName(published.version);
        const isFoundKept = found === null || copies.pathOf.has(found.stat.version);
        const writing = { name, found, data, published };
        if (await this.#write(writing, isFoundKept, doubts, attempt)) return published;
        if (round > 2 && doubts.length === 0) await this.#pause(round, attempt);
      }
    } catch (error) {
      throw withDoubt(error, doubts[0]?.loss, attempt.about);
    }
  }

  /** @returns false to look again */
  async #write(
    writing: Omit<Doubt<T>, 'loss'>,
    isFoundKept: boolean,
    doubts: Doubt<T>[],
    attempt: Attempt,
  ): Promise<boolean> {
    const { name, found, data, published } = writing;
    try {
      await this.#transaction(found, data, name, isFoundKept).commit(attempt.next());
      // The update is applied: cleanup is not awaited beyond the caller's deadline.
      await bestEffort(attempt, this.#letGo(published.version));
      return true;
    } catch (error) {
      if (isPassing(error)) {
        if (error.outcome === 'unknown') doubts.push({ ...writing, loss: error });
        await attempt.reconnect();
      } else if (!(error instanceof TransactionError) || !(await this.#isRace(error, found, attempt))) throw error;
      return false;
    }
  }

  /** After a lost race. */
  #pause(round: number, attempt: Attempt): Promise<void> {
    const delayMs = (Math.min(2 ** round, 200) * this.#client.surroundings.random.uint32()) / 2 ** 32;
    return attempt.any([], { delayMs });
  }

  #transaction(
    found: Found | null,
    data: Uint8Array | null,
    name: string,
    isFoundKept: boolean,
  ): Transaction<TransactionResult[]> {
    const transaction: Transaction<TransactionResult[]> = this.#client.transaction();
    if (found === null) transaction.create(this.path, data);
    else transaction.set(this.path, data, { version: checkedVersion(found.stat, this.path) });
    transaction.create(joinPath(this.path, name), data);
    if (found !== null && !isFoundKept) {
      transaction.create(joinPath(this.path, this.#copyName(found.stat.version)), found.data);
    }
    return transaction;
  }

  async #isRace({ cause, index }: TransactionError, found: Found | null, attempt: Attempt): Promise<boolean> {
    if (found === null && index === 0 && cause instanceof NoNodeError) {
      await attempt.prepare((call) => this.#client.ensurePath(parentOf(this.path), call));
      return true;
    }
    return cause instanceof BadVersionError || cause instanceof NodeExistsError || cause instanceof NoNodeError;
  }

  #copyName(version: number): string {
    return `v${String(version).padStart(10, '0')}-${makeUuidHex(this.#client.surroundings.random)}`;
  }

  /**
   * Deletes copies that are too old: all but those of the given version, of later ones, and of the `keep` before it.
   * Copies that cannot be deleted are left to the next publication.
   */
  async #letGo(version: number): Promise<void> {
    try {
      const { names, pathOf } = await this.#copies({}, 'local');
      // Other programs may have written many versions since, without copies.
      const former = [...pathOf.keys()].filter((at) => at < version);
      const oldest = former[this.#keep - 1] ?? 0;
      const old = names.filter((name) => (versionOf(name) ?? version) < oldest);
      await Promise.all(old.map((name) => this.#client.delete(joinPath(this.path, name)).catch(ignoreService)));
    } catch (error) {
      ignoreService(error);
    }
  }

  async #copies(call: CallOptions, read: 'local' | 'linearizable'): Promise<Copies> {
    try {
      const { children, stat } = await this.#client.children(this.path, { ...call, read });
      const names = children.filter((name) => versionOf(name) !== null).sort((a, b) => (a < b ? 1 : -1));
      // Two writers may have copied the same version of a third: the same data.
      const pathOf = new Map(names.map((name) => [versionOf(name)!, joinPath(this.path, name)]));
      return { inForce: stat.version, names, pathOf };
    } catch (error) {
      if (error instanceof NoNodeError) return { inForce: -1, names: [], pathOf: new Map() };
      throw error;
    }
  }

  async #find(path: string, options: ReadOptions): Promise<Found | null> {
    try {
      return await this.#client.get(path, { ...options, codec: nullableBytes });
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      throw error;
    }
  }

  /** @param operation of data to be published: if it is refused, the znode does not hold it */
  async #decode(data: Uint8Array | null, operation = 'Configuration'): Promise<T> {
    try {
      return await this.#codec.decode(data);
    } catch (error) {
      throw new DecodeError(operation, this.path, data, error);
    }
  }

  #attempt(method: string, options: CallOptions): Attempt {
    return new Attempt(this.#client, options, { operation: `Configuration.${method}`, path: this.path });
  }
}

/** The data to be published; undefined: leave it unchanged; AGAIN: it was changed meanwhile, look again. */
type Made = Uint8Array | null | undefined | typeof AGAIN;
const AGAIN: unique symbol = Symbol('again');

/**
 * A write upon a stale read from a lagging server is simply refused; but a stale read must not decide that nothing is
 * written.
 */
async function makeOf(making: Promise<Made>, read: 'local' | 'linearizable'): Promise<Made> {
  try {
    const made = await making;
    return made === undefined && read === 'local' ? AGAIN : made;
  } catch (error) {
    if (read === 'local') return AGAIN;
    throw error;
  }
}

interface Found {
  readonly data: Uint8Array | null;
  readonly stat: Stat;
}

/** The copies of a configuration. */
interface Copies {
  /** −1: there is none. */
  readonly inForce: number;
  /** The newest first. */
  readonly names: readonly string[];
  /** By version, the newest first. */
  readonly pathOf: ReadonlyMap<number, string>;
}

/** A publication of unknown outcome. */
interface Doubt<T> {
  /** Of the copy that it has created if it was applied. */
  readonly name: string;
  /** The version that it replaces, and expects to be in force. */
  readonly found: Found | null;
  readonly data: Uint8Array | null;
  readonly published: ConfigurationVersion<T>;
  /** How the reply was lost. */
  readonly loss: ZooKeeperError;
}

/**
 * Determines which of the doubtful publications was applied; the others are removed once they can no longer be.
 *
 * @param found read after the last of them; the copies, read after that
 * @throws the loss of one whose outcome cannot be known: its copy may have expired or been deleted
 */
function settle<T>(doubts: Doubt<T>[], found: Found | null, copies: Copies): ConfigurationVersion<T> | null {
  for (const doubt of [...doubts]) {
    const { version } = doubt.published;
    if (copies.names.includes(doubt.name)) return doubt.published;
    if (isVersionOf(found, doubt.found)) continue;
    // Every publication keeps a copy, also of another program's version: if this one has none, it expired.
    if (copies.inForce > version && !copies.pathOf.has(version)) throw doubt.loss;
    // Nor is there a copy of what was deleted, whether or not another znode has been created since.
    if (doubt.found !== null && found?.stat.czxid !== doubt.found.stat.czxid) throw doubt.loss;
    doubts.splice(doubts.indexOf(doubt), 1);
  }
  return null;
}

/** Whether it is unchanged since it was read. */
function isVersionOf(now: Found | null, then: Found | null): boolean {
  if (now === null || then === null) return now === then;
  return now.stat.czxid === then.stat.czxid && now.stat.version === then.stat.version;
}

/** null for a name that is not one of ours. */
function versionOf(name: string): number | null {
  const match = /^v(\d{10})-[0-9a-f]{32}$/.exec(name);
  return match === null ? null : Number(match[1]);
}

/** @throws RangeError for −1, which a server takes for "any": the version has wrapped around */
function checkedVersion({ version }: Stat, path: string): number {
  if (version === -1) throw new RangeError(`${path} has version -1 after 2^32 changes: delete it and create it again`);
  return version;
}

function ignoreService(error: unknown): void {
  if (!(error instanceof ZooKeeperError)) throw error;
}

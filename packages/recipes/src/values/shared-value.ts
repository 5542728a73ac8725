import {
  BadVersionError,
  type CallOptions,
  type Client,
  type Codec,
  NodeExistsError,
  NoNodeError,
  nullableBytes,
  type Observation,
  type ObserveOptions,
  type ReadOptions,
} from '@meerkat/client';
import { asDoubtful, asHarmless, Uncertainty } from '../doubt.ts';
import { isSame } from '../same-bytes.ts';
import { Wait } from '../wait.ts';
import { int32 } from './numbers.ts';

/** A value, and which one it was. */
export interface VersionedValue<T> {
  readonly value: T;
  readonly version: number;
  /** Of the txn that wrote it. */
  readonly zxid: bigint;
}

export interface SharedValueOptions<T> {
  /** What the znode is created with where it is missing. */
  readonly seed: T;
  readonly codec: Codec<T>;
}

/**
 * One value that all see and anybody may set; Curator's SharedValue, whose znode holds the bytes and nothing else.
 *
 * @example
 * const mode = new SharedValue(client, '/mode', { seed: 'normal', codec: text });
 * const current = await mode.get();
 * if (!(await mode.trySet(current, 'maintenance'))) console.log('somebody was faster');
 */
export class SharedValue<T> {
  readonly path: string;
  readonly #client: Client;
  readonly #options: SharedValueOptions<T>;

  constructor(client: Client, path: string, options: SharedValueOptions<T>) {
    this.path = path;
    this.#client = client;
    this.#options = options;
  }

  /** The value; the seed, which is written then, where there was none. */
  async get(options: ReadOptions = {}): Promise<VersionedValue<T>> {
    const { codec } = this.#options;
    return this.#through('get', options, async (next) => {
      for (;;) {
        try {
          const { data, stat } = await this.#client.get(this.path, { ...next(), read: options.read, codec });
          return { value: data, version: stat.version, zxid: stat.mzxid };
        } catch (error) {
          if (!(error instanceof NoNodeError)) throw error;
          await this.#create(next());
        }
      }
    });
  }

  /**
   * Sets it, whatever it was. May be carried out twice after a lost connection: the last one to set it wins.
   *
   * @throws AbortedError, TimeoutError, whose `outcome` says whether it may have been set
   */
  async set(value: T, options: CallOptions = {}): Promise<void> {
    const data = this.#options.codec.encode(value);
    await this.#through('set', options, async (next, write) => {
      for (;;) {
        try {
          await write(this.#client.set(this.path, data, next()));
          return;
        } catch (error) {
          if (!(error instanceof NoNodeError)) throw error;
          await this.#create(next());
        }
      }
    });
  }

  /**
   * Sets it unless it was set since it was read. Somebody else who sets the same value upon the same version counts as
   * ourselves.
   *
   * @returns false when it was set since
   * @throws BadVersionError of outcome 'unknown' when a reply was lost, and the value has been set more than once since;
   *   AbortedError, TimeoutError, whose `outcome` says whether it may have been set
   */
  async trySet(expected: VersionedValue<T>, value: T, options: CallOptions = {}): Promise<boolean> {
    const { version } = expected;
    if (version === -1) throw new RangeError(`${this.path} had version -1, which a server takes for any`);
    const data = this.#options.codec.encode(value);
    return this.#through('trySet', options, async (next, write, isDoubtful) => {
      try {
        await write(this.#client.set(this.path, data, { ...next(), version }));
        return true;
      } catch (error) {
        if (!(error instanceof BadVersionError)) throw error;
        return isDoubtful() ? await this.#isOwn(version, data, next()) : false;
      }
    });
  }

  /** The value now, and then each change. */
  observe(options?: ObserveOptions): Observation<T> {
    return this.#client.observe(this.path, this.#options.codec, options);
  }

  async #create(call: CallOptions): Promise<void> {
    const { codec, seed } = this.#options;
    try {
      await this.#client.createParents(this.path, codec.encode(seed), call);
    } catch (error) {
      if (!(error instanceof NodeExistsError)) throw error;
    }
  }

  /** Whether it was us who have set it to this upon that version. @throws BadVersionError when nobody can tell any more */
  async #isOwn(version: number, data: Uint8Array | null, call: CallOptions): Promise<boolean> {
    const found = await this.#client.get(this.path, { ...call, read: 'linearizable', codec: nullableBytes });
    if (isNextVersion(version, found.stat.version)) return isSame(found.data, data);
    const detail = `the reply to a set of version ${version} was lost, and the version is ${found.stat.version} now`;
    throw new BadVersionError({ operation: 'SharedValue.trySet', path: this.path, outcome: 'unknown', detail });
  }

  /**
   * Does something until it is answered, through lost connections and sessions.
   *
   * @param attempt is given the limits of each of its requests, what its write goes through, and whether an earlier one may
   *   have been carried out
   */
  async #through<R>(
    method: string,
    options: CallOptions,
    attempt: (
      next: () => CallOptions,
      write: <W>(writing: Promise<W>) => Promise<W>,
      isDoubtful: () => boolean,
    ) => Promise<R>,
  ): Promise<R> {
    const about = { operation: `SharedValue.${method}`, path: this.path };
    const wait = new Wait(this.#client, options, about);
    const uncertainty = new Uncertainty();
    const write = async <W>(writing: Promise<W>): Promise<W> => {
      try {
        return await writing;
      } catch (error) {
        throw uncertainty.noted(error);
      }
    };
    try {
      return await wait.through(() =>
        attempt(
          () => wait.next(),
          write,
          () => uncertainty.exists,
        ),
      );
    } catch (error) {
      throw uncertainty.exists ? asDoubtful(error, about) : asHarmless(error, about);
    }
  }
}

/**
 * A number of 32 bits that all see and anybody may set; Curator's SharedCount. To count with it, use `AtomicLong`.
 *
 * @example
 * const replicas = new SharedCount(client, '/replicas', 3);
 * console.log((await replicas.get()).value);
 */
export class SharedCount extends SharedValue<number> {
  constructor(client: Client, path: string, seed = 0) {
    super(client, path, { seed, codec: int32 });
  }
}

/** Whether one set takes a znode from a version to the next: the number goes round, and 3.10 leaves out -1. */
function isNextVersion(version: number, next: number): boolean {
  return next === ((version + 1) | 0) || (version === -2 && next === 0);
}

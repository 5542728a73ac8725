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
  type Stat,
  type Znode,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { isSame } from '../kernel/same-bytes.ts';
import { int32 } from './numbers.ts';

/** A value and its version. */
export interface VersionedValue<T> {
  readonly value: T;
  readonly version: number;
  /** Of the txn that wrote it. */
  readonly zxid: bigint;
}

export interface SharedValueOptions<T> {
  /** The data that the znode is created with if it is missing. */
  readonly seed: T;
  readonly codec: Codec<T>;
}

/**
 * A value that all clients see and may set; Curator's SharedValue, whose znode holds only the bytes.
 *
 * @example
 * const mode = new SharedValue(client, '/mode', { seed: 'normal', codec: text });
 * const current = await mode.get();
 * if (!(await mode.trySet(current, 'maintenance'))) console.log('another client was faster');
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

  /** The value; if there is none, the seed, which is written then. */
  async get(options: ReadOptions = {}): Promise<VersionedValue<T>> {
    const { codec } = this.#options;
    const attempt = this.#attempt('get', options);
    return attempt.run(async () => {
      const read = (call: CallOptions): Promise<Znode<T>> =>
        this.#client.get(this.path, { ...call, read: options.read, codec });
      const { data, stat } = await this.#ensuring(attempt, () => attempt.through(read));
      return { value: data, version: stat.version, zxid: stat.mzxid };
    });
  }

  /**
   * Sets it unconditionally. May be applied twice after a lost connection: the last one to set it wins.
   *
   * @throws AbortedError, TimeoutError, whose `outcome` says whether it may have been set
   */
  async set(value: T, options: CallOptions = {}): Promise<void> {
    const data = this.#options.codec.encode(value);
    const attempt = this.#attempt('set', options);
    const write = (call: CallOptions): Promise<Stat> => this.#client.set(this.path, data, call);
    await attempt.run(() => this.#ensuring(attempt, () => attempt.apply(write)));
  }

  /**
   * Sets it unless it was set since it was read. A set of the same value upon the same version by another client counts
   * as our own.
   *
   * @returns false when it was set since
   * @throws BadVersionError of outcome 'unknown' when a reply was lost, and the value has been set more than once
   *   since; AbortedError, TimeoutError, whose `outcome` says whether it may have been set
   */
  async trySet(expected: VersionedValue<T>, value: T, options: CallOptions = {}): Promise<boolean> {
    const { version } = expected;
    if (version === -1) throw new RangeError(`${this.path} had version -1, which a server takes for any`);
    const data = this.#options.codec.encode(value);
    const attempt = this.#attempt('trySet', options);
    const write = async (call: CallOptions): Promise<boolean> => {
      try {
        await this.#client.set(this.path, data, { ...call, version });
        return true;
      } catch (error) {
        if (!(error instanceof BadVersionError)) throw error;
        return attempt.isDoubtful ? await this.#isOwn(version, data, attempt.next()) : false;
      }
    };
    return attempt.run(() => attempt.apply(write));
  }

  /** The current value, and then each change. */
  observe(options?: ObserveOptions): Observation<T> {
    return this.#client.observe(this.path, this.#options.codec, options);
  }

  /** Runs the request, creating the znode with the seed first if it is missing. */
  async #ensuring<R>(attempt: Attempt, request: () => Promise<R>): Promise<R> {
    for (;;) {
      try {
        return await request();
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error;
        await attempt.prepare((call) => this.#create(call));
      }
    }
  }

  async #create(call: CallOptions): Promise<void> {
    const { codec, seed } = this.#options;
    try {
      await this.#client.createParents(this.path, codec.encode(seed), call);
    } catch (error) {
      if (!(error instanceof NodeExistsError)) throw error;
    }
  }

  /** Whether we have set it to this upon that version. @throws BadVersionError when that can no longer be known */
  async #isOwn(version: number, data: Uint8Array | null, call: CallOptions): Promise<boolean> {
    const found = await this.#client.get(this.path, { ...call, read: 'linearizable', codec: nullableBytes });
    if (isNextVersion(version, found.stat.version)) return isSame(found.data, data);
    const detail = `the reply to a set of version ${version} was lost, and the version is ${found.stat.version} now`;
    throw new BadVersionError({ operation: 'SharedValue.trySet', path: this.path, outcome: 'unknown', detail });
  }

  #attempt(method: string, options: CallOptions): Attempt {
    return new Attempt(this.#client, options, { operation: `SharedValue.${method}`, path: this.path });
  }
}

/**
 * A 32-bit number that all clients see and may set; Curator's SharedCount. To count, use `AtomicLong`.
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

/** Whether one set takes a znode from a version to the next: versions wrap around, and 3.10 skips -1. */
function isNextVersion(version: number, next: number): boolean {
  return next === ((version + 1) | 0) || (version === -2 && next === 0);
}

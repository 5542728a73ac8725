import {
  BadVersionError,
  type CallOptions,
  type Client,
  type Codec,
  NodeExistsError,
  NoNodeError,
  type Observation,
  type ObserveOptions,
  type ReadOptions,
} from '@meerkat/client';
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
    const wait = this.#wait('get', options);
    return wait.through(async (call) => {
      for (;;) {
        try {
          const { data, stat } = await this.#client.get(this.path, { ...call, read: options.read, codec });
          return { value: data, version: stat.version, zxid: stat.mzxid };
        } catch (error) {
          if (!(error instanceof NoNodeError)) throw error;
          await this.#create(call);
        }
      }
    });
  }

  /** Sets it, whatever it was. May be carried out twice after a lost connection: the last one to set it wins. */
  async set(value: T, options: CallOptions = {}): Promise<void> {
    const { codec } = this.#options;
    const wait = this.#wait('set', options);
    await wait.through(async (call) => {
      try {
        await this.#client.set(this.path, value, { ...call, codec });
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error;
        await this.#create(call);
        await this.#client.set(this.path, value, { ...call, codec });
      }
    });
  }

  /**
   * Sets it unless it was set since it was read. Somebody else who sets the same value upon the same version counts as
   * ourselves.
   *
   * @returns false when it was set since
   */
  async trySet(expected: VersionedValue<T>, value: T, options: CallOptions = {}): Promise<boolean> {
    const data = this.#options.codec.encode(value);
    try {
      await this.#client.setIdempotent(this.path, data, { ...options, version: expected.version });
      return true;
    } catch (error) {
      if (error instanceof BadVersionError && error.outcome !== 'unknown') return false;
      throw error;
    }
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

  #wait(method: string, options: CallOptions): Wait {
    return new Wait(this.#client, options, { operation: `SharedValue.${method}`, path: this.path });
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

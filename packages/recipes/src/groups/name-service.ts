import {
  type Acl,
  type CallOptions,
  type Client,
  type Created,
  type ExpectedVersionOptions,
  joinPath,
  NoNodeError,
  type Observation,
  OPEN,
  type Stat,
  text,
  withoutProtection,
  ZooKeeperError,
} from '@meerkat/client';
import { sequenceOf } from '../sequence.ts';
import { neverAborted, untilDone } from './persistence.ts';
import { orDisconnected, PersistentEphemeral } from './persistent-ephemeral.ts';

export interface NameServiceOptions {
  /** Who may do what with names that are made here. Default: everybody everything. */
  readonly acl?: readonly Acl[] | undefined;
}

/** What a name stands for, and since when. */
export interface Binding {
  readonly address: string;
  /** `version` is what `rebind` compares, `czxid` tells one life of a name from the next. */
  readonly stat: Stat;
}

/**
 * A naming service: the tree as it is, a name being the path of a znode below the base and its data the address.
 *
 * 1. A name stands for one address at a time; who binds it first has it (`bind`), and it is changed by its version.
 * 2. Names that `claim` and numbers that `nextId` give out are unique as long as the base is not deleted: the service
 *    counts, and a number that a lost connection took is not given out again.
 *
 * @example
 * const names = new NameService(client, '/names');
 * await names.bind('db/orders', '10.0.0.5:5432');
 * await names.resolve('db/orders'); // '10.0.0.5:5432'
 * await using worker = await names.claim('worker-'); // worker.name is 'worker-0000000007', nobody else's
 */
export class NameService {
  readonly path: string;
  readonly #client: Client;
  readonly #acl: readonly Acl[];

  constructor(client: Client, path: string, options: NameServiceOptions = {}) {
    this.path = path;
    this.#client = client;
    this.#acl = options.acl ?? OPEN;
  }

  /** Lets a name stand for an address until somebody unbinds it. @throws NodeExistsError when it stands for something */
  async bind(name: string, address: string, options: CallOptions = {}): Promise<Stat> {
    const { stat } = await this.#client.createParents(this.#pathOf(name), address, { ...options, acl: this.#acl });
    return stat;
  }

  /**
   * Lets a name stand for an address as long as this process lives, through lost sessions, until it is closed.
   *
   * @param owner who we are, across restarts: the name is taken over at once from our previous process
   */
  bindWhileAlive(name: string, address: string, owner?: string): PersistentEphemeral {
    return new PersistentEphemeral(this.#client, this.#pathOf(name), { data: address, acl: this.#acl, owner });
  }

  /** Changes what a name stands for. @throws BadVersionError when somebody else has, NoNodeError when it is not bound */
  rebind(name: string, address: string, options: ExpectedVersionOptions): Promise<Stat> {
    return this.#client.setIdempotent(this.#pathOf(name), address, options);
  }

  /** Frees a name. @throws BadVersionError, NoNodeError, NotEmptyError when there are names below it */
  unbind(name: string, options: ExpectedVersionOptions): Promise<void> {
    return this.#client.deleteIdempotent(this.#pathOf(name), options);
  }

  /** The address; null when nobody has bound the name. As fresh as the connected server is. */
  async resolve(name: string, options: CallOptions = {}): Promise<string | null> {
    return (await this.lookUp(name, options))?.address ?? null;
  }

  /** The same, with what is known of the binding. */
  async lookUp(name: string, options: CallOptions = {}): Promise<Binding | null> {
    try {
      const { data, stat } = await this.#client.get(this.#pathOf(name), { ...options, codec: text });
      return { address: data, stat };
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      throw error;
    }
  }

  /** The address now, and each change; `exists` is false while nobody has bound the name. */
  observe(name: string, options: { readonly signal?: AbortSignal | undefined } = {}): Observation<string> {
    return this.#client.observe(this.#pathOf(name), text, options);
  }

  /** The last parts of the names directly below a name, or below the base. */
  async list(name: string | null = null, options: CallOptions = {}): Promise<readonly string[]> {
    try {
      const path = name === null ? this.path : this.#pathOf(name);
      return (await this.#client.children(path, options)).children.toSorted();
    } catch (error) {
      if (error instanceof NoNodeError) return [];
      throw error;
    }
  }

  /**
   * A name that nobody has or had: the prefix and a number. It is ours until it is released or this session ends; what
   * it stands for is up to the data.
   *
   * @param prefix may have slashes: `workers/w-` counts below `workers`
   */
  async claim(prefix: string, address = '', options: CallOptions = {}): Promise<ClaimedName> {
    const lost = this.#client.lostSignal;
    const { path, stat } = await this.#count(prefix, address, 'ephemeral', options);
    return new ClaimedName(this.#client, this.#nameOf(path), path, stat.czxid, lost);
  }

  /**
   * A number that nobody gets besides: 0, 1, 2 and so on, with gaps where a connection was lost. It goes on up to
   * 2,147,483,647, on our servers twice as far.
   *
   * @param sequence which of several independent sequences. Default 'ids'
   */
  async nextId(sequence = 'ids', options: CallOptions = {}): Promise<number> {
    const { path } = await this.#count(`${sequence}/`, '', 'ephemeral', options);
    // The number stays taken when the znode goes: the parent has counted it.
    void untilDone(this.#client, neverAborted(), () => deleteIfThere(this.#client, path)).catch(() => {});
    return sequenceOf(path) ?? 0;
  }

  async #count(prefix: string, data: string, mode: 'ephemeral', options: CallOptions): Promise<Created> {
    const path = `${this.path}/${prefix}`;
    const parent = path.slice(0, path.lastIndexOf('/'));
    const create = { ...options, mode, acl: this.#acl, sequential: true };
    try {
      return await this.#client.createProtected(path, data, create);
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
      // Persistent: the numbers begin anew with another parent.
      await this.#client.ensurePath(parent, { ...options, acl: this.#acl });
      return await this.#client.createProtected(path, data, create);
    }
  }

  #pathOf(name: string): string {
    return joinPath(this.path, name);
  }

  /** Without the mark by which the creation was found again. */
  #nameOf(path: string): string {
    const name = path.slice(this.path.length + 1);
    const last = name.slice(name.lastIndexOf('/') + 1);
    return name.slice(0, name.length - last.length) + withoutProtection(last);
  }
}

/** A name that is ours alone. */
export class ClaimedName implements AsyncDisposable {
  /** Below the base, with the number. */
  readonly name: string;
  /** Of the znode that holds the name. */
  readonly path: string;
  /** zxid of the claim. */
  readonly token: bigint;
  /** Aborts when the session is lost, and at the release. */
  readonly signal: AbortSignal;
  readonly #client: Client;
  readonly #released = new AbortController();

  /** Made by `NameService.claim`. */
  constructor(client: Client, name: string, path: string, token: bigint, lost: AbortSignal) {
    this.#client = client;
    this.name = name;
    this.path = path;
    this.token = token;
    this.signal = AbortSignal.any([lost, this.#released.signal]);
  }

  /** The number at the end of the name. */
  get id(): number {
    return sequenceOf(this.name) ?? 0;
  }

  get isHeld(): boolean {
    return !this.signal.aborted && this.#client.lostAtMs > this.#client.surroundings.clock.monotonicMs();
  }

  /** Nobody has the name any more; it is not given out again. */
  async release(): Promise<void> {
    this.#released.abort();
    const deleted = untilDone(this.#client, neverAborted(), () => deleteIfThere(this.#client, this.path));
    const quiet = deleted.catch((error: unknown) => {
      // The client has ended, and the name with its session.
      if (!(error instanceof ZooKeeperError)) throw error;
    });
    await orDisconnected(this.#client, quiet);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

async function deleteIfThere(client: Client, path: string): Promise<void> {
  await client.delete(path).catch((error: unknown) => {
    if (!(error instanceof NoNodeError)) throw error;
  });
}

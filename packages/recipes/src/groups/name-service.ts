import {
  type About,
  type Acl,
  type CallOptions,
  type Client,
  type ExpectedVersionOptions,
  joinPath,
  NoNodeError,
  nameOf,
  type Observation,
  OPEN,
  parentOf,
  type ReadOptions,
  type Stat,
  text,
  withoutProtection,
} from '@meerkat/client';
import { firstAbortOf } from '../kernel/abort.ts';
import { Attempt } from '../kernel/attempt.ts';
import { ignoreRejection, orDisconnected, unlessClientEnds } from '../kernel/background.ts';
import { checkedName } from '../kernel/child-name.ts';
import { Deadline } from '../kernel/deadline.ts';
import { asDoubtful } from '../kernel/doubt.ts';
import { isLoss, isPassing } from '../kernel/failures.ts';
import type { ZnodeOptions } from '../kernel/options.ts';
import { Remedy, SEQUENCE_MAX, SequenceExhaustedError, warnIfHigh } from '../kernel/overflow.ts';
import { createMarked, type OwnedZnode } from '../kernel/owned-znode.ts';
import { removeZnode } from '../kernel/removal.ts';
import { sequenceOf } from '../kernel/sequence.ts';
import { NO_MARGIN } from '../kernel/settings.ts';
import { PersistentEphemeral } from './persistent-ephemeral.ts';

export type NameServiceOptions = ZnodeOptions;

/** What a name is bound to, and since when. */
export interface Binding {
  readonly address: string;
  /** `version` is what `rebind` compares; `czxid` distinguishes successive bindings of a name. */
  readonly stat: Stat;
}

/**
 * A naming service on the plain tree: a name is the path of a znode below the base, and its data is the address.
 *
 * 1. A name has one address at a time; the first to bind it has it (`bind`), and it is changed conditionally on its
 *    version.
 * 2. Names from `claim` and numbers from `nextId` are unique as long as the base is not deleted: the service counts,
 *    and a number that was lost with a connection is not allocated again.
 *
 * @example
 * const names = new NameService(client, '/names');
 * await names.bind('db/orders', '10.0.0.5:5432');
 * await names.resolve('db/orders'); // '10.0.0.5:5432'
 * await using worker = await names.claim('worker-'); // worker.name is 'worker-0000000007', a unique name
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

  /**
   * Binds a name to an address until it is unbound.
   *
   * @throws NodeExistsError when it is bound already, also to '' because of names below it
   */
  async bind(name: string, address: string, options: CallOptions = {}): Promise<Stat> {
    const { stat } = await this.#client.createParents(this.#pathOf(name), address, { ...options, acl: this.#acl });
    return stat;
  }

  /**
   * Binds a name to an address as long as this process lives, across lost sessions, until it is closed.
   *
   * @param owner our identity across restarts: the name is taken over at once from our previous process
   */
  bindWhileAlive(name: string, address: string, owner?: string): PersistentEphemeral {
    return new PersistentEphemeral(this.#client, this.#pathOf(name), {
      data: address,
      acl: this.#acl,
      owner,
      // Names and numbers may be allocated there: with a container, numbering would start over.
      parentMode: 'persistent',
    });
  }

  /**
   * Changes the address of a name.
   *
   * @throws BadVersionError when another client has, NoNodeError when it is not bound
   */
  async rebind(name: string, address: string, options: ExpectedVersionOptions): Promise<Stat> {
    const bind = (path: string, call: CallOptions): Promise<Stat> =>
      this.#client.set(path, address, { ...call, version: options.version });
    return this.#change(this.#about('rebind', name), options, bind, (found, czxid) => {
      if (found?.stat.czxid !== czxid || found.address !== address) return null;
      return found.stat.version === options.version + 1 ? found.stat : null;
    });
  }

  /** Frees a name. @throws BadVersionError, NoNodeError, NotEmptyError when there are names below it */
  async unbind(name: string, options: ExpectedVersionOptions): Promise<void> {
    const free = (path: string, call: CallOptions): Promise<void> =>
      this.#client.delete(path, { ...call, version: options.version });
    // A missing name does not show who freed it: another client may have before this call, as seen through a lagging
    // server.
    return this.#change(this.#about('unbind', name), options, free, () => null);
  }

  /** The address; null when the name is not bound, '' when only names below it were bound. As fresh as the connected server is. */
  async resolve(name: string, options: CallOptions = {}): Promise<string | null> {
    return (await this.lookUp(name, options))?.address ?? null;
  }

  /** Like `resolve`, with the Stat of the binding. */
  async lookUp(name: string, options: CallOptions = {}): Promise<Binding | null> {
    return await this.#read(this.#pathOf(name), options);
  }

  async #read(path: string, options: ReadOptions): Promise<Binding | null> {
    try {
      const { data, stat } = await this.#client.get(path, { ...options, codec: text });
      return { address: data, stat };
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      throw error;
    }
  }

  /** The current address, and each change; `exists` is false while the name is not bound. */
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
   * A name that is unique, also among earlier ones: the prefix and a number. It is ours until it is released or this
   * session ends. Its address is in the znode at its `path`, whose name is prefixed with a mark: `resolve` and `bind`
   * do not see it.
   *
   * @param prefix may contain slashes: `workers/w-` counts below `workers`
   * @throws SequenceExhaustedError when an Apache server has no number left
   */
  async claim(prefix: string, address = '', options: CallOptions = {}): Promise<ClaimedName> {
    const { path, stat, lost } = await this.#count('claim', prefix, address, options);
    return new ClaimedName(this.#client, this.#nameOf(path), path, stat.czxid, lost);
  }

  /**
   * A unique number: 0, 1, 2 and so on, with gaps after lost connections. It runs up to 2,147,483,646; on Meerkat
   * servers up to 4,294,967,295, and then starts again at 0.
   *
   * @param sequence which of several independent sequences. Default 'ids'
   * @throws SequenceExhaustedError when an Apache server has no number left
   */
  async nextId(sequence = 'ids', options: CallOptions = {}): Promise<number> {
    const { path } = await this.#count('nextId', `${sequence}/`, '', options);
    // The number stays allocated when the znode is deleted: the parent has counted it.
    void deleteForGood(this.#client, path).catch(() => {});
    return sequenceOf(path) ?? 0;
  }

  /**
   * Creates a znode whose number is unique. Having reached 2147483647, an Apache server returns it repeatedly, or a
   * negative number while other creations are in flight; which client got it first cannot be known, so none may use it.
   */
  async #count(operation: string, prefix: string, data: string, options: CallOptions): Promise<OwnedZnode> {
    const client = this.#client;
    for (const part of prefix.split('/').slice(0, -1)) checkedName(part, 'a part of a name');
    const path = `${this.#base}/${prefix}`;
    const about = { operation: `NameService.${operation}`, path };
    const attempt = new Attempt(client, options, about);
    const parent = parentOf(path);
    for (let isRepetition = false; ; isRepetition = true) {
      const created = await this.#create(path, data, attempt);
      const number = Number(withoutProtection(nameOf(created.path)).slice(nameOf(path).length));
      warnIfHigh(parent, number, Remedy.elsewhere);
      if (number >= 0 && number !== SEQUENCE_MAX) return created;
      void removeZnode(client, created.path, created.stat.ephemeralOwner);
      // Meerkat servers count further.
      if (isRepetition) throw new SequenceExhaustedError(parent, NO_NEW_NUMBER);
    }
  }

  async #create(path: string, data: string, attempt: Attempt): Promise<OwnedZnode> {
    const client = this.#client;
    for (let round = 1; ; round++) {
      try {
        return await createMarked(client, path, { data, acl: this.#acl, sequential: true }, attempt.next());
      } catch (error) {
        if (!(error instanceof NoNodeError) || round === ATTEMPTS_MAX) throw error;
        // It may be deleted again before the next attempt. Persistent: the numbers start over with another parent.
        await client.ensurePath(parentOf(path), { ...attempt.next(), acl: this.#acl });
      }
    }
  }

  /**
   * Writes conditionally on a version, across lost connections. Versions start over with each binding of a name: so
   * that a retry does not change a later binding, the czxid is requested together with the write. Only a reply that
   * came before the write failed counts: a request that was lost with the connection is retried on the next one, and
   * its reply shows what is bound by then.
   *
   * @param explain returns the result of an attempt whose reply was lost, from what is found then; null if that does
   *   not show it
   */
  async #change<T>(
    about: About & { readonly path: string },
    { version, ...options }: ExpectedVersionOptions,
    write: (path: string, call: CallOptions) => Promise<T>,
    explain: (found: Binding | null, czxid: bigint) => T | null,
  ): Promise<T> {
    const client = this.#client;
    const { path } = about;
    const attempt = new Attempt(client, options, about);
    /** The czxid of the binding to change, kept across attempts; null as long as it is not known. */
    const seen: { czxid: bigint | null } = { czxid: null };
    const note = (stat: Stat | null): void => {
      seen.czxid ??= stat?.czxid ?? null;
    };
    for (let round = 1; ; round++) {
      const call = attempt.next();
      // Sent first, so that its reply is recorded before the write fails: replies arrive in order.
      client.exists(path, call).then(note, () => {});
      try {
        return await write(path, call);
      } catch (error) {
        // Read before the first await: later replies may show what was bound after the write.
        const { czxid } = seen;
        if (!isLoss(error) || round === ATTEMPTS_MAX) throw error;
        if (error.outcome !== 'unknown') continue;
        if (czxid === null) throw error;
        attempt.doubt();
        const read = (): Promise<Binding | null> => this.#read(path, { ...attempt.next(), read: 'linearizable' });
        const found = await read().catch((failure: unknown) => {
          // Without a reply it cannot be known.
          throw isPassing(failure) ? error : asDoubtful(failure, about);
        });
        const result = explain(found, czxid);
        if (result !== null) return result;
        if (found?.stat.czxid !== czxid || found.stat.version !== version) throw error;
        attempt.settle();
      }
    }
  }

  #about(method: string, name: string): About & { readonly path: string } {
    return { operation: `NameService.${method}`, path: this.#pathOf(name) };
  }

  /** The base path, followed by a name's slash. */
  get #base(): string {
    return this.path === '/' ? '' : this.path;
  }

  #pathOf(name: string): string {
    for (const part of name.split('/')) checkedName(part, 'a part of a name');
    return joinPath(this.path, name);
  }

  /** Without the mark that identifies the creation. */
  #nameOf(path: string): string {
    const name = path.slice(this.#base.length + 1);
    const last = name.slice(name.lastIndexOf('/') + 1);
    return name.slice(0, name.length - last.length) + withoutProtection(last);
  }
}

const NO_NEW_NUMBER =
  'so that it has no unused number. Use another path: recreated, this znode would give the same numbers again';

/** Attempts for a write whose connection is lost, and for a claim whose parent is deleted. */
const ATTEMPTS_MAX = 10;

/** A unique name that we hold. */
export class ClaimedName implements AsyncDisposable {
  /** Relative to the base, with the number. */
  readonly name: string;
  /** Of the znode that holds the name. */
  readonly path: string;
  /** zxid of the claim. */
  readonly token: bigint;
  /** Aborts when the session is lost or the name is released. */
  readonly signal: AbortSignal;
  readonly #client: Client;
  readonly #released = new AbortController();

  /** Created by `NameService.claim`. */
  constructor(client: Client, name: string, path: string, token: bigint, lost: AbortSignal) {
    this.#client = client;
    this.name = name;
    this.path = path;
    this.token = token;
    this.signal = firstAbortOf([lost, this.#released.signal]);
  }

  /** The number at the end of the name. */
  get id(): number {
    return sequenceOf(this.name) ?? 0;
  }

  get isHeld(): boolean {
    return !this.signal.aborted && new Deadline(this.#client, NO_MARGIN).leftMs > 0;
  }

  /**
   * Frees the name; it is not allocated again. Resolves when its znode is gone; without a connection at once, and it is
   * deleted with the next one.
   *
   * @throws NoAuthError when the service refuses the deletion: the znode stays as long as the session. Nothing happens
   *   when the promise is not awaited
   */
  release(): Promise<void> {
    this.#released.abort();
    const deleted = deleteForGood(this.#client, this.path);
    return ignoreRejection(orDisconnected(this.#client, unlessClientEnds(deleted)));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

/** Retries across any number of lost connections and sessions. */
async function deleteForGood(client: Client, path: string): Promise<void> {
  const attempt = new Attempt(client, {}, { operation: 'release', path }, { awaitsQuorum: true });
  await attempt
    .through((call) => client.delete(path, call))
    .catch((error: unknown) => {
      if (!(error instanceof NoNodeError)) throw error;
    });
}

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

/** What a name stands for, and since when. */
export interface Binding {
  readonly address: string;
  /** `version` is what `rebind` compares, `czxid` distinguishes one life of a name from the next. */
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

  /** Binds a name to an address until it is unbound. @throws NodeExistsError when it does for something, or for '' because of names below it */
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
    return new PersistentEphemeral(this.#client, this.#pathOf(name), {
      data: address,
      acl: this.#acl,
      owner,
      // Names and numbers may be counted there: with a container they would start over.
      parentMode: 'persistent',
    });
  }

  /** Changes what a name stands for. @throws BadVersionError when another client has, NoNodeError when it is not bound */
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
    // A name that is gone does not show who freed it: another client may have before we came, behind a server that lags.
    return this.#change(this.#about('unbind', name), options, free, () => null);
  }

  /** The address; null when the name is not bound, '' when only names below it were bound. As fresh as the connected server is. */
  async resolve(name: string, options: CallOptions = {}): Promise<string | null> {
    return (await this.lookUp(name, options))?.address ?? null;
  }

  /** The same, with what is known of the binding. */
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

  /** The address now, and each change; `exists` is false while the name is not bound. */
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
   * A name that is and was not in use: the prefix and a number. It is ours until it is released or this session ends.
   * What it stands for is in the znode at its `path`, whose name has a mark in front: `resolve` and `bind` know nothing of it.
   *
   * @param prefix may have slashes: `workers/w-` counts below `workers`
   * @throws SequenceExhaustedError when an Apache server has no number left
   */
  async claim(prefix: string, address = '', options: CallOptions = {}): Promise<ClaimedName> {
    const { path, stat, lost } = await this.#count('claim', prefix, address, options);
    return new ClaimedName(this.#client, this.#nameOf(path), path, stat.czxid, lost);
  }

  /**
   * A unique number: 0, 1, 2 and so on, with gaps where a connection was lost. It continues up to
   * 2,147,483,646, on our servers to 4,294,967,295, where it begins at 0 again.
   *
   * @param sequence which of several independent sequences. Default 'ids'
   * @throws SequenceExhaustedError when an Apache server has no number left
   */
  async nextId(sequence = 'ids', options: CallOptions = {}): Promise<number> {
    const { path } = await this.#count('nextId', `${sequence}/`, '', options);
    // The number stays taken when the znode goes: the parent has counted it.
    void deleteForGood(this.#client, path).catch(() => {});
    return sequenceOf(path) ?? 0;
  }

  /**
   * Makes a znode whose number is unique. Having reached 2147483647, an Apache server gives it again and again, or a
   * negative one while others are under way; who got it first cannot be known, so no client gets it.
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
      // Our servers continue behind it.
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
        // A client may delete it again before the next round. Persistent: the numbers start over with another parent.
        await client.ensurePath(parentOf(path), { ...attempt.next(), acl: this.#acl });
      }
    }
  }

  /**
   * Writes upon a version, through lost connections. Versions start over with each life of a name: so that a repetition does
   * not fall upon what another client has bound since, the czxid is asked for together with the write. Only an answer that came
   * before the write failed counts: a question that was lost with the connection is asked again on the next one, and that
   * answer reports whatever is bound by then.
   *
   * @param explain what an attempt whose reply was lost has come to, from what is found then; null if that does not show it
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
    /** The czxid of the binding that this is for, also in later attempts; null as long as none is known. */
    const seen: { czxid: bigint | null } = { czxid: null };
    const note = (stat: Stat | null): void => {
      seen.czxid ??= stat?.czxid ?? null;
    };
    for (let round = 1; ; round++) {
      const call = attempt.next();
      // First, so that what was answered before the write failed is noted before that: replies come in order.
      client.exists(path, call).then(note, () => {});
      try {
        return await write(path, call);
      } catch (error) {
        // Before anything is awaited: later answers may report what was bound after the write.
        const { czxid } = seen;
        if (!isLoss(error) || round === ATTEMPTS_MAX) throw error;
        if (error.outcome !== 'unknown') continue;
        if (czxid === null) throw error;
        attempt.doubt();
        const read = (): Promise<Binding | null> => this.#read(path, { ...attempt.next(), read: 'linearizable' });
        const found = await read().catch((failure: unknown) => {
          // Without an answer it cannot be known.
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

  /** What stands before the slash of a name. */
  get #base(): string {
    return this.path === '/' ? '' : this.path;
  }

  #pathOf(name: string): string {
    for (const part of name.split('/')) checkedName(part, 'a part of a name');
    return joinPath(this.path, name);
  }

  /** Without the mark by which the creation was found again. */
  #nameOf(path: string): string {
    const name = path.slice(this.#base.length + 1);
    const last = name.slice(name.lastIndexOf('/') + 1);
    return name.slice(0, name.length - last.length) + withoutProtection(last);
  }
}

const NO_NEW_NUMBER =
  'so that it has no unused number. Use another path: recreated, this znode would give the same numbers again';

/** How often a write is tried whose connection is lost, and a claim whose parent is deleted. */
const ATTEMPTS_MAX = 10;

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
   * Frees the name; it is not given out again. Resolves when its znode is gone, or there is no connection: then
   * it goes with the next one.
   *
   * @throws NoAuthError when the service refuses that: the znode stays as long as the session. Nothing happens to a caller who
   *   does not wait for it
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

/** However often the connection or the session is lost. */
async function deleteForGood(client: Client, path: string): Promise<void> {
  const attempt = new Attempt(client, {}, { operation: 'release', path }, { awaitsQuorum: true });
  await attempt
    .through((call) => client.delete(path, call))
    .catch((error: unknown) => {
      if (!(error instanceof NoNodeError)) throw error;
    });
}

import { type Acl, OpCode } from '@meerkat/protocol';
import { type CallPlan, call } from './calls.ts';
import { ClientRequester } from './client-requester.ts';
import type { ClientSession } from './client-session.ts';
import { bytes } from './codec/bytes.ts';
import type { Codec } from './codec/codec.ts';
import { type CreateProtectedOptions, createProtected } from './conveniences/create-protected.ts';
import { type DeleteRecursiveOptions, deleteRecursive } from './conveniences/delete-recursive.ts';
import {
  type CreateParentsOptions,
  createParents,
  type EnsurePathOptions,
  ensurePath,
} from './conveniences/ensure-path.ts';
import { deleteIdempotent, type ExpectedVersionOptions, setIdempotent } from './conveniences/idempotent.ts';
import {
  type Change,
  DATA_CODEC,
  type UpdateCodec,
  type UpdateOptions,
  type UpdateOrCreateOptions,
  update,
} from './conveniences/update.ts';
import type { Data } from './data.ts';
import { NoWatcherError } from './errors.ts';
import { showAs } from './inspect.ts';
import { checkOptions, wrongOption } from './known-options.ts';
import { formatServer } from './machine/ports.ts';
import type { AclOfZnode, Children, Created, Znode } from './machine/replies.ts';
import type { Stat } from './machine/stat.ts';
import { MultiRead } from './multi-read.ts';
import { Observation, type ObserveOptions } from './observe.ts';
import type { CreateOptions, VersionOptions, Watched, WatchSelection } from './operations.ts';
import { callPath } from './path-call.ts';
import type { CallOptions, ReadOptions } from './requester.ts';
import { SessionClient } from './session-client.ts';
import { Transaction } from './transaction.ts';
import { WATCH_KINDS, WATCHER_TYPES } from './watch-selection.ts';
import { type WatchOptions, WatchStream } from './watch-stream.ts';
import { checkedAcl, checkedVersion, makeCreate, makeDelete, makeSetData } from './write-requests.ts';
import { ZnodeReads } from './znode-reads.ts';

/**
 * A ZooKeeper client: one session, many requests in flight.
 *
 * Requests are sent in the order of the calls and answered in that order. Every method returns a promise that rejects
 * with a ZooKeeperError; none throws. Reads in flight when a connection breaks are retried, writes are not: they reject
 * with a ConnectionLossError that says whether they may have been applied (`outcome`). While the connection is
 * `suspended`, requests wait; once the session is `lost` they are refused at once.
 *
 * @example
 * await using client = await connect('127.0.0.1:2181');
 * await client.create('/greeting', 'hello');
 * const { data, stat } = await client.get('/greeting');
 */
export class Client extends SessionClient {
  readonly #session: ClientSession;
  readonly #requester: ClientRequester;
  readonly #reads: ZnodeReads;

  /** Created by `connect`. */
  constructor(session: ClientSession, chroot: string) {
    super(session);
    this.#session = session;
    this.#requester = new ClientRequester(session, chroot);
    this.#reads = new ZnodeReads(session, this.#requester);
  }

  /** '' for none. */
  get chroot(): string {
    return this.#requester.chroot;
  }

  /**
   * A client for the same session with another root. Closing either closes both.
   *
   * @example
   * const app = client.withChroot('/apps/shop');
   * await app.get('/config'); // reads /apps/shop/config
   */
  withChroot(path: string): Client {
    const chroot = this.#requester.absolute(path, 'withChroot');
    return new Client(this.#session, chroot === '/' ? '' : chroot);
  }

  /* ------------------------------------------------------------------------------------------------- reading ---- */

  /**
   * The data and Stat of a znode.
   *
   * @throws NoNodeError
   * @example
   * const { data, stat } = await client.get('/config');
   * const { data: config } = await client.get('/config', { codec: json() });
   * const { changed } = await client.get('/config', { watch: true });
   * await changed;
   */
  get(path: string, options?: ReadOptions & { watch?: false }): Promise<Znode>;
  get(path: string, options: ReadOptions & { watch: true }): Promise<Znode & Watched>;
  get<T>(path: string, options: ReadOptions & { codec: Codec<T>; watch?: false }): Promise<Znode<T>>;
  get<T>(path: string, options: ReadOptions & { codec: Codec<T>; watch: true }): Promise<Znode<T> & Watched>;
  get<T>(path: string, options?: ReadOptions & { codec?: Codec<T>; watch?: boolean }): Promise<Znode<unknown>> {
    return this.#reads.get(path, options);
  }

  /**
   * Whether a znode exists: its Stat, or null. A watch also reports its creation.
   *
   * @example
   * if ((await client.exists('/ready')) === null) console.log('not yet');
   */
  exists(path: string, options?: ReadOptions & { watch?: false }): Promise<Stat | null>;
  exists(path: string, options: ReadOptions & { watch: true }): Promise<{ readonly stat: Stat | null } & Watched>;
  exists(path: string, options?: ReadOptions & { watch?: boolean }): Promise<unknown> {
    return this.#reads.exists(path, options);
  }

  /**
   * The names of a znode's children, in no particular order, and its Stat.
   *
   * @throws NoNodeError
   * @example
   * const { children } = await client.children('/members');
   */
  children(path: string, options?: ReadOptions & { watch?: false }): Promise<Children>;
  children(path: string, options: ReadOptions & { watch: true }): Promise<Children & Watched>;
  children(path: string, options?: ReadOptions & { watch?: boolean }): Promise<unknown> {
    return this.#reads.children(path, options);
  }

  /** The number of znodes below this one, at any depth. @throws NoNodeError */
  descendantCount(path: string, options?: CallOptions): Promise<number> {
    return callPath(this.#requester, 'descendantCount', path, options, (absolute) => ({
      op: OpCode.getAllChildrenNumber,
      path: absolute,
    }));
  }

  /** The paths of this session's ephemeral znodes that begin with `prefix`. */
  async ephemerals(prefix = '/', options?: CallOptions): Promise<readonly string[]> {
    const about = { operation: 'ephemerals', path: prefix };
    checkOptions('ephemerals', options, about);
    const absolute = `${this.chroot}${prefix}`;
    const request = { op: OpCode.getEphemerals, prefix: absolute } as const;
    const plan: CallPlan = { request, about, listener: null };
    const paths = await call<readonly string[]>(this.#session, plan, options);
    return paths.map((path) => this.#requester.relative(path));
  }

  /** The ACL of a znode. @throws NoNodeError */
  getAcl(path: string, options?: CallOptions): Promise<AclOfZnode> {
    return callPath(this.#requester, 'getAcl', path, options, (absolute) => ({
      op: OpCode.getACL,
      path: absolute,
    }));
  }

  /**
   * Waits until the connected server has caught up with everything that was acknowledged to any client before the call.
   * For a single read, use `{ read: 'linearizable' }`, which costs no extra round trip.
   */
  sync(path = '/', options?: CallOptions): Promise<void> {
    return callPath(this.#requester, 'sync', path, options, (absolute) => ({
      op: OpCode.sync,
      path: absolute,
    }));
  }

  /* ------------------------------------------------------------------------------------------------- writing ---- */

  /**
   * Creates a znode.
   *
   * @throws NodeExistsError; NoNodeError when the parent is missing; NoChildrenForEphemeralsError
   * @example
   * await client.create('/config', 'on');
   * const { path } = await client.create('/queue/job-', job, { sequential: true }); // /queue/job-0000000007
   * await client.create('/members/me', null, { mode: 'ephemeral' });
   */
  create(path: string, data?: Data, options?: CreateOptions): Promise<Created>;
  create<T>(path: string, value: T, options: CreateOptions & { codec: Codec<T> }): Promise<Created>;
  create<T>(path: string, data?: Data | T, options: CreateOptions & { codec?: Codec<T> } = {}): Promise<Created> {
    const isSequential = options.sequential === true;
    const made = callPath<Created>(
      this.#requester,
      'create',
      path,
      options,
      (absolute, about) =>
        makeCreate(absolute, data === undefined ? undefined : encode(options.codec, data), options, about),
      isSequential,
    );
    if (this.chroot === '') return made;
    return made.then(({ path: created, stat }) => ({ path: this.#requester.relative(created), stat }));
  }

  /**
   * Replaces the data of a znode.
   *
   * @throws NoNodeError, BadVersionError
   * @example
   * const { stat } = await client.get('/config');
   * await client.set('/config', 'off', { version: stat.version });
   */
  set(path: string, data: Data, options?: VersionOptions): Promise<Stat>;
  set<T>(path: string, value: T, options: VersionOptions & { codec: Codec<T> }): Promise<Stat>;
  set<T>(path: string, data: Data | T, options?: VersionOptions & { codec?: Codec<T> }): Promise<Stat> {
    return callPath(this.#requester, 'set', path, options, (absolute, about) =>
      makeSetData(absolute, encode(options?.codec, data), options?.version, about),
    );
  }

  /** Deletes a znode without children. @throws NoNodeError, BadVersionError, NotEmptyError */
  delete(path: string, options?: VersionOptions): Promise<void> {
    return callPath(this.#requester, 'delete', path, options, (absolute, about) =>
      makeDelete(absolute, options?.version, about),
    );
  }

  /** Replaces a znode's ACL. `version` is compared with `stat.aversion`. @throws NoNodeError, InvalidAclError */
  setAcl(path: string, acl: readonly Acl[], options?: VersionOptions): Promise<Stat> {
    return callPath(this.#requester, 'setAcl', path, options, (absolute, about) => ({
      op: OpCode.setACL,
      path: absolute,
      acl: checkedAcl(acl, about),
      version: checkedVersion(options?.version, about),
    }));
  }

  /* ----------------------------------------------------------------------------- writing, with more certainty ---- */

  /**
   * Creates a znode, and its parents where they are missing.
   *
   * @throws NodeExistsError
   * @example
   * await client.createParents('/services/search/instances/a', 'host1:8080', { mode: 'ephemeral' });
   */
  async createParents(path: string, data?: Data, options?: CreateParentsOptions): Promise<Created> {
    checkOptions('createParents', options, { operation: 'createParents', path });
    return await createParents(this.#requester, this.surroundings, path, data, options);
  }

  /**
   * Creates a znode and its ancestors where they are missing, including the chroot. Existing ones are left unchanged.
   *
   * @example
   * await client.ensurePath('/services/search/instances');
   */
  async ensurePath(path: string, options?: EnsurePathOptions): Promise<void> {
    checkOptions('ensurePath', options, { operation: 'ensurePath', path });
    return await ensurePath(this.#requester, this.surroundings, path, options);
  }

  /**
   * Creates a znode that is found again when the reply to its creation is lost: it resolves with exactly one znode, or
   * rejects. The name is prefixed with `_c_<uuid>-`, as in Curator's protection mode; `withoutProtection` removes that.
   *
   * @example
   * const { path } = await client.createProtected('/locks/lock-', '', { mode: 'ephemeral', sequential: true });
   */
  async createProtected(path: string, data?: Data, options?: CreateProtectedOptions): Promise<Created> {
    checkOptions('createProtected', options, { operation: 'createProtected', path });
    return await createProtected(this, this.surroundings, path, data, options);
  }

  /**
   * Sets data conditionally on a version, and retries after lost connections: a retry that finds its own effect
   * succeeds.
   *
   * @throws BadVersionError when another client changed it first; NoNodeError
   * @example
   * await client.setIdempotent('/config', 'on', { version: stat.version });
   */
  async setIdempotent(path: string, data: Data, options: ExpectedVersionOptions): Promise<Stat> {
    checkOptions('setIdempotent', options, { operation: 'setIdempotent', path });
    return await setIdempotent(this, this.surroundings, path, data, options);
  }

  /**
   * Deletes a znode conditionally on its version, and retries after lost connections: a retry that finds it gone
   * succeeds, no matter which client deleted it.
   *
   * @throws BadVersionError, NoNodeError, NotEmptyError
   * @example
   * await client.deleteIdempotent('/task-7', { version: stat.version });
   */
  async deleteIdempotent(path: string, options: ExpectedVersionOptions): Promise<void> {
    checkOptions('deleteIdempotent', options, { operation: 'deleteIdempotent', path });
    return await deleteIdempotent(this, this.surroundings, path, options);
  }

  /**
   * Reads, calls `change`, and writes the result if the znode was not changed meanwhile; otherwise starts over. The
   * function may be called several times; undefined leaves the znode unchanged.
   *
   * @returns the current znode; with `create: true` null when it is missing and the function left it so
   * @throws NoNodeError unless `create: true`; ConnectionLossError when it is not known whether the change was applied
   * @example
   * await client.update('/visits', (data) => `${Number(new TextDecoder().decode(data)) + 1}`);
   * await client.update('/config', (config) => ({ ...config, debug: true }), { codec: json<Config>() });
   */
  // The most specific first: the parameter of an untyped function is inferred from the first overload that may match.
  update<T>(
    path: string,
    change: Change<T, T, null>,
    options: UpdateOrCreateOptions & { codec: Codec<T> },
  ): Promise<Znode<T> | null>;
  update<T>(path: string, change: Change<T, T>, options: UpdateOptions & { codec: Codec<T> }): Promise<Znode<T>>;
  update(path: string, change: Change<Uint8Array, Data, null>, options: UpdateOrCreateOptions): Promise<Znode | null>;
  update(path: string, change: Change<Uint8Array, Data>, options?: UpdateOptions): Promise<Znode>;
  async update<T>(
    path: string,
    change: Change<T, T, null> | Change<Uint8Array, Data, null>,
    options: (UpdateOptions | UpdateOrCreateOptions) & { codec?: Codec<T> } = {},
  ): Promise<unknown> {
    checkOptions('update', options, { operation: 'update', path });
    // The overloads relate the types of codec and function; here they are unknown.
    const codec = (options.codec ?? DATA_CODEC) as UpdateCodec<unknown, unknown>;
    return await update(this, this.surroundings, path, change as Change<unknown, unknown, null>, codec, options);
  }

  /**
   * Deletes a znode and everything below it, children before parents. Not atomic: other clients see partial results.
   *
   * @returns the number of znodes that it deleted
   * @throws NoNodeError
   * @example
   * const count = await client.deleteRecursive('/jobs/old', { signal: AbortSignal.timeout(60_000) });
   */
  async deleteRecursive(path: string, options?: DeleteRecursiveOptions): Promise<number> {
    checkOptions('deleteRecursive', options, { operation: 'deleteRecursive', path });
    return await deleteRecursive(this, this.surroundings, path, `${this.chroot}${path}`, options);
  }

  /**
   * Several writes, applied all or none, with a typed result for each.
   *
   * @example
   * const [, created] = await client.transaction().check('/leader', { version: 3 }).create('/jobs/7', 'x').commit();
   */
  transaction(): Transaction {
    return new Transaction(this.#requester);
  }

  /**
   * Several reads in one request, each of which succeeds or fails by itself. Needs a server of 3.6 or newer.
   *
   * @example
   * const [config, members] = await client.multiRead().get('/config').children('/members').run();
   */
  multiRead(): MultiRead {
    return new MultiRead(this.#requester);
  }

  /* ------------------------------------------------------------------------------------------------- watches ---- */

  /**
   * The changes of a znode, optionally with its subtree. The watch survives connections and sessions; where changes may
   * have been missed there is a `gap`. Leaving the loop removes it.
   *
   * @example
   * for await (const event of client.watch('/services', { recursive: true })) {
   *   if (event.type === 'gap') await reloadEverything();
   *   else console.log(`${event.path} was ${event.type}`);
   * }
   */
  watch(path: string, options?: WatchOptions): WatchStream {
    return new WatchStream(this.#requester, path, options, wrongOption('watch', options));
  }

  /**
   * The current value of a znode, and then each change.
   *
   * @example
   * for await (const { exists, data } of client.observe('/config', json<Config>())) if (exists) apply(data);
   */
  observe(path: string): Observation<Uint8Array>;
  observe<T>(path: string, codec: Codec<T>, options?: ObserveOptions): Observation<T>;
  observe<T>(path: string, codec: Codec<T> | Codec<Uint8Array> = bytes, options?: ObserveOptions): unknown {
    const flaw = wrongOption('observe', options);
    return new Observation(this.#requester, path, codec as Codec<T>, options, flaw);
  }

  /** Whether the connected server has such a watch for this connection. */
  async checkWatches(path: string, selection: WatchSelection, options?: CallOptions): Promise<boolean> {
    try {
      await callPath(this.#requester, 'checkWatches', path, options, (absolute) => ({
        op: OpCode.checkWatches,
        path: absolute,
        watcherType: WATCHER_TYPES[selection],
      }));
      return true;
    } catch (error) {
      if (error instanceof NoWatcherError) return false;
      throw error;
    }
  }

  /** Removes all watches of a kind from a path; their listeners are notified that they ended. @throws NoWatcherError */
  async removeWatches(path: string, selection: WatchSelection, options?: CallOptions): Promise<void> {
    await callPath(this.#requester, 'removeWatches', path, options, (absolute) => ({
      op: OpCode.removeWatches,
      path: absolute,
      watcherType: WATCHER_TYPES[selection],
    }));
    const absolute = this.#requester.absolute(path, 'removeWatches');
    this.#session.session.watches.removeAll(WATCH_KINDS[selection], absolute);
  }
}

// `console.log(client)`: Client { state: 'connected', server: '10.0.0.7:2181', session: SessionInfo { … }, chroot: '' }
showAs(Client, ({ state, session, server, chroot }, inspect, options) => {
  const shown = { state, server: server === null ? null : formatServer(server), session, chroot };
  return `Client ${inspect(shown, options)}`;
});

function encode<T>(codec: Codec<T> | undefined, data: Data | T): Data {
  return codec === undefined ? (data as Data) : codec.encode(data as T);
}

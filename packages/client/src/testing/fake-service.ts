import { type CreateRequest, type MultiOp, nameOf, OpCode, parentOf, type Request } from '@meerkat/protocol';
import { addChroot, addChrootSequential, removeChroot } from '../chroot.ts';
import type { Operations } from '../conveniences/operations.ts';
import { ConnectionLossError } from '../errors.ts';
import type { Created, Znode } from '../machine/replies.ts';
import { Stat } from '../machine/stat.ts';
import { makeError } from '../make-error.ts';
import type { About, CallOptions, ReadOptions, Requester } from '../requester.ts';
import { makeCreate, makeDelete, makeSetData } from '../write-requests.ts';

/**
 * The fault of a request: the connection breaks before it is sent, before the server gets it, or before the reply
 * arrives.
 */
export type Fault = 'not-sent' | 'not-applied' | 'reply-lost';

const READS: ReadonlySet<number> = new Set([OpCode.exists, OpCode.getData, OpCode.getChildren2]);

interface FakeZnode {
  data: Uint8Array | null;
  version: number;
  readonly czxid: number;
  mzxid: number;
  readonly owner: bigint;
  /** Number of children ever created. */
  sequence: number;
}

/**
 * A tree of znodes behind the session's interface: just enough of a service to break connections at will.
 *
 * A client that has lost a reply is connected to a server that has not applied its request: local reads show the tree of
 * before, until a linearizable one.
 */
export class FakeService implements Requester {
  readonly chroot: string;
  znodes: Map<string, FakeZnode> = new Map();
  /** The tree of the lagging server; null: it has caught up. */
  #before: Map<string, FakeZnode> | null = null;
  sessionId = 1n;
  /** Called before each request. */
  fault: (request: Request) => Fault | null = () => null;
  /** Called before each request, so that other clients can act in between. */
  meanwhile: (request: Request) => void = () => {};
  readonly requests: Request[] = [];
  #zxid = 0;

  constructor(chroot = '') {
    this.chroot = chroot;
    this.znodes.set('/', this.#makeZnode(null, 0n));
  }

  absolute(path: string, operation: string): string {
    return addChroot(this.chroot, path, operation);
  }

  absoluteSequential(path: string, operation: string): string {
    return addChrootSequential(this.chroot, path, operation);
  }

  relative(path: string): string {
    return removeChroot(this.chroot, path);
  }

  async request<T>(request: Request, options: CallOptions | undefined, about: About): Promise<T> {
    if (options?.signal?.aborted === true) {
      const failure = { kind: 'aborted', wasSent: false, server: null, detail: '' } as const;
      throw makeError(failure, about, options.signal.reason);
    }
    this.requests.push(request);
    this.meanwhile(request);
    const fault = this.fault(request);
    if (fault === 'not-sent') throw new ConnectionLossError({ ...about, outcome: 'not-applied' });
    const isRead = READS.has(request.op);
    if (fault === 'reply-lost' && !isRead) {
      this.#before = new Map([...this.znodes].map(([path, znode]) => [path, { ...znode }]));
    }
    const isLocal = isRead && (options as ReadOptions | undefined)?.read !== 'linearizable';
    if (isRead && !isLocal) this.#before = null;
    const result = fault === 'not-applied' ? 0 : isLocal ? this.#readLocally(request) : this.#apply(request);
    // Replies arrive after the call has returned, and in order.
    await Promise.resolve();
    if (fault !== null) throw makeError({ kind: 'connection-lost', wasSent: true, server: null, detail: '' }, about);
    if (typeof result === 'number') throw makeError({ kind: 'refused', code: result, server: '10.0.0.1:2181' }, about);
    return result as T;
  }

  addWatch(): Promise<never> {
    return Promise.reject(new Error('watches are no part of this fake'));
  }

  /** A client's operations on it. */
  operations(): Operations {
    const send = <T>(
      operation: string,
      path: string,
      options: CallOptions,
      make: (absolute: string, about: About) => Request,
    ) => {
      const about = { operation, path };
      return this.request<T>(make(this.absolute(path, operation), about), options, about);
    };
    const service = this;
    return {
      get session() {
        return { id: service.sessionId };
      },
      create: async (path, data, options) => {
        const about = { operation: 'create', path };
        const created = await this.request<Created>(
          makeCreate(this.absoluteSequential(path, 'create'), data, options, about),
          options,
          about,
        );
        return { ...created, path: this.relative(created.path) };
      },
      delete: (path, options) =>
        send('delete', path, options, (absolute, about) => makeDelete(absolute, options.version, about)),
      set: (path, data, options) =>
        send('set', path, options, (absolute, about) => makeSetData(absolute, data, options.version, about)),
      get: async (path, options) => {
        const { data, stat } = await send<Znode<Uint8Array | null>>('get', path, options, (absolute) => ({
          op: OpCode.getData,
          path: absolute,
          watch: false,
        }));
        return { data: await options.codec.decode(data), stat };
      },
      children: (path, options) =>
        send('children', path, options, (absolute) => ({ op: OpCode.getChildren2, path: absolute, watch: false })),
      exists: async (path, options) => {
        try {
          return await send('exists', path, options, (absolute) => ({
            op: OpCode.exists,
            path: absolute,
            watch: false,
          }));
        } catch (error) {
          if (error instanceof Error && error.name === 'NoNodeError') return null;
          throw error;
        }
      },
    };
  }

  /** Creates a persistent znode, for test setup. */
  put(path: string, data: string | null = ''): void {
    const bytes = data === null ? null : new TextEncoder().encode(data);
    const known = this.znodes.get(path);
    if (known === undefined) {
      this.znodes.set(path, this.#makeZnode(bytes, 0n));
      this.znodes.get(parentOf(path))!.sequence++;
    } else {
      known.data = bytes;
      known.version++;
      known.mzxid = ++this.#zxid;
    }
  }

  text(path: string): string {
    return new TextDecoder().decode(this.znodes.get(path)?.data ?? undefined);
  }

  /** All paths but the root, in order. */
  get paths(): readonly string[] {
    return [...this.znodes.keys()].filter((path) => path !== '/').sort();
  }

  /** Ends the session as the service does, and starts another. */
  replaceSession(): void {
    for (const [path, { owner }] of this.znodes) if (owner === this.sessionId) this.znodes.delete(path);
    this.sessionId++;
  }

  #makeZnode(data: Uint8Array | null, owner: bigint): FakeZnode {
    const zxid = ++this.#zxid;
    return { data, version: 0, czxid: zxid, mzxid: zxid, owner, sequence: 0 };
  }

  #readLocally(request: Request): unknown {
    const { znodes } = this;
    this.znodes = this.#before ?? znodes;
    const result = this.#apply(request);
    this.znodes = znodes;
    return result;
  }

  /** @returns the result, or an error code */
  #apply(request: Request): unknown {
    switch (request.op) {
      case OpCode.create2:
      case OpCode.createContainer:
      case OpCode.createTTL:
        return this.#create(request as CreateRequest);
      case OpCode.delete:
      case OpCode.setData:
        return this.#change(request as MultiOp);
      case OpCode.sync:
        return null;
      case OpCode.exists:
        return this.znodes.has(request.path) ? this.#statOf(request.path) : NO_NODE;
      case OpCode.getData: {
        const znode = this.znodes.get(request.path);
        return znode === undefined ? NO_NODE : { data: znode.data, stat: this.#statOf(request.path) };
      }
      case OpCode.getChildren2:
        if (!this.znodes.has(request.path)) return NO_NODE;
        return { children: this.#childrenOf(request.path), stat: this.#statOf(request.path) };
      default:
        return UNIMPLEMENTED;
    }
  }

  #create({ path, data, flags }: CreateRequest): unknown {
    const parent = this.znodes.get(parentOf(path));
    if (parent === undefined) return NO_NODE;
    const isSequential = flags === 2 || flags === 3 || flags === 6;
    const actual = isSequential ? path + String(parent.sequence).padStart(10, '0') : path;
    if (this.znodes.has(actual)) return NODE_EXISTS;
    parent.sequence++;
    this.znodes.set(actual, this.#makeZnode(data, flags === 1 || flags === 3 ? this.sessionId : 0n));
    return { path: actual, stat: this.#statOf(actual) };
  }

  #change(request: MultiOp): unknown {
    const znode = this.znodes.get(request.path);
    if (znode === undefined) return NO_NODE;
    if ('version' in request && request.version !== -1 && request.version !== znode.version) return BAD_VERSION;
    if (request.op === OpCode.delete) {
      if (this.#childrenOf(request.path).length > 0) return NOT_EMPTY;
      this.znodes.delete(request.path);
      return null;
    }
    if (request.op !== OpCode.setData) return null;
    znode.data = request.data;
    znode.version++;
    znode.mzxid = ++this.#zxid;
    return this.#statOf(request.path);
  }

  #childrenOf(path: string): readonly string[] {
    return [...this.znodes.keys()].filter((other) => other !== '/' && parentOf(other) === path).map(nameOf);
  }

  #statOf(path: string): Stat {
    const znode = this.znodes.get(path)!;
    return makeStat({
      czxid: BigInt(znode.czxid),
      mzxid: BigInt(znode.mzxid),
      version: znode.version,
      ephemeralOwner: znode.owner,
      dataLength: znode.data?.length ?? 0,
      numChildren: this.#childrenOf(path).length,
    });
  }
}

/** A Stat with only a few relevant fields. */
export function makeStat(fields: Partial<Stat> = {}): Stat {
  const { toJSON } = Stat.prototype;
  return {
    toJSON,
    czxid: 0n,
    mzxid: 0n,
    pzxid: 0n,
    ctime: 0,
    mtime: 0,
    version: 0,
    cversion: 0,
    aversion: 0,
    ephemeralOwner: 0n,
    dataLength: 0,
    numChildren: 0,
    isEphemeral: (fields.ephemeralOwner ?? 0n) !== 0n,
    created: new Date(0),
    modified: new Date(0),
    ...fields,
  };
}

const NO_NODE = -101;
const BAD_VERSION = -103;
const NODE_EXISTS = -110;
const NOT_EMPTY = -111;
const UNIMPLEMENTED = -6;

/** A service that answers everything with the same result. */
export class ScriptedService extends FakeService {
  readonly #result: unknown;

  constructor(result: unknown, chroot = '') {
    super(chroot);
    this.#result = result;
  }

  override async request<T>(request: Request): Promise<T> {
    this.requests.push(request);
    return this.#result as T;
  }
}

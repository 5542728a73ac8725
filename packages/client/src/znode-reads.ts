import { OpCode } from '@meerkat/protocol';
import { type CallPlan, callRead } from './calls.ts';
import type { ClientRequester } from './client-requester.ts';
import type { ClientSession } from './client-session.ts';
import type { Codec } from './codec/codec.ts';
import { decodeAt } from './codec/decode-at.ts';
import { checkOptions } from './known-options.ts';
import { type Children, readZnode, type Znode } from './machine/replies.ts';
import type { Stat } from './machine/stat.ts';
import { OneShotWatch } from './one-shot.ts';
import type { Watched } from './operations.ts';
import type { ReadOptions } from './requester.ts';

type WatchedReadOptions = ReadOptions & { readonly watch?: boolean };

/** The three reads that may set a one-shot watch. A failed read sets none. */
export class ZnodeReads {
  readonly #session: ClientSession;
  readonly #requester: ClientRequester;
  readonly #relative: (path: string) => string;

  constructor(session: ClientSession, requester: ClientRequester) {
    this.#session = session;
    this.#requester = requester;
    this.#relative = (path) => requester.relative(path);
  }

  get<T>(path: string, options?: WatchedReadOptions & { readonly codec?: Codec<T> }): Promise<Znode<unknown>> {
    const codec = options?.codec;
    const watch = this.#watchOf('get', path, options);
    const read = codec === undefined ? readZnode : undefined;
    const made = this.#read<Znode<never>>('get', OpCode.getData, path, watch, options, { read });
    if (codec === undefined && watch === null) return made;
    return made.then(async ({ data, stat }) => {
      try {
        const znode = { data: codec === undefined ? data : await decodeAt(codec, data, path), stat };
        return watch === null ? znode : this.#watched(znode, path, watch);
      } catch (error) {
        if (watch !== null) this.#forget(path, watch);
        throw error;
      }
    });
  }

  exists(path: string, options?: WatchedReadOptions): Promise<unknown> {
    const watch = this.#watchOf('exists', path, options);
    const made = this.#read<Stat | null>('exists', OpCode.exists, path, watch, options, { whenMissing: null });
    return watch === null ? made : made.then((stat) => this.#watched({ stat }, path, watch));
  }

  children(path: string, options?: WatchedReadOptions): Promise<unknown> {
    const watch = this.#watchOf('children', path, options);
    const made = this.#read<Children>('children', OpCode.getChildren2, path, watch, options);
    return watch === null ? made : made.then((result) => this.#watched(result, path, watch));
  }

  #watchOf(operation: string, path: string, options: WatchedReadOptions | undefined): OneShotWatch | null {
    return options?.watch === true ? new OneShotWatch(this.#relative, { operation, path }) : null;
  }

  #watched<T extends object>(read: T, path: string, watch: OneShotWatch): T & Watched {
    return watch.addTo(read, () => this.#forget(path, watch));
  }

  #forget(path: string, watch: OneShotWatch): void {
    this.#session.session.watches.forgetOneShots(this.#requester.absolute(path, 'forget'), watch);
  }

  #read<T>(
    operation: 'get' | 'exists' | 'children',
    op: typeof OpCode.getData | typeof OpCode.exists | typeof OpCode.getChildren2,
    path: string,
    watch: OneShotWatch | null,
    options: ReadOptions | undefined,
    { read, whenMissing }: Pick<CallPlan, 'read' | 'whenMissing'> = {},
  ): Promise<T> {
    let absolute: string;
    try {
      checkOptions(operation, options, { operation, path });
      absolute = this.#requester.absolute(path, operation);
    } catch (error) {
      return Promise.reject(error);
    }
    const request = { op, path: absolute, watch: watch !== null };
    const plan = { request, about: { operation, path }, listener: watch, read, whenMissing };
    const made = callRead<T>(this.#session, plan, absolute, options);
    if (watch === null) return made;
    return made.catch((error: unknown) => {
      // The sync before a linearizable read may have been refused after the read has set its watch.
      this.#forget(path, watch);
      throw error;
    });
  }
}

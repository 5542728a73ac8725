import { EMPTY_BYTES, type MultiReadOp, OpCode } from '@meerkat/protocol';
import { BadReplyError } from './errors.ts';
import { checkOptions } from './known-options.ts';
import type { MultiResult, Znode } from './machine/replies.ts';
import { makeError } from './make-error.ts';
import type { About, ReadOptions, Requester } from './requester.ts';
import type { ZooKeeperError } from './zookeeper-error.ts';

/** The result of one of several reads. */
export type ReadResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: ZooKeeperError };

/** The values of reads: `get` returns a znode, `children` names. */
export type ReadValue = Znode | readonly string[];

/** One result for each value, in their order. */
export type ReadResults<Values extends readonly ReadValue[]> = {
  readonly [Index in keyof Values]: ReadResult<Values[Index]>;
};

/**
 * Several reads in one request, each of which succeeds or fails by itself. Needs a server of 3.6 or newer.
 *
 * @example
 * const [config, members] = await client.multiRead().get('/config').children('/members').run();
 * if (config.ok) console.log(config.value.stat.version);
 * else if (!(config.error instanceof NoNodeError)) throw config.error;
 */
export class MultiRead<Values extends readonly ReadValue[] = []> {
  readonly #requester: Requester;
  readonly #reads: { readonly op: MultiReadOp['op']; readonly about: About & { readonly path: string } }[] = [];

  constructor(requester: Requester) {
    this.#requester = requester;
  }

  /** Reads so far. */
  get size(): number {
    return this.#reads.length;
  }

  /** The data of a znode, and its Stat. */
  get(path: string): MultiRead<[...Values, Znode]> {
    return this.#add(OpCode.getData, 'get', path);
  }

  /** The names of a znode's children, in no particular order. */
  children(path: string): MultiRead<[...Values, readonly string[]]> {
    return this.#add(OpCode.getChildren, 'children', path);
  }

  /**
   * Sends the request.
   *
   * @returns one result for each read, in order
   * @throws BadArgumentsError when a path is invalid; errors of single reads are in the results
   */
  async run(options?: ReadOptions): Promise<ReadResults<Values>> {
    checkOptions('multiRead', options, RUN);
    const reads = this.#reads.slice();
    const ops = reads.map(({ op, about }) => ({ op, path: this.#requester.absolute(about.path, about.operation) }));
    const request = { op: OpCode.multiRead, ops };
    const results = await this.#requester.request<readonly MultiResult[]>(request, options, RUN);
    if (results.length !== reads.length) throw badReply(`${results.length} results of ${reads.length} reads`);
    return reads.map(({ op, about }, i) => resultOf(op, about, results[i])) as ReadResult<ReadValue>[] as ReadResults<
      readonly ReadValue[]
    > as ReadResults<Values>;
  }

  #add<Value extends ReadValue>(op: MultiReadOp['op'], operation: string, path: string): MultiRead<[...Values, Value]> {
    this.#reads.push({ op, about: { operation, path } });
    return this as unknown as MultiRead<[...Values, Value]>;
  }
}

const RUN: About = { operation: 'multiRead', path: null };

function resultOf(op: MultiReadOp['op'], about: About, result: MultiResult | undefined): ReadResult<ReadValue> {
  if (result?.ok === false) {
    return { ok: false, error: makeError({ kind: 'refused', code: result.code, server: null }, about) };
  }
  if (op === OpCode.getData && result !== undefined && result.stat !== null) {
    return { ok: true, value: { data: result.data ?? EMPTY_BYTES, stat: result.stat } };
  }
  if (op === OpCode.getChildren && result !== undefined && result.children !== null) {
    return { ok: true, value: result.children };
  }
  throw badReply(`operation ${op} has no result of its kind`);
}

function badReply(detail: string): BadReplyError {
  return new BadReplyError({ ...RUN, outcome: 'not-applied', detail });
}

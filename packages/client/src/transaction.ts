import { type MultiOp, OpCode } from '@meerkat/protocol';
import type { Data } from './data.ts';
import { BadReplyError, TransactionError } from './errors.ts';
import { checkOptions, type MethodWithOptions } from './known-options.ts';
import type { MultiResult } from './machine/replies.ts';
import type { Stat } from './machine/stat.ts';
import { makeError } from './make-error.ts';
import type { ExpectedVersion } from './operations.ts';
import type { About, CallOptions } from './requester.ts';
import {
  absoluteOfCreate,
  type CreateRequester,
  type CreateShape,
  makeCheck,
  makeCreate,
  makeDelete,
  makeSetData,
} from './write-requests.ts';

/** The result of a check or delete in a transaction: success. */
export type Done = null;

/** The result of a create in a transaction. */
export interface CreatedInTransaction {
  /** With the sequence number that the server has appended, if requested. */
  readonly path: string;
  /** null from servers up to 3.8.1, which do not send it here. */
  readonly stat: Stat | null;
}

export type TransactionResult = Done | CreatedInTransaction | Stat;

/**
 * Several writes, applied all or none.
 *
 * Methods add an operation and return the transaction, typed by the future results. Nothing is sent before `commit`.
 * When operations are added in a loop, the type is that of a list:
 *
 *     const transaction: Transaction<TransactionResult[]> = client.transaction();
 *     for (const path of paths) transaction.delete(path);
 *
 * @example
 * const [, created, stat] = await client
 *   .transaction()
 *   .check('/leader', { version: 3 })
 *   .create('/jobs/job-', 'data', { sequential: true })
 *   .set('/jobs', 'one more')
 *   .commit();
 */
export class Transaction<Results extends readonly TransactionResult[] = []> {
  readonly #requester: CreateRequester;
  readonly #operations: Operation[] = [];

  constructor(requester: CreateRequester) {
    this.#requester = requester;
  }

  /** Operations so far. */
  get size(): number {
    return this.#operations.length;
  }

  /** Refuses the transaction unless the znode exists, with this version if one is given. */
  check(path: string, expected: ExpectedVersion = {}): Transaction<[...Results, Done]> {
    return this.#add('check', 'transaction.check', expected, path, (about) =>
      makeCheck(this.#requester.absolute(path, about.operation), expected.version, about),
    );
  }

  create(path: string, data?: Data, shape: CreateShape = {}): Transaction<[...Results, CreatedInTransaction]> {
    return this.#add('create', 'transaction.create', shape, path, (about) =>
      makeCreate(absoluteOfCreate(this.#requester, path, shape, about.operation), data, shape, about),
    );
  }

  set(path: string, data: Data, expected: ExpectedVersion = {}): Transaction<[...Results, Stat]> {
    return this.#add('set', 'transaction.check', expected, path, (about) =>
      makeSetData(this.#requester.absolute(path, about.operation), data, expected.version, about),
    );
  }

  delete(path: string, expected: ExpectedVersion = {}): Transaction<[...Results, Done]> {
    return this.#add('delete', 'transaction.check', expected, path, (about) =>
      makeDelete(this.#requester.absolute(path, about.operation), expected.version, about),
    );
  }

  /**
   * Sends the transaction. May be called again after a failure of outcome 'not-applied', with the same operations.
   *
   * @returns one result for each operation, in order
   * @throws TransactionError when the service refuses one of them: none was applied; see its `index` and `cause`
   * @throws BadArgumentsError when one of them cannot be sent
   */
  async commit(options?: CallOptions): Promise<Results> {
    checkOptions('transaction', options, COMMIT);
    const operations = this.#operations.slice();
    const ops = operations.map(({ about, make }) => make(about));
    const about = subjectOf(operations);
    const results = await this.#requester.request<readonly MultiResult[]>({ op: OpCode.multi, ops }, options, about);
    throwIfRefused(results, operations);
    return ops.map((op, i) => this.#resultOf(op, results[i])) as readonly TransactionResult[] as Results;
  }

  #add<Result extends TransactionResult>(
    operation: string,
    method: MethodWithOptions,
    options: object,
    path: string,
    make: (about: About) => MultiOp,
  ): Transaction<[...Results, Result]> {
    // Invalid arguments are reported by `commit`: a chain of calls does not throw.
    this.#operations.push({
      about: { operation, path },
      make: (about) => {
        checkOptions(method, options, about);
        return make(about);
      },
    });
    return this as unknown as Transaction<[...Results, Result]>;
  }

  #resultOf(op: MultiOp, result: MultiResult | undefined): TransactionResult {
    if (result?.ok === true) {
      switch (op.op) {
        case OpCode.check:
        case OpCode.delete:
          return null;
        case OpCode.setData:
          if (result.stat !== null) return result.stat;
          break;
        default:
          if (result.path !== null) return { path: this.#requester.relative(result.path), stat: result.stat };
      }
    }
    throw badReply(`operation ${op.op} has no result of its kind`);
  }
}

interface Operation {
  readonly about: About;
  readonly make: (about: About) => MultiOp;
}

const COMMIT: About = { operation: 'transaction', path: null };

/** The subject of a request that fails as a whole: the znode that is written, if there is only one besides checks. */
function subjectOf(operations: readonly Operation[]): About {
  let path: string | null = null;
  for (const { about } of operations) {
    if (about.operation === 'check') continue;
    if (path !== null && path !== about.path) return COMMIT;
    path = about.path;
  }
  return path === null ? COMMIT : { ...COMMIT, path };
}

/**
 * A refused transaction has an error for each operation: 0 for those before the failed one, −2 (RUNTIMEINCONSISTENCY)
 * for those after it.
 */
function throwIfRefused(results: readonly MultiResult[], operations: readonly Operation[]): void {
  if (results.length !== operations.length) {
    throw badReply(`${results.length} results of ${operations.length} operations`);
  }
  for (const [index, result] of results.entries()) {
    if (result.ok || result.code === 0) continue;
    const abouts = operations.map(({ about }) => about);
    const about = abouts[index] ?? COMMIT;
    throw new TransactionError(index, abouts, makeError({ kind: 'refused', code: result.code, server: null }, about));
  }
}

function badReply(detail: string): BadReplyError {
  return new BadReplyError({ ...COMMIT, detail });
}

import { describe, expect, expectTypeOf, test } from 'vitest';
import { BadVersionError, NodeExistsError, TransactionError } from './errors.ts';
import type { MultiResult } from './machine/replies.ts';
import type { Stat } from './machine/stat.ts';
import { makeStat, ScriptedService } from './testing/fake-service.ts';
import { type CreatedInTransaction, Transaction, type TransactionResult } from './transaction.ts';

const done = (op: number): MultiResult & { ok: true } => ({
  ok: true,
  op,
  path: null,
  stat: null,
  data: null,
  children: null,
});
const created = (path: string, stat: Stat | null = makeStat()): MultiResult => ({ ...done(15), path, stat });
const refused = (code: number): MultiResult => ({ ok: false, code });

describe('a transaction', () => {
  test('sends its operations in order and returns a typed result for each', async () => {
    const service = new ScriptedService(
      [done(13), created('/app/jobs/job-0000000007'), { ...done(5), stat: makeStat({ version: 4 }) }, done(2)],
      '/app',
    );
    const results = await new Transaction(service)
      .check('/leader', { version: 3 })
      .create('/jobs/job-', 'data', { sequential: true, mode: 'ephemeral' })
      .set('/jobs', 'more')
      .delete('/old', { version: 0 })
      .commit();

    expectTypeOf(results).toEqualTypeOf<[null, CreatedInTransaction, Stat, null]>();
    expect(results).toMatchObject([null, { path: '/jobs/job-0000000007' }, { version: 4 }, null]);
    expect(service.requests).toMatchObject([
      {
        op: 14,
        ops: [
          { op: 13, path: '/app/leader', version: 3 },
          { op: 15, path: '/app/jobs/job-', flags: 3 },
          { op: 5, path: '/app/jobs', version: -1 },
          { op: 2, path: '/app/old', version: 0 },
        ],
      },
    ]);
  });

  test('without operations is allowed', async () => {
    const results = await new Transaction(new ScriptedService([])).commit();
    expectTypeOf(results).toEqualTypeOf<[]>();
    expect(results).toEqual([]);
  });

  test('built in a loop has a list of results', async () => {
    const service = new ScriptedService([done(2), done(2)]);
    const transaction: Transaction<TransactionResult[]> = new Transaction(service);
    for (const path of ['/a', '/b']) transaction.delete(path);
    expect(transaction.size).toBe(2);
    expectTypeOf(await transaction.commit()).toEqualTypeOf<TransactionResult[]>();
  });

  // A refused multi has header error 0 and an error per operation: 0 before the failed one, −2 after it.
  test('that is refused reports which operation failed and why', async () => {
    const service = new ScriptedService([refused(0), refused(-110), refused(-2)], '/app');
    const error = await new Transaction(service)
      .check('/a')
      .create('/b')
      .delete('/c')
      .commit()
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(TransactionError);
    expect(error).toMatchObject({
      name: 'TransactionError',
      code: 'TRANSACTIONFAILED',
      errorCode: -110,
      index: 1,
      path: '/b',
      outcome: 'not-applied',
      operations: [
        { operation: 'check', path: '/a' },
        { operation: 'create', path: '/b' },
        { operation: 'delete', path: '/c' },
      ],
    });
    expect((error as TransactionError).cause).toBeInstanceOf(NodeExistsError);
    expect((error as TransactionError).message).toBe(
      'transaction /b: nothing of it was done: operation 2 of 3, create /b: the znode exists already ' +
        '(NODEEXISTS -110) (TRANSACTIONFAILED -110)',
    );
  });

  test('reports the first operation when that one is refused', async () => {
    const service = new ScriptedService([refused(-103), refused(-2)]);
    const result = new Transaction(service).check('/a', { version: 1 }).delete('/a').commit();
    await expect(result).rejects.toMatchObject({ index: 0, cause: expect.any(BadVersionError) });
  });

  test('returns only the path from servers that send no Stat', async () => {
    const service = new ScriptedService([{ ...created('/a', null), op: 1 } as MultiResult]);
    expect(await new Transaction(service).create('/a').commit()).toEqual([{ path: '/a', stat: null }]);
  });

  test('with a bad argument rejects at commit, and nothing is sent', async () => {
    const service = new ScriptedService([]);
    const transaction = new Transaction(service).delete('/a').create('b');
    await expect(transaction.commit()).rejects.toMatchObject({ code: 'BADARGUMENTS', operation: 'create', path: 'b' });
    await expect(new Transaction(service).set('/a', '', { version: Number.NaN }).commit()).rejects.toMatchObject({
      code: 'BADARGUMENTS',
    });
    expect(service.requests).toEqual([]);
  });

  test('treats results of another number or kind as a bad reply', async () => {
    await expect(new Transaction(new ScriptedService([])).delete('/a').commit()).rejects.toMatchObject({
      code: 'BADREPLY',
      outcome: 'unknown',
    });
    await expect(new Transaction(new ScriptedService([done(2)])).set('/a', '').commit()).rejects.toMatchObject({
      code: 'BADREPLY',
    });
  });
});

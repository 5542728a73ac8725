import { expectTypeOf, test } from 'vitest';
import type { Client } from './client.ts';
import { json } from './codec/json.ts';
import { text } from './codec/text.ts';
import type { Operations } from './conveniences/operations.ts';
import { type Change, DATA_CODEC, type UpdateCodec, type UpdateOrCreateOptions } from './conveniences/update.ts';
import type { Data } from './data.ts';
import type { ZooKeeperCode } from './error-table.ts';
import type { AnyZooKeeperError, NoNodeError, TransactionError } from './errors.ts';
import type { Children, Created, Znode } from './machine/replies.ts';
import type { Stat } from './machine/stat.ts';
import type { WatchEvent } from './machine/watch-listener.ts';
import { MultiRead, type ReadResult } from './multi-read.ts';
import type { CreateOptions, VersionOptions } from './operations.ts';
import { type CreatedInTransaction, Transaction } from './transaction.ts';
import type { CreateRequester } from './write-requests.ts';
import type { ZooKeeperError } from './zookeeper-error.ts';

interface Config {
  readonly isOn: boolean;
}

// The compiler does the work; nothing here is called.
declare const client: Client;
declare const requester: CreateRequester;

test('a read has the type of its codec, and a watch only when it is asked for', () => {
  const reads = () => ({
    bytes: client.get('/a'),
    config: client.get('/a', { codec: json<Config>() }),
    watched: client.get('/a', { watch: true }),
    both: client.get('/a', { codec: text, watch: true, read: 'linearizable' }),
    stat: client.exists('/a'),
    watchedStat: client.exists('/a', { watch: true }),
    children: client.children('/a'),
  });
  type Reads = { [Name in keyof ReturnType<typeof reads>]: Awaited<ReturnType<typeof reads>[Name]> };
  expectTypeOf<Reads['bytes']>().toEqualTypeOf<Znode>();
  expectTypeOf<Reads['bytes']['data']>().toEqualTypeOf<Uint8Array>();
  expectTypeOf<Reads['config']['data']>().toEqualTypeOf<Config>();
  expectTypeOf<Reads['watched']['changed']>().toEqualTypeOf<Promise<WatchEvent>>();
  expectTypeOf<Reads['both']['data']>().toEqualTypeOf<string>();
  expectTypeOf<Reads['both']['changed']>().toEqualTypeOf<Promise<WatchEvent>>();
  expectTypeOf<Reads['bytes']>().not.toHaveProperty('changed');
  expectTypeOf<Reads['stat']>().toEqualTypeOf<Stat | null>();
  expectTypeOf<Reads['watchedStat']['stat']>().toEqualTypeOf<Stat | null>();
  expectTypeOf<Reads['children']>().toEqualTypeOf<Children>();
});

test('zxids and session ids are bigints, times are numbers', () => {
  expectTypeOf<Stat['czxid']>().toEqualTypeOf<bigint>();
  expectTypeOf<Stat['ephemeralOwner']>().toEqualTypeOf<bigint>();
  expectTypeOf<Stat['mtime']>().toEqualTypeOf<number>();
  expectTypeOf<Stat['modified']>().toEqualTypeOf<Date>();
  expectTypeOf<WatchEvent['zxid']>().toEqualTypeOf<bigint | null>();
});

test('invalid arguments do not compile', () => {
  expectTypeOf<{ mode: 'temporary' }>().not.toExtend<CreateOptions>();
  expectTypeOf<{ version: string }>().not.toExtend<VersionOptions>();
  expectTypeOf<number>().not.toExtend<Data>();
  expectTypeOf<{ create: true; sequential: true }>().not.toExtend<UpdateOrCreateOptions>();
  // @ts-expect-error: a number is no data without a codec
  () => client.set('/a', 7);
  // @ts-expect-error: a codec wants values of its type
  () => client.set('/a', { isOn: 1 }, { codec: json<Config>() });
});

test('a client implements the interface of the conveniences', () => {
  expectTypeOf<Client>().toExtend<Operations>();
});

test('a transaction knows the result of each of its operations', () => {
  const commit = () =>
    new Transaction(requester)
      .check('/a')
      .create('/b', 'x', { mode: 'container' })
      .set('/c', null)
      .delete('/d')
      .commit();
  expectTypeOf<Awaited<ReturnType<typeof commit>>>().toEqualTypeOf<[null, CreatedInTransaction, Stat, null]>();
  expectTypeOf<Created>().toExtend<CreatedInTransaction>();
});

test('a multi-read knows the result of each of its reads', () => {
  const run = () => new MultiRead(requester).children('/a').get('/b').run({ read: 'linearizable' });
  expectTypeOf<Awaited<ReturnType<typeof run>>>().toEqualTypeOf<
    readonly [ReadResult<readonly string[]>, ReadResult<Znode>]
  >();
});

test('an update sees null only where it may create', () => {
  expectTypeOf<Parameters<Change<Config, Config>>>().toEqualTypeOf<[Config, Stat]>();
  expectTypeOf<Parameters<Change<Config, Config, null>>>().toEqualTypeOf<[Config | null, Stat | null]>();
  expectTypeOf(DATA_CODEC).toEqualTypeOf<UpdateCodec<Uint8Array, Data>>();
  expectTypeOf(json<Config>()).toExtend<UpdateCodec<Config, Config>>();
});

test('the function of an update has the types of its codec', () => {
  const updates = () => ({
    bytes: client.update('/a', (data) => `${data.length}`),
    text: client.update('/a', (value) => `${value.trim()}!`, { codec: text, timeoutMs: 1000 }),
    config: client.update('/a', async (value) => ({ isOn: !value.isOn }), { codec: json<Config>() }),
    created: client.update('/a', (value) => value ?? 'first', { codec: text, create: true }),
  });
  expectTypeOf<Awaited<ReturnType<typeof updates>['bytes']>>().toEqualTypeOf<Znode>();
  expectTypeOf<Awaited<ReturnType<typeof updates>['text']>>().toEqualTypeOf<Znode<string>>();
  expectTypeOf<Awaited<ReturnType<typeof updates>['config']>>().toEqualTypeOf<Znode<Config>>();
  expectTypeOf<Awaited<ReturnType<typeof updates>['created']>>().toEqualTypeOf<Znode<string> | null>();
});

test('codes distinguish all error classes', () => {
  expectTypeOf<Exclude<ZooKeeperCode, AnyZooKeeperError['code']>>().toEqualTypeOf<'DECODEFAILED'>();
  expectTypeOf<Extract<AnyZooKeeperError, { code: 'NONODE' }>>().toEqualTypeOf<NoNodeError>();
  expectTypeOf<Extract<AnyZooKeeperError, { code: 'TRANSACTIONFAILED' }>>().toEqualTypeOf<TransactionError>();
  expectTypeOf<AnyZooKeeperError>().toExtend<ZooKeeperError>();
});

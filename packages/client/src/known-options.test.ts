import { TestServer } from '@meerkat/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Client } from './client.ts';
import { connect } from './connect.ts';
import { BadArgumentsError } from './errors.ts';
import type { MethodWithOptions } from './known-options.ts';
import { wrongOption } from './known-options.ts';

let server: TestServer;
let client: Client;

beforeAll(async () => {
  server = await TestServer.start();
  client = await connect(server.connectString);
});

afterAll(async () => {
  await client.close();
  await server[Symbol.asyncDispose]();
});

/** As in a JavaScript program. */
function untyped(options: unknown): never {
  return options as never;
}

it.each([
  [
    'create',
    { ephemeral: true },
    "there is no option 'ephemeral'; an ephemeral znode is created with mode: 'ephemeral'",
  ],
  ['create', { sequence: true }, "there is no option 'sequence'; it is called sequential"],
  ['connect', { sessionTimeout: 5 }, "there is no option 'sessionTimeout'; did you mean sessionTimeoutMs?"],
  ['get', { timeout: 5 }, "there is no option 'timeout'; it is called timeoutMs, in milliseconds"],
  ['transaction.check', { v: 1 }, "there is no option 'v'; did you mean version?"],
  ['whoAmI', { colour: 1 }, "there is no option 'colour'; there are signal, timeoutMs"],
  [
    'exists',
    { watch: () => {} },
    'the option watch is true or false, not a function; with true, `changed` of the result is a promise of the event',
  ],
  ['create', { sequential: 1 }, 'the option sequential is true or false, not a number'],
  ['set', 3, 'options are an object with some of signal, timeoutMs, version, codec, not 3'],
  ['delete', null, 'options are an object with some of signal, timeoutMs, version, not null'],
] as const)('%s with %o is refused with advice', (method, options, advice) => {
  expect(wrongOption(method as MethodWithOptions, untyped(options))).toBe(advice);
});

it('an option whose value is undefined is accepted', () => {
  expect(wrongOption('create', { mode: undefined })).toBeNull();
  expect(wrongOption('create', undefined)).toBeNull();
});

it('a create with an unknown option creates nothing', async () => {
  const refused = client.create('/a', '', untyped({ ephemeral: true }));
  await expect(refused).rejects.toThrow(BadArgumentsError);
  await expect(refused).rejects.toThrow("create /a: the arguments are not acceptable: there is no option 'ephemeral'");
  expect(await client.exists('/a')).toBeNull();
});

const OPTIONS = untyped({ x: 1 });

/** By its name in errors. */
const CALLS: { readonly [Method in MethodWithOptions]: () => Promise<unknown> } = {
  connect: () => connect(server.connectString, OPTIONS),
  get: () => client.get('/', OPTIONS),
  exists: () => client.exists('/', OPTIONS),
  children: () => client.children('/', OPTIONS),
  descendantCount: () => client.descendantCount('/', OPTIONS),
  hasLeasedAnswers: () => client.hasLeasedAnswers(OPTIONS),
  ephemerals: () => client.ephemerals('/', OPTIONS),
  getAcl: () => client.getAcl('/', OPTIONS),
  create: () => client.create('/a', '', OPTIONS),
  set: () => client.set('/', '', OPTIONS),
  delete: () => client.delete('/a', OPTIONS),
  setAcl: () => client.setAcl('/', [], OPTIONS),
  createParents: () => client.createParents('/a/b', '', OPTIONS),
  ensurePath: () => client.ensurePath('/a', OPTIONS),
  createProtected: () => client.createProtected('/a', '', OPTIONS),
  setIdempotent: () => client.setIdempotent('/', '', OPTIONS),
  deleteIdempotent: () => client.deleteIdempotent('/a', OPTIONS),
  update: () => client.update('/', () => '', OPTIONS),
  deleteRecursive: () => client.deleteRecursive('/a', OPTIONS),
  'transaction.check': () => client.transaction().check('/', OPTIONS).commit(),
  'transaction.create': () => client.transaction().create('/a', '', OPTIONS).commit(),
  transaction: () => client.transaction().check('/').commit(OPTIONS),
  multiRead: () => client.multiRead().get('/').run(OPTIONS),
  retry: () => client.retry(OPTIONS, () => Promise.resolve(), OPTIONS),
  sync: () => client.sync('/', OPTIONS),
  whoAmI: () => client.whoAmI(OPTIONS),
  config: () => client.config(OPTIONS),
  reconfig: () => client.reconfig(OPTIONS),
  watch: () => client.watch('/', OPTIONS).ready,
  observe: () => client.observe('/', undefined as never, OPTIONS).ready,
  checkWatches: () => client.checkWatches('/', 'data', OPTIONS),
  removeWatches: () => client.removeWatches('/', 'data', OPTIONS),
  whenConnected: () => client.whenConnected(OPTIONS),
  moveTo: () => client.moveTo(null, OPTIONS),
  close: () => client.close(OPTIONS),
  detach: () => client.detach(OPTIONS),
};

it.each<[string, () => Promise<unknown>]>([
  ...Object.entries(CALLS),
  ['a set of a transaction', () => client.transaction().set('/', '', OPTIONS).commit()],
  ['a delete of a transaction', () => client.transaction().delete('/a', OPTIONS).commit()],
])('%s refuses an option that it does not have', async (_name, call) => {
  await expect(call()).rejects.toThrow("there is no option 'x'");
});

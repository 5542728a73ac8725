import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from './harness/peers.ts';
import { ConnectionClosed, Op, RawClient } from './harness/raw-client.ts';
import { record } from './harness/record-builder.ts';
import { RecordReader } from './harness/record-reader.ts';
import { SERVER_KINDS, ServerProcess } from './harness/server-process.ts';

const PROVIDER = 'org.apache.zookeeper.server.auth';
const ALL = 31;

type Id = readonly [scheme: string, id: string];

/* Both servers get the same requests, and their answers are compared as text. */
describeWith(['apache'], 'the schemes ensemble and key', () => {
  const servers: ServerProcess[] = [];

  beforeAll(async () => {
    const config = {
      'authProvider.1': `${PROVIDER}.EnsembleAuthenticationProvider`,
      'authProvider.2': `${PROVIDER}.KeyAuthenticationProvider`,
      ensembleAuthName: 'blue, green',
    };
    servers.push(...(await Promise.all(SERVER_KINDS.map((kind) => ServerProcess.start(kind, { config })))));
  });
  afterAll(() => Promise.all(servers.map((server) => server.dispose())));

  /** The answer of both servers, which must be equal. */
  async function both(ask: (client: RawClient) => Promise<unknown>): Promise<unknown> {
    const [apache, meerkat] = await Promise.all(
      servers.map(async ({ port }) => {
        const client = await RawClient.connect(port);
        try {
          return await ask(client);
        } finally {
          if (!(await isGone(client))) await client.close();
        }
      }),
    );
    expect(meerkat).toEqual(apache);
    return meerkat;
  }

  /** The answer to an auth packet, the state of the connection, and the identities known to the server. */
  async function authenticate(client: RawClient, scheme: string, auth: string | null): Promise<readonly string[]> {
    const body = record().int(0).ustring(scheme).buffer(auth).build();
    const reply = await client.request(Op.auth, body, -4).catch((error: unknown) => error);
    if (reply instanceof ConnectionClosed) return ['closed without an answer'];
    const { error } = reply as { readonly error: number };
    if (await isGone(client)) return [String(error), 'closed'];
    const reader = new RecordReader((await client.demand(Op.whoAmI)).body);
    const ids = Array.from({ length: reader.int() }, () => `${reader.ustring()}:${reader.ustring()}`);
    return [String(error), ...ids.sort()];
  }

  /** Whether the connection is closed. */
  async function isGone(client: RawClient): Promise<boolean> {
    return await client.request(Op.ping, Buffer.alloc(0), -2).then(
      () => false,
      () => true,
    );
  }

  async function create(client: RawClient, path: string, data: string, [scheme, id]: Id): Promise<number> {
    const acl = record().int(1).int(ALL).ustring(scheme).ustring(id).build();
    const body = Buffer.concat([record().ustring(path).buffer(data).build(), acl, record().int(0).build()]);
    return (await client.request(Op.create, body)).error;
  }

  test.each([
    ['blue', '0'],
    ['green', '0'],
    ['', '0'],
    [null, '0'],
    ['red', 'closed without an answer'],
    ['BLUE', 'closed without an answer'],
    [' blue', 'closed without an answer'],
    ['blue, green', 'closed without an answer'],
  ])('a client for the ensemble %j is treated as by Apache', async (name, answer) => {
    expect(await both((client) => authenticate(client, 'ensemble', name))).toEqual(expect.arrayContaining([answer]));
  });

  test('an ACL with the scheme ensemble is invalid', async () => {
    expect(await both((client) => create(client, '/of-ensemble', '', ['ensemble', 'blue']))).toBe(-114);
  });

  const OFFERS = ['21', '20', '7', '0', '-14', '+14', ' 14', '007', '7.0', '2147483647', '2147483648', 'x', '', null];

  test('without the znode /key every key is accepted', async () => {
    for (const offer of OFFERS) await both((client) => authenticate(client, 'key', offer));
    expect(await both((client) => authenticate(client, 'key', 'x'))).toEqual(['0', 'ip:127.0.0.1', 'key:']);
  });

  test.each(['7', '+7', '-7', '0', '1', '', 'x', ' 7', '2147483648'])(
    'with %j in /key the same keys are accepted as by Apache',
    async (key) => {
      const path = '/key';
      const remove = record().ustring(path).int(-1).build();
      await both((client) => create(client, path, key, ['world', 'anyone']));
      for (const offer of OFFERS) {
        const said = await both((client) => authenticate(client, 'key', offer));
        if (key === '7')
          expect(said).toContain(['21', '7', '0', '-14', '+14', '007'].includes(offer ?? '') ? '0' : '-115');
      }
      await both(async (client) => (await client.request(Op.delete, remove)).error);
    },
  );

  test('an ACL with the scheme key grants access as in Apache', async () => {
    const read = record().ustring('/of-key').bool(false).build();
    for (const id of ['', 'x']) {
      await both((client) => create(client, `/of-key${id}`, '', ['key', id]));
      const asked = await both(async (client) => [
        (await client.request(Op.getData, record().ustring(`/of-key${id}`).bool(false).build())).error,
        ...(await authenticate(client, 'key', '1')),
        (await client.request(Op.getData, record().ustring(`/of-key${id}`).bool(false).build())).error,
      ]);
      expect(asked).toEqual([-102, '0', 'ip:127.0.0.1', 'key:', id === '' ? 0 : -102]);
    }
    expect(await both(async (client) => (await client.request(Op.getData, read)).error)).toBe(-102);
  });
});

/** Requests whose txns would exceed the size limit, how the server handles them, and that it can restart. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectCrowd, countChildren, createRequest } from './harness/crowd.ts';
import { describeWith, isInstalled } from './harness/peers.ts';
import { Op, RawClient } from './harness/raw-client.ts';
import { record } from './harness/record-builder.ts';
import { RecordReader } from './harness/record-reader.ts';
import { ServerProcess } from './harness/server-process.ts';

const MARSHALLING_ERROR = -5;
const INVALID_ACL = -114;
const NO_NODE = -101;
/** The largest log entry that Apache's servers read: twice `jute.maxbuffer`. */
const TXN_BYTES_MAX = 2_097_150;

describe('a server with requests for txns of more than 2 MB', () => {
  let server: ServerProcess;
  const written: string[] = [];

  beforeAll(async () => {
    server = await ServerProcess.start('meerkat');
  });
  afterAll(() => server?.dispose());

  /** Writes between the attacks are acknowledged, and must exist at the end. */
  async function write(client: RawClient): Promise<void> {
    const path = `/written-${written.length}`;
    await client.demand(Op.create, createRequest(path));
    written.push(path);
  }

  async function expectWritten(): Promise<void> {
    const client = await RawClient.connect(server.port);
    for (const path of written) await client.demand(Op.exists, record().ustring(path).bool(false).build());
    await write(client);
    await client.close();
  }

  const auths = (count: number) => Array.from({ length: count }, (_, i) => ({ perms: i + 1, scheme: 'auth', id: '' }));

  test('by 40,000 auth entries for 40 identities refuses them, and restarts with all acknowledged writes', async () => {
    const client = await RawClient.connect(server.port);
    await write(client);
    for (let i = 0; i < 40; i++) await client.auth('digest', `user-${i}:secret`);
    expect((await client.request(Op.create, createRequest('/a', 0, auths(40_000)))).error).toBe(INVALID_ACL);
    // Counted as stored: 110 entries for 40 identities are more than 4,096.
    expect((await client.request(Op.create, createRequest('/a', 0, auths(110)))).error).toBe(INVALID_ACL);
    expect((await client.request(Op.exists, record().ustring('/a').bool(false).build())).error).toBe(NO_NODE);
    await client.demand(Op.create, createRequest('/a', 0, auths(30)));
    // Few entries, but more bytes than a txn may have.
    const long = await RawClient.connect(server.port);
    for (let i = 0; i < 40; i++) await long.auth('digest', `${'x'.repeat(1000)}-${i}:secret`);
    expect((await long.request(Op.create, createRequest('/b', 0, auths(100)))).error).toBe(MARSHALLING_ERROR);
    expect((await long.request(Op.exists, record().ustring('/b').bool(false).build())).error).toBe(NO_NODE);
    await long.close();
    const set = record().ustring('/a').acls(auths(110)).int(-1).build();
    expect((await client.request(Op.setACL, set)).error).toBe(INVALID_ACL);
    const list = new RecordReader((await client.demand(Op.getACL, record().ustring('/a').build())).body).acls();
    expect(list).toHaveLength(30 * 40);
    await write(client);
    await server.restart();
    await expectWritten();
  });

  test('by more identities than a connection may have closes that connection', async () => {
    const client = await RawClient.connect(server.port);
    const add = (i: number) => client.request(Op.auth, record().int(0).ustring('digest').buffer(`u${i}:x`).build(), -4);
    let added = 0;
    while ((await add(added)).error === 0) added++;
    // The address counts too.
    expect(added).toBe(99);
    await client.closed;
    await expectWritten();
  });

  test.each([
    { what: 'with 12,000 ephemerals of 220 bytes', count: 12_000, pathBytes: 220 },
    { what: 'with 30,000 ephemerals of 2,300 bytes', count: 30_000, pathBytes: 2300 },
  ])('by the end of a session $what deletes all of them, and restarts', async (crowd) => {
    const other = await RawClient.connect(server.port, { timeoutMs: 60_000 });
    const parent = `/of-${crowd.count}`;
    await other.demand(Op.create, createRequest(parent));
    const client = await connectCrowd(server.port, parent, crowd);
    expect(crowd.count * crowd.pathBytes).toBeGreaterThan(TXN_BYTES_MAX);
    expect(await countChildren(other, parent)).toBe(crowd.count);
    await client.demand(Op.closeSession);
    expect(await countChildren(other, parent)).toBe(0);
    await write(other);
    await server.restart();
    await expectWritten();
    const again = await RawClient.connect(server.port);
    expect(await countChildren(again, parent)).toBe(0);
    await expect(RawClient.connect(server.port, client.credentials)).rejects.toThrow(/expired or unknown/);
    await again.close();
  });

  test.skipIf(!isInstalled('apache'))("leaves a directory that Apache's server opens", async () => {
    await server.restart('apache');
    await expectWritten();
    await server.restart('meerkat');
    await expectWritten();
  });
});

describeWith(['apache'], "a directory in which Apache's server has written a txn of more than 2 MB", () => {
  test('is opened by ours, with all acknowledged writes', async () => {
    await using server = await ServerProcess.start('apache');
    const other = await RawClient.connect(server.port);
    await other.demand(Op.create, createRequest('/crowd'));
    const client = await connectCrowd(server.port, '/crowd', { count: 1300, pathBytes: 2300 });
    await client.demand(Op.closeSession);
    await other.demand(Op.create, createRequest('/after'));
    await server.restart('meerkat');
    const again = await RawClient.connect(server.port);
    await again.demand(Op.exists, record().ustring('/after').bool(false).build());
    expect(await countChildren(again, '/crowd')).toBe(0);
    await again.close();
  });
});

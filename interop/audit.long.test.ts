import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from './harness/peers.ts';
import { Op, RawClient } from './harness/raw-client.ts';
import { record } from './harness/record-builder.ts';
import { SERVER_KINDS, type ServerKind, ServerProcess } from './harness/server-process.ts';

const OPEN = record().int(1).int(31).ustring('world').ustring('anyone').build();
const create = (path: string, flags: number): Buffer => record().ustring(path).buffer('x').raw(OPEN).int(flags).build();
const header = (type: number): Buffer => record().int(type).bool(false).int(-1).build();
const END = record().int(-1).bool(true).int(-1).build();
const multi = (...parts: readonly (readonly [number, Buffer])[]): Buffer => {
  const joined = parts.reduce((whole, [type, body]) => whole.raw(header(type)).raw(body), record());
  return joined.raw(END).build();
};
const path = (name: string, version = -1): Buffer => record().ustring(name).int(version).build();
const setData = (name: string): Buffer => record().ustring(name).buffer('y').int(-1).build();

/** Requests with one audit line each, or none. */
const REQUESTS: readonly (readonly [type: number, body: Buffer])[] = [
  [Op.create, create('/a', 0)],
  [Op.create2, create('/a/s-', 2)],
  [Op.create, create('/a', 0)],
  [Op.createContainer, create('/c', 4)],
  [Op.create, create('/no/parent', 0)],
  [Op.setData, setData('/a')],
  [Op.setData, setData('/none')],
  [Op.setACL, record().ustring('/a').raw(OPEN).int(-1).build()],
  [Op.setACL, record().ustring('/none').raw(OPEN).int(-1).build()],
  [Op.delete, path('/c')],
  [Op.delete, path('/none')],
  [Op.multi, multi([1, create('/m', 0)], [5, setData('/m')], [13, path('/m', 1)], [2, path('/m')])],
  [Op.multi, multi([1, create('/m', 0)], [2, path('/none')])],
  [Op.reconfig, record().ustring(null).ustring(null).ustring(null).long(-1n).build()],
  [Op.exists, record().ustring('/a').bool(false).build()],
  [Op.create, create('/e', 1)],
];

/** Apache's server keeps the identities of a connection unordered. */
function sortUsers(line: string): string {
  return line.replace(/user=([^\t]*)/, (_, users: string) => `user=${users.split(',').sort().join(',')}`);
}

describeWith(['apache'], 'the audit log', () => {
  const servers = new Map<ServerKind, ServerProcess>();

  beforeAll(async () => {
    for (const kind of SERVER_KINDS) {
      servers.set(kind, await ServerProcess.start(kind, { config: { 'audit.enable': true }, logs: true }));
    }
  });
  afterAll(() => Promise.all([...servers.values()].map((server) => server.dispose())));

  /** The lines of this session, without values that differ between servers. */
  async function audit(server: ServerProcess): Promise<string[]> {
    const client = await RawClient.connect(server.port);
    await client.auth('digest', 'ann:secret');
    for (const [type, body] of REQUESTS) await client.request(type, body);
    const session = `session=0x${client.sessionId.toString(16)}\t`;
    await client.close();
    const lines = (): string[] => server.output.split('\n').filter((line) => line.includes(session));
    await expect.poll(lines).toContainEqual(expect.stringContaining('ephemeralZNodeDeletion'));
    return lines().map((line) => sortUsers(line.slice(line.indexOf(session)).replace(session, '')));
  }

  test("has the same lines as Apache's", async () => {
    const [apache, meerkat] = await Promise.all(SERVER_KINDS.map((kind) => audit(servers.get(kind)!)));
    expect(meerkat).toEqual(apache);
    expect(meerkat?.length).toBeGreaterThan(15);
  });

  test('has the ops of a multi that takes several turns, and the request after it', async () => {
    await using server = await ServerProcess.start('meerkat', { config: { 'audit.enable': true } });
    const client = await RawClient.connect(server.port);
    const parts = Array.from({ length: 5000 }, (_, i) => [1, create(`/many-${i}`, 0)] as const);
    const answers = [client.request(Op.multi, multi(...parts)), client.request(Op.create, create('/behind', 0))];
    for (const answer of answers) expect((await answer).error).toBe(0);
    const session = `session=0x${client.sessionId.toString(16)}\t`;
    await client.close();
    // The harness keeps the last 200,000 characters.
    await expect.poll(() => server.output).toContain('znode=/behind\t');
    const lines = server.output.split('\n').filter((line) => line.includes(session));
    expect(lines.at(-2)).toContain('znode=/many-4999\t');
    expect(lines.at(-1)).toContain('znode=/behind\t');
  });

  test('begins with the start of the server and ends with its stop', async () => {
    for (const server of servers.values()) {
      await server.stop();
      expect(server.output, server.kind).toMatch(/user=\S+\toperation=serverStart\tresult=success/);
      expect(server.output, server.kind).toMatch(/user=\S+\toperation=serverStop\tresult=invoked/);
    }
  });
});

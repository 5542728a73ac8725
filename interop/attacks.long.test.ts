/** A client that overloads a server: the server survives, and other clients are served. */
import { execFile, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Op, RawClient } from './harness/raw-client.ts';
import { type RecordBuilder, record } from './harness/record-builder.ts';
import { RecordReader } from './harness/record-reader.ts';
import { ServerProcess } from './harness/server-process.ts';

const MARSHALLING_ERROR = -5;
const MIB = 1024 * 1024;

/** The second one serves its clients in an I/O thread. */
let servers: readonly ServerProcess[] = [];
let server: ServerProcess;

beforeAll(async () => {
  servers = await Promise.all(
    [{}, { clientThreads: 1 }].map((config) => ServerProcess.start('meerkat', { config, hasAdmin: true })),
  );
  for (server of servers) await prepare();
  server = servers[0]!;
});

async function prepare(): Promise<void> {
  await promisify(execFile)(process.execPath, [ATTACKER, 'fill', String(server.port), '-', String(ZNODES)]);
  const client = await RawClient.connect(server.port);
  await client.demand(Op.create, openCreate('/witness').build());
  await client.close();
}

afterAll(() => Promise.all(servers.map((each) => each.dispose())));

function openCreate(path: string, data: Uint8Array = Buffer.alloc(0)): RecordBuilder {
  return record().ustring(path).buffer(data).int(1).int(31).ustring('world').ustring('anyone').int(0);
}

function multiHeader(op: number): RecordBuilder {
  return record().int(op).bool(false).int(-1);
}

function endOfMulti(): Buffer {
  return record().int(-1).bool(true).int(-1).build();
}

function multiReadOf(paths: readonly string[]): Buffer {
  const parts = paths.map((path) => multiHeader(Op.getData).ustring(path).bool(false).build());
  return Buffer.concat([...parts, endOfMulti()]);
}

interface Attack {
  readonly name: string;
  /** Number of replies of the attacker, and by error code. */
  readonly replies: number | null;
  readonly errors: Readonly<Record<string, number>>;
  readonly fault: string | null;
}

/**
 * Runs an attack of the benchmark in a separate process, at a tenth of its size, while another client sends requests.
 *
 * @returns the attacker's result, and the peak memory of the server
 */
async function attack(name: string): Promise<{ result: Attack; residentBytes: number }> {
  const attacker = spawn(
    process.execPath,
    [ATTACKER, name, ...[server.port, 0.1, ZNODES, server.adminPort].map(String)],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  try {
    const lines = createInterface({ input: attacker.stdout })[Symbol.asyncIterator]();
    expect((await lines.next()).value).toBe('ready');
    const witness = await RawClient.connect(server.port);
    let residentBytes = 0;
    attacker.stdin.write('b');
    for (let i = 0; i < WITNESSED; i++) {
      await witness.demand(Op.setData, record().ustring('/witness').buffer('x').int(i).build());
      await witness.demand(Op.exists, record().ustring('/witness').bool(false).build());
      residentBytes = Math.max(residentBytes, server.residentBytes());
    }
    await witness.demand(Op.delete, record().ustring('/witness').int(-1).build());
    await witness.demand(Op.create, openCreate('/witness').build());
    await witness.close();
    attacker.stdin.write('e');
    const result = JSON.parse((await lines.next()).value ?? '{"fault":"it ended"}') as Attack;
    return { result, residentBytes };
  } finally {
    attacker.kill('SIGKILL');
  }
}

const ATTACKER = fileURLToPath(new URL('../bench/attacks/attacker.mjs', import.meta.url));
/** Number of requests of the other client. */
const WITNESSED = 50;
const ZNODES = 100_000;

describe('a multiRead', () => {
  test('of 5,000 times 1 MB is refused each time, and the log names the limit', async () => {
    const client = await RawClient.connect(server.port);
    await client.demand(Op.create, openCreate('/big', Buffer.alloc(1_000_000)).build());
    const body = multiReadOf(new Array<string>(5000).fill('/big'));
    expect(body.length).toBeLessThan(110_000);
    expect(await client.request(Op.multiRead, body)).toMatchObject({ error: MARSHALLING_ERROR, body: Buffer.alloc(0) });
    await expect
      .poll(() => server.output)
      .toMatch(/refused a request: .*5000 operations.*16777216 bytes \(multiRead\.maxReplyBytes\)/);
    const before = server.residentBytes();
    const { result, residentBytes } = await attack('multiRead of 5,000 × 1 MB');
    expect(result.replies).toBeGreaterThan(0);
    expect(result.errors).toMatchObject({ [MARSHALLING_ERROR]: result.replies });
    expect(residentBytes - before).toBeLessThan(256 * MIB);
    await client.close();
  });

  test('within the limit is answered completely, in many pieces', async () => {
    const client = await RawClient.connect(server.port);
    const { body } = await client.demand(Op.multiRead, multiReadOf(new Array<string>(15).fill('/big')));
    const reader = new RecordReader(body);
    for (let i = 0; i < 15; i++) {
      expect([reader.int(), reader.bool(), reader.int()]).toEqual([Op.getData, false, 0]);
      expect(reader.buffer()?.length).toBe(1_000_000);
      expect(reader.stat().dataLength).toBe(1_000_000);
    }
    expect([reader.int(), reader.bool(), reader.int(), reader.remaining]).toEqual([-1, true, -1, 0]);
    await client.close();
  });

  test('of many clients in parallel returns the right data to each, at both servers', async () => {
    for (const { port } of servers) {
      const writer = await RawClient.connect(port);
      const letters = [0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68];
      const dataOf = (k: number): Buffer => Buffer.alloc(300_000 + k * 90_001, letters[k]);
      for (const k of letters.keys()) await writer.demand(Op.create, openCreate(`/letters-${k}`, dataOf(k)).build());
      const ask = async (first: number): Promise<void> => {
        const client = await RawClient.connect(port);
        for (let round = 0; round < 2; round++) {
          const asked = Array.from({ length: 8 }, (_, i) => (first * 3 + round + i * 5) % letters.length);
          // Two in flight: the second is read while the first may still be pending.
          const body = multiReadOf(asked.map((k) => `/letters-${k}`));
          const replies = await Promise.all([client.demand(Op.multiRead, body), client.demand(Op.multiRead, body)]);
          for (const reply of replies) {
            const reader = new RecordReader(reply.body);
            for (const k of asked) {
              reader.int();
              reader.bool();
              reader.int();
              expect(reader.buffer()?.equals(dataOf(k))).toBe(true);
              reader.stat();
            }
          }
        }
        await client.close();
      };
      await Promise.all(Array.from({ length: 6 }, (_, i) => ask(i)));
      await writer.close();
    }
  });
});

test.for(
  [
    'getChildren of 1,000,000',
    'getAllChildrenNumber of 1,000,000',
    'getEphemerals by prefix of 200,000',
    'end of sessions with 20,000 ephemerals',
    'setWatches, 1 MB of paths',
    'a connection with 1,000,000 watches dropped',
    'create with `auth` entries of 90 identities',
    'create with 1 MB of `ip` entries',
    'reads behind a long ACL',
    'writes to a path of 4,000 levels, a recursive watch at each',
    'a quota of 1,000,000 znodes, set again and again',
    'exists of paths of 1 MB',
    'multi, 1 MB of creates and deletes',
    '100 connections, a multiRead of 10 × 1 MB each',
    'admin port: 64 connections that ask for everything, without end',
  ].map((name, i) => [name, i % 2] as const),
)('others are served beside: %s, I/O threads %i', async ([name, threads]) => {
  server = servers[threads]!;
  const { result } = await attack(name);
  expect(result).toMatchObject({ fault: null });
  expect(result.replies ?? 1).toBeGreaterThan(0);
});

test('200,000 watches of a closed connection do not fire; those that its session sets again fire once', async () => {
  const client = await RawClient.connect(server.port);
  const paths = Array.from({ length: 200_000 }, (_, i) => `/watched-${i}`);
  for (let i = 0; i < paths.length; i += 40_000) {
    await client.demand(Op.setWatches, existWatchesOf(paths.slice(i, i + 40_000)), -8);
  }
  client.destroy();
  const again = await RawClient.connect(server.port, client.credentials);
  await again.demand(Op.setWatches, existWatchesOf(['/watched-1', '/watched-2']), -8);
  const writer = await RawClient.connect(server.port);
  for (const path of ['/watched-1', '/watched-3']) await writer.demand(Op.create, openCreate(path).build());
  await again.demand(Op.exists, record().ustring('/watched-3').bool(false).build());
  expect(again.notifications.map(({ path }) => path)).toEqual(['/watched-1']);
  while (!(await server.fourLetterWord('wchs')).startsWith('1 connections watching 1 paths\nTotal watches:1'));
  await writer.demand(Op.create, openCreate('/watched-2').build());
  await again.demand(Op.exists, record().ustring('/watched-2').bool(false).build());
  expect(again.notifications.map(({ path }) => path)).toEqual(['/watched-1', '/watched-2']);
  await again.close();
  await writer.close();
});

function existWatchesOf(paths: readonly string[]): Buffer {
  const body = record()
    .long(2n ** 62n)
    .int(0)
    .int(paths.length);
  for (const path of paths) body.ustring(path);
  return body.int(0).build();
}

test('names of 100,000 children are returned completely', async () => {
  const client = await RawClient.connect(server.port);
  const { body } = await client.demand(Op.getChildren, record().ustring('/many/flat').bool(false).build());
  const reader = new RecordReader(body);
  expect(reader.int()).toBe(ZNODES);
  expect(new Set(Array.from({ length: ZNODES }, () => reader.ustring())).size).toBe(ZNODES);
  const { body: count } = await client.demand(Op.getAllChildrenNumber, record().ustring('/many').build());
  expect(new RecordReader(count).int()).toBe(ZNODES + 1);
  await client.close();
});

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@meerkat/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RunningCommand } from './cli/harness.ts';
import { fill } from './data-directory/workload.ts';
import { CLASS_PATH, SHORT_JAVA } from './harness/java.ts';
import { describeWith } from './harness/peers.ts';
import { type ServerKind, ServerProcess } from './harness/server-process.ts';

/** Class path of Apache's tools. */
const TOOL_PATH = `${CLASS_PATH}:/usr/share/java/commons-cli.jar:/usr/share/java/slf4j-nop.jar`;
const LOG_TOOL = 'org.apache.zookeeper.server.persistence.TxnLogToolkit';
const SNAPSHOT_TOOL = 'org.apache.zookeeper.server.SnapshotFormatter';

function java(mainClass: string, ...args: readonly string[]): string {
  const { stdout, stderr, status } = spawnSync('java', [...SHORT_JAVA, '-cp', TOOL_PATH, mainClass, ...args], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(`${mainClass} ended with ${status}: ${stderr}`);
  return stdout;
}

async function meerkat(...args: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await new RunningCommand([...args], {}, false).ended;
  expect({ args, exitCode, stderr }).toEqual({ args, exitCode: 0, stderr: '' });
  return stdout;
}

function filesOf(directory: string, prefix: string): readonly string[] {
  const below = join(directory, 'version-2');
  return readdirSync(below)
    .filter((name) => name.startsWith(prefix))
    .toSorted((a, b) => Number.parseInt(a.split('.')[1] ?? '', 16) - Number.parseInt(b.split('.')[1] ?? '', 16))
    .map((name) => join(below, name));
}

describeWith(['apache'], 'the files of a server, read by our commands and by Apache’s tools', () => {
  describe.each<ServerKind>(['apache', 'meerkat'])('%s', (kind) => {
    let server: ServerProcess;

    beforeAll(async () => {
      server = await ServerProcess.start(kind, { config: { snapCount: 200, preAllocSize: 64 } });
      await fill(server.port, '/filled');
      await server.stop();
    });
    afterAll(() => server.dispose());

    test('log dump has the sessions, cxids, zxids, types and paths of TxnLogToolkit', async () => {
      let count = 0;
      for (const path of filesOf(server.dataDirectory, 'log.')) {
        const theirs = [
          ...java(LOG_TOOL, '-d', path).matchAll(/ session 0x(\w+) cxid 0x(\w+) zxid 0x(\w+) (\w+)(.*)/g),
        ];
        const ours = (await meerkat('log', 'dump', path, '-o', 'ndjson'))
          .trimEnd()
          .split('\n')
          .filter((line) => line !== '');
        const dumped = ours.map((line) => JSON.parse(line) as Dumped);
        expect(dumped.map(({ session, cxid, zxid }) => [session, (cxid >>> 0).toString(16), zxid])).toEqual(
          theirs.map(([, session, cxid, zxid]) => [`0x${session}`, cxid, `0x${zxid}`]),
        );
        for (const [index, { type, txn }] of dumped.entries()) {
          const [, , , , theirType = '', theirText = ''] = theirs[index] ?? [];
          // Theirs has no name for some newer types.
          if (!/unknown/.test(theirType)) expect(theirType.toLowerCase()).toBe(type.toLowerCase());
          if (txn.path !== undefined && !txn.path.includes(',')) expect(theirText).toContain(txn.path);
        }
        count += dumped.length;
      }
      expect(count).toBeGreaterThan(200);
    });

    test('snapshot cat has the znodes, Stats and data of SnapshotFormatter', async () => {
      const path = filesOf(server.dataDirectory, 'snapshot.').at(-1) ?? '';
      const theirs = new Map<string, Record<string, string>>();
      for (const [, at = '', fields = ''] of java(SNAPSHOT_TOOL, '-d', path).matchAll(
        /^(\/.*)\n((?: {2}\w+ = .*\n)+)/gm,
      )) {
        theirs.set(
          at,
          Object.fromEntries([...fields.matchAll(/^ {2}(\w+) = (.*)$/gm)].map(([, name, value]) => [name, value])),
        );
      }
      const lines = (await meerkat('snapshot', 'cat', path, '-o', 'ndjson')).trimEnd().split('\n');
      const ours = lines.map((line) => JSON.parse(line) as Shown);
      expect(ours.map((znode) => znode.path).toSorted()).toEqual([...theirs.keys()].toSorted());
      expect(ours.length).toBeGreaterThan(20);
      for (const znode of ours) {
        const their = theirs.get(znode.path) ?? {};
        const number = (text: string | undefined): number => Number(text);
        expect([znode.path, ...[znode.czxid, znode.mzxid, znode.pzxid].map(Number)]).toEqual([
          znode.path,
          ...[their['cZxid'], their['mZxid'], their['pZxid']].map(number),
        ]);
        expect([znode.version, znode.cversion, znode.aversion].map(String)).toEqual([
          their['dataVersion'],
          their['cversion'],
          their['aclVersion'],
        ]);
        expect(BigInt(znode.ephemeralOwner)).toBe(BigInt(their['ephemeralOwner'] ?? 0));
        const bytes = znode.data === null ? Buffer.alloc(0) : Buffer.from(znode.data, znode.encoding ?? 'utf8');
        expect(Buffer.from(their['data'] ?? '', 'base64')).toEqual(bytes);
      }
    });
  });
});

interface Dumped {
  readonly session: string;
  readonly cxid: number;
  readonly zxid: string;
  readonly type: string;
  readonly txn: { readonly path?: string };
}

interface Shown {
  readonly path: string;
  readonly data: string | null;
  readonly encoding: 'utf8' | 'base64' | null;
  readonly czxid: string;
  readonly mzxid: string;
  readonly pzxid: string;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  readonly ephemeralOwner: string;
}

describeWith(['apache'], 'compressed snapshots', () => {
  test.each(['gz', 'snappy'])(
    '%s: our server starts from Apache’s, Apache’s from ours, our commands read them',
    async (method) => {
      const config = { snapCount: 40, preAllocSize: 64, 'snapshot.compression.method': method };
      await using server = await ServerProcess.start('apache', { config });
      const client = await connect(`127.0.0.1:${server.port}`);
      for (let n = 0; n < 200; n++) await client.create(`/n${n}`, 'some text, some text, some text');
      await client.close();
      await server.stop();
      const packed = filesOf(server.dataDirectory, 'snapshot.');
      expect(packed.at(-1)).toMatch(new RegExp(`\\.${method}$`));
      expect(await meerkat('snapshot', 'verify', server.dataDirectory)).not.toContain('damaged');
      const before = await meerkat('tree', '/', '--dir', server.dataDirectory);
      await server.restart('meerkat');
      const again = await connect(`127.0.0.1:${server.port}`);
      expect((await again.children('/')).children).toHaveLength(201);
      await again.close();
      expect(before).toContain('n199');
      // And back, from our files only: our logs begin with the first snapshot written by ours.
      const stillThere = await connect(`127.0.0.1:${server.port}`);
      for (let n = 0; n < 200; n++) await stillThere.create(`/m${n}`, 'some text, some text, some text');
      await stillThere.close();
      await server.stop();
      const ours = filesOf(server.dataDirectory, 'snapshot.').filter((path) => !packed.includes(path));
      expect(ours.at(-1)).toMatch(new RegExp(`\\.${method}$`));
      for (const path of packed) rmSync(path, { force: true });
      await server.restart('apache');
      const third = await connect(`127.0.0.1:${server.port}`);
      expect((await third.children('/')).children).toHaveLength(401);
      await third.close();
    },
  );
});

describe('a large snapshot', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'million-'));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  test('of a million znodes is summarized and verified in bounded memory, and one of 300,000 compared', async () => {
    const { makeLargeSnapshot } = await import('./data-directory/large-snapshot.ts');
    const [large, smaller] = [join(directory, 'snapshot.1'), join(directory, 'snapshot.2')];
    makeLargeSnapshot(large, 1_000_000, 100);
    makeLargeSnapshot(smaller, 300_000, 100);
    for (const [args, megabytes] of [
      [['snapshot', 'verify', large], 160],
      [['snapshot', 'summary', large, '--depth', '1'], 160],
      // A million would take 45 seconds and the same memory.
      [['snapshot', 'diff', smaller, smaller], 220],
    ] as const) {
      const command = new RunningCommand([...args], {}, false);
      let peakKb = 0;
      const timer = setInterval(() => {
        try {
          const status = readFileSync(`/proc/${command.child.pid}/status`, 'utf8');
          peakKb = Math.max(peakKb, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
        } catch {
          // It has exited.
        }
      }, 20);
      const { exitCode, stderr } = await command.ended;
      clearInterval(timer);
      expect({ args, exitCode }, stderr).toEqual({ args, exitCode: 0 });
      expect(peakKb / 1024, args.join(' ')).toBeLessThan(megabytes);
      if (process.env['SHOW'] !== undefined)
        process.stderr.write(`${args.slice(0, 2).join(' ')}: ${Math.round(peakKb / 1024)} MiB\n`);
    }
  });
});

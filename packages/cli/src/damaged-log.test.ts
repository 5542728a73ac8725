/** A server process that is killed, its log damaged by hand, and the start that follows. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect } from '@meerkat/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const MEERKAT = fileURLToPath(new URL('../bin/meerkat.js', import.meta.url));
const WRITES = 120;

let root = '';
const children: ChildProcess[] = [];

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'meerkat-damage-'));
  await writeAndKill();
});

afterAll(async () => {
  for (const child of children) await kill(child);
  rmSync(root, { recursive: true, force: true });
});

/** Each write is acknowledged before the next one is sent, and each is in a sync of its own; then kill -9. */
async function writeAndKill(): Promise<void> {
  const { child, port } = await start('original');
  const client = await connect(`127.0.0.1:${port}`);
  for (let i = 0; i < WRITES; i++) await client.create(`/n${i}`, Buffer.alloc(100 + ((i * 53) % 700), 1 + (i % 255)));
  await kill(child);
  await client.close().catch(() => {});
}

interface Started {
  readonly child: ChildProcess;
  readonly port: number;
}

class Refused extends Error {
  readonly exitCode: number | null;

  constructor(exitCode: number | null, errors: string) {
    super(errors);
    this.exitCode = exitCode;
  }
}

/** @throws Refused */
async function start(name: string): Promise<Started> {
  const configuration = join(root, `${name}.cfg`);
  const lines = [
    'clientPort=0',
    'clientPortAddress=127.0.0.1',
    `dataDir=${join(root, name)}`,
    'preAllocSize=256',
    'admin.enableServer=false',
  ];
  writeFileSync(configuration, `${lines.join('\n')}\n`);
  const child = spawn(process.execPath, [MEERKAT, 'server', configuration], { stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  let output = '';
  let errors = '';
  child.stderr.on('data', (chunk) => (errors += chunk));
  const exit = once(child, 'close');
  return new Promise((resolve, reject) => {
    void exit.then(([code]) => reject(new Refused(code as number | null, errors)));
    child.stdout.on('data', (chunk) => {
      output += chunk;
      const port = /serves clients on 127\.0\.0\.1:(\d+)\n/.exec(output)?.[1];
      if (port !== undefined) resolve({ child, port: Number(port) });
    });
  });
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

function logOf(name: string): string {
  return join(root, name, 'version-2', 'log.1');
}

/** A copy of the directory of the killed server, with its log changed. */
function damage(name: string, change: (log: Buffer) => void): string {
  // Without the socket by which the killed server held the directory.
  cpSync(join(root, 'original'), join(root, name), { recursive: true, filter: (path) => !path.endsWith('.hold') });
  const log = readFileSync(logOf(name));
  change(log);
  writeFileSync(logOf(name), log);
  return name;
}

/** How many of the writes a server has. */
async function countWrites({ port }: Started): Promise<number> {
  const client = await connect(`127.0.0.1:${port}`);
  const { children: names } = await client.children('/');
  await client.close();
  return names.filter((name) => name.startsWith('n')).length;
}

describe('a server that was killed', () => {
  test('has every write that it has acknowledged', async () => {
    const started = await start(damage('untouched', () => {}));
    expect(await countWrites(started)).toBe(WRITES);
    await kill(started.child);
  });

  test.each([512, 4096])(
    'does not start with %i zero bytes anywhere in its log, says where, and touches nothing',
    async (bytes) => {
      const log = readFileSync(logOf('original'));
      const end = log.findLastIndex((byte) => byte !== 0) + 1;
      const blocks = Math.floor(end / bytes);
      // Every block of a log is zeroed in log-rot.test.ts.
      for (const at of [0, (blocks >> 1) * bytes, (blocks - 1) * bytes]) {
        const name = damage(`zeroed-${bytes}-${at}`, (copy) => copy.fill(0, at, at + bytes));
        const before = readdirSync(join(root, name, 'version-2')).sort();
        const content = readFileSync(logOf(name));
        const refusal = await start(name).then(
          () => null,
          (error: unknown) => error as Refused,
        );
        expect(refusal?.exitCode, `zeros at ${at}`).toBe(3);
        const line = refusal!.message.trim().split('\n').at(-1);
        expect(line).toMatch(
          /log\.1 at position \d+: .*had acknowledged everything up to 0x79.*are damaged or missing, so this server does not start/,
        );
        if (at + bytes < end - 1000) expect(line).toMatch(/Behind it \d+ txns are whole/);
        expect(readdirSync(join(root, name, 'version-2')).sort()).toEqual(before);
        expect(readFileSync(logOf(name)).equals(content)).toBe(true);
      }
    },
  );

  test('keeps what it cuts of a write that was torn, and has all others', async () => {
    const name = damage('torn', (log) => {
      const end = log.findLastIndex((byte) => byte !== 0) + 1;
      // The first part of an entry: checksum, length, and some of the rest.
      Buffer.from('0000000012345678000000ff0100', 'hex').copy(log, end);
    });
    const started = await start(name);
    expect(await countWrites(started)).toBe(WRITES);
    const [kept] = readdirSync(join(root, name, 'version-2')).filter((file) => file.startsWith('replaced-'));
    expect(kept).toMatch(/^replaced-1-79-log\.1-from-\d+$/);
    expect(readFileSync(join(root, name, 'version-2', kept!)).toString('hex')).toBe('0000000012345678000000ff01');
    await kill(started.child);
  });

  test('starts without what is damaged once it has been told to', async () => {
    const name = damage('given-up', (log) => log.fill(0, log.findLastIndex((byte) => byte !== 0) - 300));
    const refusal = await start(name).then(
      () => null,
      (error: unknown) => error as Refused,
    );
    const [, position, path] = /run: truncate -s (\d+) (\S+); remove the file durableZxid/.exec(refusal!.message)!;
    truncateSync(path!, Number(position));
    rmSync(join(root, name, 'version-2', 'durableZxid'));
    const started = await start(name);
    expect(await countWrites(started)).toBeLessThan(WRITES);
    await kill(started.child);
  });
});

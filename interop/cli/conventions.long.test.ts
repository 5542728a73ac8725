import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CATALOG } from '../../packages/cli/src/catalog.ts';
import { parseCommand } from '../../packages/cli/src/program.ts';
import type { Io } from '../../packages/cli/src/run/io.ts';
import { freePort } from '../harness/server-process.ts';
import { CliSite } from './harness.ts';

/*
 * Conventions of all commands, on one service. The commands run in this process, with the test's streams, because each
 * is run six times.
 */

/** A successful, repeatable run of a command. */
interface Sample {
  /** @param n counts the runs, so that each has its own znodes: /conv/made-n exists */
  readonly args: (n: number) => readonly string[];
  readonly input?: string;
  /** Default 0. */
  readonly exitCode?: number;
  /** Its output has a format of its own. Default false. */
  readonly isFormat?: boolean;
  /** It does not connect. Default false. */
  readonly isLocal?: boolean;
  /** It queries servers by four-letter words, without a session, and reports those that are down. Default false. */
  readonly asksWords?: boolean;
}

let directory: string;
/** Data directory of the running server. */
let dataDirectory: string;

const SAMPLES: Readonly<Record<string, Sample>> = {
  ls: { args: () => ['/conv'] },
  get: { args: () => ['/conv/json'] },
  stat: { args: () => ['/conv/json'] },
  tree: { args: () => ['/conv'] },
  find: { args: () => ['/conv', '--name', 'json'] },
  grep: { args: () => ['port', '/conv'] },
  du: { args: () => ['/conv'] },
  set: { args: () => ['/conv/text', 'x'] },
  create: { args: () => ['-s', '/conv/new-'] },
  acl: { args: () => ['/conv'] },
  quota: { args: () => ['/quoted'] },
  rm: { args: (n) => [`/conv/made-${n}`] },
  mv: { args: (n) => [`/conv/made-${n}`, `/conv/moved-${n}`] },
  edit: { args: () => ['/conv/text', '--editor', 'true'] },
  cp: { args: (n) => ['/conv/text', `/conv/copied-${n}`] },
  diff: { args: () => ['/conv/json', '/conv/text'], exitCode: 1 },
  export: { args: () => ['/conv/json'], isFormat: true },
  import: { args: (n) => [join(directory, 'export.ndjson'), `/conv/imported-${n}`] },
  txn: { args: () => [], input: 'check /conv\nset /conv/text y\n' },
  wait: { args: () => ['/conv'] },
  watch: { args: () => ['/conv', '--for', '50ms'] },
  lock: { args: () => ['/conv/lock', '--', 'true'] },
  elect: { args: () => ['/conv/elect', '--', 'true'] },
  shell: { args: () => ['-c', 'ls /conv'], isFormat: true },
  status: { args: () => [], asksWords: true },
  members: { args: () => [], exitCode: 1 },
  health: { args: () => [], asksWords: true },
  '4lw': { args: () => ['srvr'], asksWords: true },
  top: { args: () => ['--count', '1'], asksWords: true },
  sessions: { args: () => [], asksWords: true },
  watches: { args: () => [], asksWords: true },
  ephemerals: { args: () => [], asksWords: true },
  'who-blocks': { args: () => ['/quoted'], exitCode: 1 },
  log: { args: () => ['dump', dataDirectory], isLocal: true },
  snapshot: { args: () => ['verify', dataDirectory], isLocal: true },
  doctor: { args: () => [], asksWords: true },
  console: { args: () => ['--listen', '127.0.0.1:0', '--for', '50ms'], isLocal: true },
  backup: { args: () => ['--to', join(directory, 'backup'), '--dir', dataDirectory], isLocal: true },
  restore: { args: () => [dataDirectory, '--check'], isLocal: true },
  drain: { args: () => ['--http-port', '1'], exitCode: 3, asksWords: true },
  rebalance: { args: () => ['--dry-run'], asksWords: true },
  roll: { args: () => ['--command', 'true'] },
  migrate: { args: () => ['status'], asksWords: true },
  history: { args: () => ['/conv/json', '--dir', dataDirectory], isLocal: true },
  // The txn that created a session, which cannot be undone.
  undo: { args: () => ['0x1', '--dir', dataDirectory, '-n'], exitCode: 1, isLocal: true },
  profiles: { args: () => [], isLocal: true },
  completion: { args: () => ['bash'], isLocal: true, isFormat: true },
};

const COMMANDS = CATALOG.filter(({ isHidden }) => isHidden !== true).map(({ name }) => name);

interface Printed {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Collects output, or fails like a pipe without a reader or a full disk. */
class Sink extends Writable {
  readonly isTTY: boolean;
  readonly #fault: string | null;
  text = '';

  constructor({
    isTTY = false,
    fault = null,
  }: { readonly isTTY?: boolean; readonly fault?: 'EPIPE' | 'ENOSPC' | null } = {}) {
    super();
    this.isTTY = isTTY;
    this.#fault = fault;
  }

  override _write(chunk: Buffer, _: BufferEncoding, callback: (error?: Error) => void): void {
    if (this.#fault !== null && chunk.length > 0) {
      callback(Object.assign(new Error(`write ${this.#fault}`), { code: this.#fault }));
      return;
    }
    this.text += chunk.toString();
    callback();
  }
}

describe('every command', () => {
  const site = new CliSite('meerkat', {});
  let runs = 0;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'conventions-'));
    dataDirectory = site.server.dataDirectory;
    for (const [path, data] of [
      ['/conv', ''],
      ['/quoted', ''],
      ['/conv/json', '{"port":80}'],
      ['/conv/text', 'text'],
    ] as const) {
      await site.client.create(path, data);
    }
    await site.run(['quota', 'set', '/quoted', '-n', '10']);
    const { stdout } = await site.run(['export', '/conv/json']);
    writeFileSync(join(directory, 'export.ndjson'), stdout);
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  /** @param more options after the command */
  async function run(
    name: string,
    more: readonly string[] = [],
    stdout = new Sink(),
    env: Io['env'] = {},
  ): Promise<Printed> {
    const sample = SAMPLES[name];
    if (sample === undefined) throw new Error(`how to run ${name} without harm is not among the samples yet`);
    const n = runs++;
    if (sample.args(n).includes(`/conv/made-${n}`)) await site.client.create(`/conv/made-${n}`, 'x');
    const stderr = new Sink();
    const io: Io = {
      stdin: Readable.from([sample.input ?? '']),
      stdout,
      stderr,
      env: { HOME: directory, PATH: process.env['PATH'], MEERKAT_SERVER: site.address, ...env },
    };
    const exitCode = await parseCommand([name, ...more, ...sample.args(n)], io);
    return { exitCode, stdout: stdout.text, stderr: stderr.text };
  }

  test.each(COMMANDS)(
    '%s prints each format as specified, without colours, and ends when its reader goes away',
    async (name) => {
      const expected = SAMPLES[name]?.exitCode ?? 0;
      const printed: Record<string, string> = {};
      for (const format of ['table', 'json', 'ndjson', 'fields']) {
        const { exitCode, stdout, stderr } = await run(name, ['-o', format]);
        expect({ format, exitCode }, stderr).toEqual({ format, exitCode: expected });
        expect(stdout + stderr).not.toContain('\x1b');
        printed[format] = stdout;
      }
      if (SAMPLES[name]?.isFormat !== true) {
        if (printed['json'] !== '') JSON.parse(printed['json'] ?? '');
        for (const line of (printed['ndjson'] ?? '').split('\n')) if (line !== '') JSON.parse(line);
      }
      const unread = await run(name, [], new Sink({ fault: 'EPIPE' }));
      expect(unread).toEqual({ exitCode: printed['table'] === '' ? expected : 141, stdout: '', stderr: unread.stderr });
      if (printed['table'] !== '') expect(unread.stderr).toBe('');
    },
  );

  test('exits with 3 when no server is available, and with 2 when its options are invalid', async () => {
    const closed = `127.0.0.1:${await freePort()}`;
    const all = COMMANDS.filter((name) => SAMPLES[name]?.isLocal !== true && SAMPLES[name]?.asksWords !== true);
    // A few in parallel: each waits a third of a second, and listens to the signals of this process.
    for (let i = 0; i < all.length; i += 8) {
      const names = all.slice(i, i + 8);
      const away = await Promise.all(
        names.map((name) => run(name, ['--server', closed, '--connect-timeout', '300ms'])),
      );
      for (const [index, { exitCode, stdout, stderr }] of away.entries()) {
        const name = names[index];
        expect.soft({ name, exitCode, stdout }, stderr).toEqual({ name, exitCode: 3, stdout: '' });
        expect.soft(stderr, name).toContain('check that the server runs there');
      }
    }
    for (const name of COMMANDS.filter((name) => SAMPLES[name]?.asksWords === true)) {
      const { exitCode, stdout, stderr } = await run(name, ['--server', closed]);
      expect.soft({ name, exitCode }).toEqual({ name, exitCode: name === 'top' ? 0 : 3 });
      expect.soft(stdout + stderr, name).toContain(`${closed}`);
    }
    for (const name of COMMANDS) {
      const { exitCode, stderr } = await run(name, ['-o', 'xml']);
      expect.soft({ name, exitCode }).toEqual({ name, exitCode: 2 });
      expect.soft(stderr, name).toContain('-o: expected one of table, json, ndjson, fields, found "xml"');
    }
  });

  test('help ends silently when its reader goes away', async () => {
    for (const args of [['help', 'acl'], ['get', '--help'], ['--help']]) {
      expect(await site.run(args, { isUnread: true })).toMatchObject({ exitCode: 141, stderr: '' });
    }
  });

  test('stops at Ctrl-C while no server answers, says so, and exits with 130', async () => {
    // Accepts connections and never answers, like a hanging server.
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket.on('error', () => {})));
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    const { port } = silent.address() as AddressInfo;
    const names = COMMANDS.filter((name) => SAMPLES[name]?.isLocal !== true);
    for (const name of names) {
      const sample = SAMPLES[name];
      const connected = once(silent, 'connection');
      // It contacts another port first.
      const args = name === 'drain' ? ['--http-port', String(port)] : (sample?.args(runs++) ?? []);
      const running = site.start([name, ...args], {
        env: { MEERKAT_SERVER: `127.0.0.1:${port}`, HOME: directory },
      });
      running.child.stdin.end(sample?.input ?? '');
      await connected;
      running.child.kill('SIGINT');
      const { exitCode, stdout, stderr } = await running.ended;
      expect({ name, exitCode, stdout, stderr }).toEqual({
        name,
        exitCode: 130,
        stdout: '',
        stderr: name === 'shell' ? '' : 'meerkat: interrupted\n',
      });
    }
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  test('says that a disk is full, and exits with 28', async () => {
    for (const name of ['ls', 'completion']) {
      const full = new Sink({ fault: 'ENOSPC' });
      const { exitCode, stderr } = await run(name, [], full);
      expect({ name, exitCode, stderr }).toEqual({
        name,
        exitCode: 28,
        stderr: 'meerkat: cannot write the output: the disk is full\n',
      });
    }
  });

  test('uses colours on a terminal, unless told not to', async () => {
    const terminal = (): Sink => new Sink({ isTTY: true });
    expect((await run('ls', ['-s'], terminal())).stdout).toContain('\x1b[');
    expect((await run('ls', ['-s', '--no-color'], terminal())).stdout).not.toContain('\x1b[');
    expect((await run('ls', ['-s'], terminal(), { NO_COLOR: '1' })).stdout).not.toContain('\x1b[');
    expect((await run('ls', ['-s'], new Sink(), { FORCE_COLOR: '1' })).stdout).toContain('\x1b[');
  });
});

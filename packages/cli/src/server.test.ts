import { type ChildProcess, type StdioOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const MEERKAT = fileURLToPath(new URL('../bin/meerkat.js', import.meta.url));

/** One run of the command. */
interface Run {
  readonly process: ChildProcess;
  readonly exit: Promise<number | null>;
  output: string;
  errors: string;
}

let directory = '';
const runs: Run[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'meerkat-cli-'));
});

afterEach(async () => {
  for (const run of runs.splice(0)) {
    run.process.kill('SIGKILL');
    await run.exit;
  }
  rmSync(directory, { recursive: true, force: true });
});

function run(...args: readonly string[]): Run {
  return follow(spawn(process.execPath, [MEERKAT, ...args], { cwd: directory, stdio: PIPES }));
}

/** Disks that are smaller than what is kept free by default. */
const NO_WATERMARK = 'disk.freeBytesMin=0';

const PIPES: StdioOptions = ['ignore', 'pipe', 'pipe'];

function follow(child: ChildProcess): Run {
  const state: Run = { process: child, exit: once(child, 'exit').then(([code]) => code), output: '', errors: '' };
  child.stdout!.on('data', (chunk) => {
    state.output += chunk;
  });
  child.stderr!.on('data', (chunk) => {
    state.errors += chunk;
  });
  runs.push(state);
  return state;
}

/** Writes a zoo.cfg for any free port and the given directory. */
function writeConfiguration(name: string, ...lines: readonly string[]): string {
  const path = join(directory, name);
  writeFileSync(
    path,
    ['clientPort=0', 'clientPortAddress=127.0.0.1', 'tickTime=2000', ...lines, 'admin.enableServer=false', ''].join(
      '\n',
    ),
  );
  return path;
}

const NOBODY = 65534;

function runAs(user: number, ...args: readonly string[]): Run {
  return follow(spawn(process.execPath, [MEERKAT, ...args], { cwd: directory, stdio: PIPES, uid: user, gid: user }));
}

/** Only root may change the user, who must be able to read the sources. */
function canRunAsNobody(): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  return spawnSync(process.execPath, [MEERKAT, '--version'], { uid: NOBODY, gid: NOBODY }).status === 0;
}

/** Waits for the greeting. @returns the port in it */
async function serving(server: Run): Promise<number> {
  for (;;) {
    const port = /serves clients on 127\.0\.0\.1:(\d+)\n/.exec(server.output)?.[1];
    if (port !== undefined) return Number(port);
    const code = await Promise.race([server.exit, once(server.process.stdout!, 'data').then(() => 'more')]);
    if (code !== 'more') throw new Error(`it ended with ${code}: ${server.errors}`);
  }
}

async function ask(port: number, word: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.end(word);
  let answer = '';
  for await (const chunk of socket) answer += chunk;
  return answer;
}

/** Creates znodes of 1 KiB, one at a time, until the server closes. @returns how many were answered without an error */
async function createUntilClosed(port: number): Promise<number> {
  const socket = connect(port, '127.0.0.1');
  socket.write(Buffer.from(`0000002d${'00'.repeat(12)}00007530${'00'.repeat(8)}00000010${'00'.repeat(17)}`, 'hex'));
  let answered = -1;
  let input = Buffer.alloc(0);
  try {
    for await (const chunk of socket) {
      input = Buffer.concat([input, chunk as Buffer]);
      while (input.length >= 4 && input.length >= 4 + input.readInt32BE(0)) {
        // The first answer is that to the connect request; of the others the error stands behind xid and zxid.
        if (answered >= 0 && input.readInt32BE(16) !== 0) return answered;
        answered++;
        input = input.subarray(4 + input.readInt32BE(0));
        socket.write(makeCreateFrame(answered + 1));
      }
    }
  } catch {
    // Reset or closed: what was answered counts.
  }
  return answered;
}

/** A create request of a persistent znode with 1 KiB of data and the open ACL. */
function makeCreateFrame(xid: number): Buffer {
  const int = (value: number): Buffer => Buffer.from(value.toString(16).padStart(8, '0'), 'hex');
  const text = (value: string): Buffer => Buffer.concat([int(value.length), Buffer.from(value)]);
  const acl = Buffer.concat([int(1), int(31), text('world'), text('anyone')]);
  const body = Buffer.concat([int(xid), int(1), text(`/n${xid}`), int(1024), Buffer.alloc(1024), acl, int(0)]);
  return Buffer.concat([int(body.length), body]);
}

/** A small file system of its own takes root and a kernel that lets root mount. */
function canMount(): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  const probe = mkdtempSync(join(tmpdir(), 'meerkat-mount-'));
  const isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=100k', 'tmpfs', probe]).status === 0;
  if (isMounted) spawnSync('umount', [probe]);
  rmSync(probe, { recursive: true });
  return isMounted;
}

/** The lines of the log without time and level. */
function logLines(server: Run): string[] {
  return server.errors
    .trim()
    .split('\n')
    .map((line) => line.replace(/^[-\d]+ [:.\d]+ [A-Z]+ +/, ''));
}

describe('meerkat server', () => {
  test('starts its threads from where they are, though it is one file itself', async () => {
    const text = `clientPort=0\nclientPortAddress=127.0.0.1\nclientThreads=1\nadmin.enableServer=false\ndataDir=${directory}/data\n`;
    writeFileSync(join(directory, 'zoo.cfg'), text);
    const server = run('server', 'zoo.cfg');
    expect(await ask(await serving(server), 'srvr')).toContain('Mode: standalone');
    expect(server.errors).not.toContain('I/O thread 0 has ended');
  });

  test('says where it listens, where the data is and what to try; answers srvr; ends with 0 on SIGTERM', async () => {
    const server = run('server', writeConfiguration('zoo.cfg', `dataDir=${directory}/data`));
    const port = await serving(server);
    expect(server.output).toContain(`data in ${directory}/data\n`);
    expect(server.output).toContain(`try     echo srvr | nc 127.0.0.1 ${port}\n`);
    expect(server.output).toContain(`zkCli.sh -server 127.0.0.1:${port}`);
    expect(await ask(port, 'srvr')).toMatch(
      /^Zookeeper version: 3\.9\.5-meerkat-.*\n.*Mode: standalone\nNode count: 5\n$/s,
    );
    server.process.kill('SIGTERM');
    expect(await server.exit).toBe(0);
    expect(logLines(server).at(-1)).toBe('stopped: everything acknowledged is synced');
    expect(readdirSync(join(directory, 'data', 'version-2')).filter((name) => name.endsWith('.hold'))).toEqual([]);
  });

  test('SIGINT ends it with 0 too', async () => {
    const server = run('server', writeConfiguration('zoo.cfg', 'dataDir=data'));
    await serving(server);
    server.process.kill('SIGINT');
    expect(await server.exit).toBe(0);
  });

  test("takes Apache's form <port> <dataDir> [tickTime] [maxClientCnxns]", async () => {
    const server = run('server', '0', 'data', '1000', '9');
    for (;;) {
      if (/serves clients on .*:\d+\n/.test(server.output)) break;
      await once(server.process.stdout!, 'data');
    }
    expect(server.output).toContain(`data in ${directory}/data\n`);
  });

  test('a second server on the same directory ends with 3 and one line; after kill -9 the next one starts', async () => {
    const path = writeConfiguration('zoo.cfg', 'dataDir=data');
    const first = run('server', path);
    await serving(first);
    const second = run('server', path);
    expect(await second.exit).toBe(3);
    expect(logLines(second)).toEqual([
      `${directory}/data/version-2 is in use by another server; stop that one or give this one a directory of its own; the other one: holding process ${first.process.pid}`,
    ]);
    first.process.kill('SIGKILL');
    await first.exit;
    await serving(run('server', path));
  });

  test('a port in use ends with 1 and one line, and leaves the directory alone', async () => {
    const first = run('server', writeConfiguration('zoo.cfg', 'dataDir=data'));
    const port = await serving(first);
    const second = run('server', writeConfiguration('second.cfg', 'dataDir=other', `clientPort=${port}`));
    expect(await second.exit).toBe(1);
    expect(logLines(second).slice(1)).toEqual([
      `cannot listen on 127.0.0.1:${port}: it is in use; stop the program that listens there, or set another clientPort`,
    ]);
    expect(existsSync(join(directory, 'other'))).toBe(false);
  });

  test('a directory that cannot be made ends with 3 and one line with advice', async () => {
    writeFileSync(join(directory, 'file'), '');
    const server = run('server', writeConfiguration('zoo.cfg', 'dataDir=file/data'));
    expect(await server.exit).toBe(3);
    const [line, ...more] = logLines(server);
    expect(more).toEqual([]);
    expect(line).toContain(`${directory}/file/data`);
    expect(line).toContain('a file is in the way: remove it, or set another dataDir');
  });

  const IN_THE_WAY = 'a file is in the way: remove it, or set another';
  const NOWHERE = 'nothing can be created there, or a symbolic link leads nowhere: correct that, or set another';
  test.each([
    ['where the kernel makes none', '/proc/meerkat', NOWHERE],
    ['below one that the kernel does not make', '/proc/meerkat/more', NOWHERE],
    ['that is a file', 'file', IN_THE_WAY],
    ['whose version-2 is a file', 'filed', IN_THE_WAY],
    ['that is a link to nothing', 'dangling', NOWHERE],
    ['whose version-2 is a link to nothing', 'linked', NOWHERE],
    ['that is a link to itself', 'loop', NOWHERE],
    ['that has a log which is a link to nothing', 'moved', NOWHERE],
  ])('a directory %s ends the start with 3 and one line, for data and logs alike', async (_which, path, advice) => {
    writeFileSync(join(directory, 'file'), '');
    for (const name of ['filed', 'linked', 'moved/version-2']) mkdirSync(join(directory, name), { recursive: true });
    writeFileSync(join(directory, 'filed', 'version-2'), '');
    symlinkSync('/nowhere', join(directory, 'dangling'));
    symlinkSync('/nowhere', join(directory, 'linked', 'version-2'));
    symlinkSync('loop', join(directory, 'loop'));
    symlinkSync('/nowhere', join(directory, 'moved', 'version-2', 'log.1'));
    for (const [key, lines] of [
      ['dataDir', [`dataDir=${path}`]],
      ['dataLogDir', ['dataDir=data', `dataLogDir=${path}`]],
    ] as const) {
      const server = run('server', writeConfiguration(`${key}.cfg`, ...lines));
      expect(await server.exit, key).toBe(3);
      const [line, ...more] = logLines(server);
      expect(more, key).toEqual([]);
      expect(line).toContain(resolve(directory, path));
      expect(line).toContain(`${advice} ${key}`);
    }
  });

  test.skipIf(!canRunAsNobody())(
    'a directory that may not be written to ends the start with 3 and one line',
    async () => {
      chmodSync(directory, 0o777);
      for (const name of ['data', 'kept']) mkdirSync(join(directory, name, 'version-2'), { recursive: true });
      chmodSync(join(directory, 'data', 'version-2'), 0o555);
      for (const lines of [['dataDir=data'], ['dataDir=data/more'], ['dataDir=kept', 'dataLogDir=data']]) {
        chmodSync(join(directory, 'kept', 'version-2'), 0o777);
        const server = runAs(NOBODY, 'server', writeConfiguration('zoo.cfg', ...lines));
        expect(await server.exit).toBe(3);
        const [line, ...more] = logLines(server);
        expect(more).toEqual([]);
        const key = lines.length === 1 ? 'dataDir' : 'dataLogDir';
        expect(line).toContain(`give the user that runs this server the right to write there, or set another ${key}`);
      }
    },
  );

  test.skipIf(!canMount())('a disk that is full at the start ends it with 3 and one line', async () => {
    const data = join(directory, 'data');
    mkdirSync(data);
    expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', data]).status).toBe(0);
    try {
      expect(spawnSync('dd', ['if=/dev/zero', `of=${join(data, 'filled')}`, 'bs=1k']).status).toBe(1);
      const server = run('server', writeConfiguration('zoo.cfg', 'dataDir=data', NO_WATERMARK));
      expect(await server.exit).toBe(3);
      const [line, ...more] = logLines(server);
      expect(more).toEqual([]);
      expect(line).toMatch(/ENOSPC; the disk is full: make room, then start the server again$/);
    } finally {
      for (const { process, exit } of runs) {
        process.kill('SIGKILL');
        await exit;
      }
      spawnSync('umount', [data]);
    }
  });

  test('a missing directory is not created when datadir.autocreate is off', async () => {
    const server = run('server', writeConfiguration('zoo.cfg', 'dataDir=missing', 'datadir.autocreate=false'));
    expect(await server.exit).toBe(3);
    expect(existsSync(join(directory, 'missing'))).toBe(false);
    mkdirSync(join(directory, 'missing'));
    await serving(run('server', join(directory, 'zoo.cfg')));
  });

  test.skipIf(!canMount())(
    'a full disk ends it with 1 and one line; every write that was answered is there afterwards',
    async () => {
      const data = join(directory, 'data');
      mkdirSync(data);
      expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=300k', 'tmpfs', data]).status).toBe(0);
      try {
        const path = writeConfiguration('zoo.cfg', 'dataDir=data', '4lw.commands.whitelist=*', NO_WATERMARK);
        const full = run('server', path);
        const answered = await createUntilClosed(await serving(full));
        expect(await full.exit).toBe(1);
        expect(full.errors.match(/ERROR/g)).toHaveLength(1);
        expect(logLines(full).at(-1)).toMatch(/^the server stops: cannot write \d+ bytes at \d+ of .*log\.1: ENOSPC/);
        expect(answered).toBeGreaterThan(10);

        expect(spawnSync('mount', ['-o', 'remount,size=3m', data]).status).toBe(0);
        const again = run('server', path);
        const srvr = await ask(await serving(again), 'srvr');
        // One more may have been written and not answered.
        expect(Number(/Node count: (\d+)/.exec(srvr)?.[1])).toSatisfy((count: number) =>
          [5, 6].includes(count - answered),
        );
        again.process.kill('SIGTERM');
        expect(await again.exit).toBe(0);
      } finally {
        for (const { process, exit } of runs) {
          process.kill('SIGKILL');
          await exit;
        }
        spawnSync('umount', [data]);
      }
    },
  );

  test('a bad configuration ends with 2 and a line for each fault', async () => {
    const path = writeConfiguration('zoo.cfg', 'dataDir=data', 'snapCount=many', 'tickTime=soon');
    const server = run('server', path);
    expect(await server.exit).toBe(2);
    const lines = server.errors.trim().split('\n');
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain(`${path}, line 5: snapCount: found "many", expected a whole number`);
    expect(lines[1]).toContain(`${path}, line 6: tickTime: found "soon", expected a whole number`);
  });

  test('a configuration that is not there, and too many words, end with 2', async () => {
    const missing = run('server', 'nowhere.cfg');
    expect(await missing.exit).toBe(2);
    expect(missing.errors).toContain(`there is no file ${directory}/nowhere.cfg`);
    expect(await run('server', '1', '2', '3', '4', '5').exit).toBe(2);
    expect(await run('server', 'seven', 'data').exit).toBe(2);
  });

  test('warnings about keys are in the log', async () => {
    const path = writeConfiguration('zoo.cfg', 'dataDir=data', 'frobnicate=1');
    const server = run('server', path);
    await serving(server);
    expect(logLines(server)[0]).toBe(`${path}, line 5: frobnicate is unknown and ignored`);
  });

  test('the log is JSON on request', async () => {
    const path = writeConfiguration('zoo.cfg', 'dataDir=data', 'frobnicate=1');
    const child = spawn(process.execPath, [MEERKAT, 'server', path], {
      cwd: directory,
      env: { ...process.env, MEERKAT_LOG: 'json' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const records: Record<string, unknown>[] = [];
    for await (const line of createInterface({ input: child.stderr })) {
      records.push(JSON.parse(line) as Record<string, unknown>);
      if (records.at(-1)?.['event'] === 'ready') child.kill('SIGKILL');
    }
    expect(records[0]).toMatchObject({ level: 40, service: 'meerkat', msg: expect.stringContaining('frobnicate') });
    expect(records.find(({ event }) => event === 'recovered')).toMatchObject({ znodes: 5, sessions: 0 });
    expect(records.at(-1)).toMatchObject({ event: 'ready', port: expect.any(Number), msg: 'clients are served' });
  });
});

describe('meerkat', () => {
  test('helps with examples, and reports its version', async () => {
    const help = run('server', '--help');
    expect(await help.exit).toBe(0);
    expect(help.output).toContain('meerkat server conf/zoo.cfg');
    const version = run('--version');
    expect(await version.exit).toBe(0);
    expect(version.output).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test('an unknown command or option ends with 2', async () => {
    expect(await run('frobnicate').exit).toBe(2);
    expect(await run('server', '--frobnicate').exit).toBe(2);
  });
});

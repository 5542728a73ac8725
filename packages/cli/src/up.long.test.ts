import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Client, connect as connectClient, text } from '@meerkat/client';
import { findFreePorts } from '@meerkat/testing';
import { afterEach, beforeEach, describe, expect, onTestFailed, test } from 'vitest';

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
const clients: Client[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'meerkat-up-'));
});

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close().catch(() => {});
  for (const run of runs.splice(0)) {
    // Its servers stop when it is gone.
    run.process.kill('SIGKILL');
    await run.exit;
  }
  await expect.poll(serverProcesses).toEqual([]);
  rmSync(directory, { recursive: true, force: true });
});

function run(...args: readonly string[]): Run {
  const child = spawn(process.execPath, [MEERKAT, ...args], { cwd: directory, stdio: ['pipe', 'pipe', 'pipe'] });
  const state: Run = { process: child, exit: once(child, 'exit').then(([code]) => code), output: '', errors: '' };
  child.stdout.on('data', (chunk) => {
    state.output += chunk;
  });
  child.stderr.on('data', (chunk) => {
    state.errors += chunk;
  });
  runs.push(state);
  onTestFailed(() => console.log(`meerkat ${args.join(' ')}\n${state.output}${state.errors}`));
  return state;
}

/** Process ids of the servers that have a zoo.cfg below this test's directory. */
function serverProcesses(): readonly number[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,args='], { encoding: 'utf8' });
  const lines = stdout.split('\n').filter((line) => line.includes('member-main') && line.includes(directory));
  return lines.map((line) => Number.parseInt(line, 10));
}

/** Waits until the output behind a position matches. @returns the match */
async function said(up: Run, pattern: RegExp, from = 0): Promise<RegExpExecArray> {
  for (;;) {
    const match = pattern.exec(up.output.slice(from));
    if (match !== null) return match;
    const code = await Promise.race([up.exit, once(up.process.stdout!, 'data').then(() => 'more')]);
    if (code !== 'more') throw new Error(`it ended with ${code}: ${up.output}${up.errors}`);
  }
}

/** Types a command, and waits for what it says. */
async function type(up: Run, command: string, pattern: RegExp): Promise<RegExpExecArray> {
  const from = up.output.length;
  up.process.stdin!.write(`${command}\n`);
  return said(up, pattern, from);
}

/** The same about the leader: again while no server leads, as may be on a busy machine. */
async function typeOfLeader(up: Run, command: string, pattern: RegExp): Promise<RegExpExecArray> {
  for (;;) {
    const match = await type(up, command, new RegExp(`${pattern.source}|no server leads at the moment`, 'm'));
    if (match[1] !== undefined) return match;
  }
}

/** Waits for the greeting. @returns the connect string in it */
async function serving(up: Run): Promise<string> {
  return (await said(up, /^connect to (.*)\n/m))[1] ?? '';
}

async function connect(connectString: string): Promise<Client> {
  const client = await connectClient(connectString, { sessionTimeoutMs: 20_000, connectTimeoutMs: 20_000 });
  clients.push(client);
  return client;
}

/** Writes until a write is acknowledged: what fails because there was no leader in that moment is tried again. */
async function writeAtLast(client: Client, path: string): Promise<void> {
  for (;;) {
    try {
      await client.create(path, 'written');
      return;
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === 'NODEEXISTS') return;
      if (code !== 'CONNECTIONLOSS') throw error;
    }
  }
}

async function listenSomewhere(): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

/** A port from which on there are likely to be free ones. */
async function freePort(): Promise<string> {
  const [port] = await findFreePorts(1);
  return String(port);
}

describe('meerkat up', () => {
  test('starts servers that take writes, outlive the death of their leader, and end with Ctrl-C', async () => {
    const up = run('up', '3', '--port', await freePort());
    const connectString = await serving(up);
    expect(connectString.split(',')).toHaveLength(3);
    expect(serverProcesses()).toHaveLength(3);
    const client = await connect(connectString);
    const session = client.session?.id;
    await client.create('/before', 'written');

    const [, dead = ''] = await typeOfLeader(up, 'kill leader', /^server (\d) was killed$/m);
    expect(serverProcesses()).toHaveLength(2);
    await writeAtLast(client, '/after');
    expect(client.session?.id).toBe(session);

    await type(up, `restart ${dead}`, new RegExp(`^server ${dead}  .*  (follower|leader) +epoch \\d`, 'm'));
    up.process.kill('SIGINT');
    expect(await up.exit).toBe(0);
    expect(up.output).toMatch(/stopped\n$/);
    expect(up.errors).toBe('');
    expect(serverProcesses()).toEqual([]);
    expect(existsSync(join(directory, 'meerkat-data/up/1/data/version-2'))).toBe(true);
  });

  test('a leader that is cut off serves no client until the cut is healed; the data are there at the next start', async () => {
    const port = await freePort();
    const up = run('up', '--port', port, '--dir', 'data', '--tick-time', '50');
    await serving(up);
    const from = up.output.length;
    const [, old = ''] = await typeOfLeader(up, 'isolate leader', /^the network is cut: (\d) \| /m);
    await said(up, new RegExp(`^server ${old}  .*  looking .* cut off from `, 'm'), from);
    const [, successor = ''] = await said(
      up,
      new RegExp(`^server (?!${old} )\\d  (\\S+)  leader      epoch \\d`, 'm'),
      from,
    );
    await (await connect(successor)).create('/during', 'written');
    await type(up, 'heal', new RegExp(`^server ${old}  .*  (follower|leader) +epoch \\d  zxid 0x\\S+$`, 'm'));
    await type(up, 'quit', /^stopped$/m);
    expect(await up.exit).toBe(0);

    const again = run('up', '3', '--port', port, '--dir', 'data');
    const client = await connect(await serving(again));
    expect((await client.get('/during', { codec: text })).data).toBe('written');
  });

  test('a paused server hangs until it is resumed', async () => {
    const up = run('up', '1', '--port', await freePort(), '--set', 'extendedTypesEnabled=true');
    const client = await connect(await serving(up));
    await client.create('/expires', '', { ttlMs: 60_000 });
    await type(up, 'pause 1', /server 1 is paused: "resume 1" lets it continue/);
    const written = client.create('/a');
    await type(up, 'status', /^server 1 {2}127\.0\.0\.1:\d+ {2}paused/m);
    await type(up, 'resume 1', /server 1 continues/);
    await written;
  });

  test('a server that dies by itself is reported with the place of its log', async () => {
    const up = run('up', '3', '--port', await freePort());
    await serving(up);
    process.kill(serverProcesses()[0] ?? 0, 'SIGKILL');
    const [, id = ''] = await said(up, /^server (\d) ended by SIGKILL: .* \(.*\/log\)$/m);
    await type(up, `pause ${id}`, new RegExp(`server ${id} is dead: "restart ${id}" starts it`));
    await type(up, `restart ${id}`, new RegExp(`^server ${id}  .*  (follower|leader) `, 'm'));
  });

  test('its servers stop when it is killed', async () => {
    const up = run('up', '3', '--port', await freePort());
    await serving(up);
    up.process.kill('SIGKILL');
    await up.exit;
    await expect.poll(serverProcesses).toEqual([]);
    expect(readFileSync(join(directory, 'meerkat-data/up/1/log'), 'utf8')).toContain(
      'everything acknowledged is synced',
    );
  });

  test('skips ports that are taken with a word', async () => {
    const { server, port } = await listenSomewhere();
    const up = run('up', '1', '--port', String(port));
    const connectString = await serving(up);
    expect(up.output).toContain(`port ${port} is taken, so it is skipped\n`);
    expect(connectString).not.toContain(`:${port}`);
    server.close();
  });

  test('says what is wrong with commands and words, and with a directory of another number of servers', async () => {
    const port = await freePort();
    const up = run('up', '2', '--port', port);
    await serving(up);
    expect(up.output).toContain('of 2 servers only 0 may fail, as of 1: an odd number is better');
    await type(up, 'frobnicate', /there is no command "frobnicate"; commands: kill N/);
    await type(up, 'kill 3', /there is no server "3": there are 1, 2/);
    await type(up, 'kill', /expected one server, such as "kill 1" or "kill leader"/);
    await type(up, 'partition 1 | 1', /server 1 is named twice/);
    await type(up, 'partition 1 |', /expected groups of servers/);
    await type(up, 'quit', /^stopped$/m);

    const bad = async (...args: readonly string[]): Promise<string> => {
      const failed = run('up', ...args);
      expect(await failed.exit).toBe(2);
      return failed.errors;
    };
    expect(await bad('3')).toContain('has the data of 2 servers, not of 3: run "meerkat up 2"');
    expect(await bad('none')).toContain('expected a number of servers from 1 to 9, found "none"');
    expect(await bad('3', '--port', '0')).toContain('--port: expected a port from 1 to 65535, found "0"');
    expect(await bad('3', '--frobnicate')).toContain('unknown option');
    expect(await bad('2', '--set', 'ttl')).toContain('--set: expected key=value as in zoo.cfg, found "ttl"');
    expect(await bad('2', '--set', 'extendedTypesEnabled=perhaps')).toMatch(/--set: .*extendedTypesEnabled.*perhaps/);
  });

  test('a server that cannot start ends it with 1 and what that server has said', async () => {
    const first = run('up', '1', '--port', await freePort());
    await serving(first);
    const second = run('up', '1', '--port', await freePort());
    expect(await second.exit).toBe(1);
    expect(second.output).toMatch(/server 1 ended with code 3: .* is in use by another server/);
  });
});

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findFreePorts } from '@meerkat/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const MEERKAT = fileURLToPath(new URL('../bin/meerkat.js', import.meta.url));

/** One run of `meerkat server`. */
interface Run {
  readonly process: ChildProcess;
  readonly exit: Promise<number | null>;
  /** What it says of itself and of what is wrong. */
  log: string;
}

let directory = '';
const runs: Run[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'meerkat-members-'));
});

afterEach(async () => {
  for (const { process, exit } of runs.splice(0)) {
    process.kill('SIGKILL');
    await exit;
  }
  rmSync(directory, { recursive: true, force: true });
});

interface Member {
  /** Names its directory. */
  readonly name: string;
  /** What is in the file; null for no file. */
  readonly myid: string | null;
  /** `server.N` lines, by N. */
  readonly list: Readonly<Record<number, string>>;
  /** Further lines of zoo.cfg. */
  readonly settings?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

/** Starts a server of an ensemble on any free port for clients. */
function start({ name, myid, list, settings = [], environment = {} }: Member): Run {
  const own = join(directory, name);
  mkdirSync(join(own, 'data'), { recursive: true });
  if (myid !== null) writeFileSync(join(own, 'data', 'myid'), myid);
  const members = Object.entries(list).map(([id, address]) => `server.${id}=${address}`);
  const lines = [
    'clientPort=0',
    'clientPortAddress=127.0.0.1',
    'dataDir=data',
    'tickTime=500',
    'initLimit=20',
    'admin.enableServer=false',
  ];
  writeFileSync(join(own, 'zoo.cfg'), [...lines, 'syncLimit=10', ...settings, ...members, ''].join('\n'));
  const child = spawn(process.execPath, [MEERKAT, 'server', 'zoo.cfg'], {
    cwd: own,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const run: Run = { process: child, exit: once(child, 'exit').then(([code]) => code), log: '' };
  child.stderr.on('data', (chunk) => {
    run.log += chunk;
  });
  runs.push(run);
  return run;
}

/** Waits until the log matches. */
async function said(run: Run, pattern: RegExp): Promise<void> {
  while (!pattern.test(run.log)) {
    const code = await Promise.race([run.exit, once(run.process.stderr!, 'data').then(() => 'more')]);
    if (code !== 'more' && !pattern.test(run.log)) throw new Error(`it ended with ${code} and said: ${run.log}`);
  }
}

/** Addresses for members, on ports that are free now. */
async function freeAddresses(count: number): Promise<readonly string[]> {
  const ports = await findFreePorts(2 * count);
  return Array.from({ length: count }, (_, i) => `127.0.0.1:${ports[2 * i]}:${ports[2 * i + 1]}`);
}

function portsOf(address: string | undefined): readonly string[] {
  return address?.split(':').slice(1) ?? [];
}

test("MEERKAT_LOG=zookeeper: what operators search Apache's logs for", async () => {
  const [a = '', b = ''] = await freeAddresses(2);
  const settings = ['autopurge.purgeInterval=1', 'audit.enable=true'];
  const [one, two] = [1, 2].map((id) =>
    start({ name: `${id}`, myid: `${id}`, list: { 1: a, 2: b }, settings, environment: { MEERKAT_LOG: 'zookeeper' } }),
  ) as [Run, Run];
  const isLeader = (run: Run) => /Have quorum of supporters, sids: \[\[[12], [12]\]\]/.test(run.log);
  const pattern = /Peer state changed: \w+ - broadcast[\s\S]*Purge task completed\./;
  await Promise.all([said(one, pattern), said(two, pattern)]);
  const [leader, follower] = isLeader(one) ? [one, two] : [two, one];
  expect(leader.log).toMatch(/New election\. My id = [12], proposed zxid=0x0[\s\S]*Peer state changed: leading\n/);
  const synchronized = /Getting a (diff from the|snapshot from) leader 0x[\s\S]*following - broadcast/;
  expect(follower.log).toMatch(synchronized);
  expect(leader.log).toMatch(/LEADING - LEADER ELECTION TOOK - \d+ MS/);
  leader.process.kill('SIGTERM');
  expect(await leader.exit).toBe(0);
  expect(leader.log).toMatch(/ZooKeeper audit is enabled\.[\s\S]*Exiting JVM with code 0/);
  await said(follower, /Exception when following the leader: [\s\S]* - LOOKING/);
  await said(follower, /Connection broken for id [12], my id = [12]/);
});

describe('a server of an ensemble that is wrongly configured', () => {
  test('does not start without a myid of its list, or with a port that has two owners', async () => {
    const [a = '', b = '', c = ''] = await freeAddresses(3);
    const list = { 1: a, 2: b, 3: c };
    const missing = start({ name: 'missing', myid: null, list });
    expect(await missing.exit).toBe(2);
    expect(missing.log).toContain('expected the id of this server, one of 1, 2, 3: for server.1, write "1" into it');
    const foreign = start({ name: 'foreign', myid: '7', list });
    expect(await foreign.exit).toBe(2);
    expect(foreign.log).toContain(
      'Is this the data directory of another server, or is server.7 missing from the list?',
    );
    const twice = start({ name: 'twice', myid: '1', list: { ...list, 3: a } });
    expect(await twice.exit).toBe(2);
    expect(twice.log).toContain('is the quorum port of server.1 already, and the quorum port of server.3');
  });

  test('says of each voter that it misses why it cannot be reached, and that an even number of them is no good', async () => {
    const [a = '', b = ''] = await freeAddresses(2);
    const list = { 1: a, 2: b, 3: 'nowhere.invalid:2888:3888', 4: 'nowhere.invalid:2889:3889' };
    const run = start({ name: '1', myid: '1', list });
    await said(run, /makes 4 voters, an even number: a quorum is 3, so no more of them may fail than of 3/);
    await said(
      run,
      /looks for a leader: 1 of 4 voting servers is reachable, this one included; without a connection: /,
    );
    // How a name is not known depends on who is asked.
    await said(
      run,
      new RegExp(`2 \\(nothing listens at 127\\.0\\.0\\.1:${portsOf(b)[1]}\\), 3 \\(.*nowhere\\.invalid`),
    );
  });

  test('says that another one may have the same myid', async () => {
    const [a = '', b = '', c = ''] = await freeAddresses(3);
    const list = { 1: a, 2: b, 3: c };
    const first = start({ name: 'first', myid: '2', list });
    await said(first, /looks for a leader/);
    await said(first, /without a connection/);
    const second = start({ name: 'second', myid: '2', list });
    await said(
      second,
      /cannot listen for the election at .*: EADDRINUSE, as another program listens there, or another server with the same myid/,
    );
  });

  test('learns of lists that differ, once', async () => {
    const [a = '', b = '', c = ''] = await freeAddresses(3);
    const one = start({ name: '1', myid: '1', list: { 1: a, 2: b, 3: c } });
    const two = start({ name: '2', myid: '2', list: { 1: a, 2: b, 3: c, 4: 'nowhere.invalid:2888:3888:observer' } });
    const pattern =
      /server \d follows a membership that differs from this one's: .*Servers of an ensemble need the same list/;
    await Promise.race([said(one, pattern), said(two, pattern)]);
    const warned = pattern.test(one.log) ? one : two;
    await said(warned, /epoch 1 is established|voting servers? (is|are) reachable/);
    expect(warned.log.match(new RegExp(pattern, 'g'))).toHaveLength(1);
  });
});

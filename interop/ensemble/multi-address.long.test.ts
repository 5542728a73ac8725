/**
 * Servers with two addresses each, on separate networks: one network is cut silently, as by a failing switch.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, onTestFailed, test } from 'vitest';
import { Namespaces, whyNoNamespaces } from '../../torture/namespaces.ts';
import { describeWith, isCi, type Peer } from '../harness/peers.ts';
import { commandLine, type ServerKind } from '../harness/server-process.ts';

const IDS = [1, 2, 3] as const;
const ROOT = join(import.meta.dirname, '../..');
/** Milliseconds: twice syncLimit, an election that detects silent connections, and the switch to the other address. */
const GAP_MAX_MS = 45_000;

const MIXES: readonly (readonly [string, readonly Peer[], readonly ServerKind[]])[] = [
  ['of ours', [], ['meerkat', 'meerkat', 'meerkat']],
  ["of Apache's that follow ours", ['apache'], ['apache', 'apache', 'meerkat']],
  ["of ours that follow Apache's", ['apache'], ['meerkat', 'meerkat', 'apache']],
];

const running: ChildProcess[] = [];
let namespaces: Namespaces | null = null;
let directory = '';

afterEach(async () => {
  for (const child of running.splice(0)) await end(child);
  namespaces?.remove();
  namespaces = null;
  if (directory !== '') rmSync(directory, { recursive: true, force: true });
});

const reason = whyNoNamespaces();
const describeHere = reason === null || isCi() ? describe : describe.skip;

describeHere(`servers with two addresses, of which one is cut${reason === null ? '' : ` [skipped: ${reason}]`}`, () => {
  for (const [title, peers, kinds] of MIXES) {
    describeWith(peers, title, () => {
      test('continue over the other one, and lose no acknowledged write', async () => {
        const made = makeHosts();
        const servers = kinds.map((kind, i) => startServer(made, kind, IDS[i]!));
        const writer = startWriter(made);
        onTestFailed(() => {
          console.log([...servers, writer].map(({ output }) => output.slice(-8000)).join('\n----\n'));
        });
        await writer.waitForProgress();
        // Every server's first address, in both directions.
        const rules = IDS.flatMap((id) => [
          `pref 100 from all to 198.18.${id}.1 blackhole`,
          `pref 100 from 198.18.${id}.1 to all blackhole`,
        ]);
        made.route([], rules);
        const startMs = performance.now();
        await writer.waitForProgress();
        expect(performance.now() - startMs).toBeLessThan(GAP_MAX_MS);
        await writer.finish();
      });
    });
  }
});

/** Hosts zk1 to zk3 with addresses 198.18.N.1 and 198.18.N.101; traffic to a second address comes from a second one. */
function makeHosts(): Namespaces {
  directory = mkdtempSync(join(tmpdir(), 'interop-addresses-'));
  namespaces = Namespaces.make(IDS.length, 1);
  for (const id of IDS) {
    for (const other of IDS) {
      if (other === id) continue;
      const route = [`198.18.${other}.101`, 'via', `198.18.${id}.254`, 'src', `198.18.${id}.101`];
      execFileSync('ip', ['-n', namespaces.nameOf(`zk${id}`), 'route', 'add', ...route]);
    }
  }
  return namespaces;
}

interface Output {
  output: string;
}

function startServer(hosts: Namespaces, kind: ServerKind, id: number): Output {
  const own = join(directory, String(id));
  mkdirSync(join(own, 'data'), { recursive: true });
  writeFileSync(join(own, 'data', 'myid'), String(id));
  const members = IDS.map((n) => `server.${n}=198.18.${n}.1:2888:3888|198.18.${n}.101:2889:3889`);
  const lines = [`dataDir=${own}/data`, 'clientPort=2181', 'tickTime=500', 'initLimit=20', 'syncLimit=6'];
  // The writer's session must survive the time without a leader.
  lines.push('maxSessionTimeout=60000');
  const more = ['multiAddress.enabled=true', 'admin.enableServer=false', '4lw.commands.whitelist=*', 'preAllocSize=64'];
  const configPath = join(own, 'zoo.cfg');
  writeFileSync(configPath, [...lines, ...more, ...members, ''].join('\n'));
  const [command, args] = commandLine(kind, configPath, null, true);
  // Apache's server only reads this one from Java's system properties.
  const properties = kind === 'apache' ? ['-Dzookeeper.multiAddress.enabled=true'] : [];
  return launch(hosts, `zk${id}`, [command, ...properties, ...args]);
}

/** Creates znodes in sequence, through any server. Every server must serve before and after it. */
const WRITER = `
  import { connect } from '@meerkat/client';
  const servers = process.argv[1];
  const connectTo = (where) =>
    connect(where, { sessionTimeoutMs: 60_000, connectTimeoutMs: 60_000, backOff: { minMs: 20, maxMs: 200 } });
  const untilDone = async (ask) => {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (error.code === 'NODEEXISTS') return;
        if (error.code !== 'CONNECTIONLOSS') throw error;
      }
    }
  };
  const eachServer = async (ask) => {
    for (const server of servers.split(',')) {
      const client = await connectTo(server);
      await untilDone(() => client.sync());
      await untilDone(() => ask(client));
      await client.close();
    }
  };
  await eachServer(async () => {});
  const client = await connectTo(servers);
  let isAsked = false;
  process.stdin.once('data', () => (isAsked = true));
  await untilDone(() => client.create('/w'));
  let count = 0;
  while (!isAsked) {
    await untilDone(() => client.create('/w/' + count));
    console.log('acknowledged ' + ++count);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await eachServer(async (client) => {
    const { children } = await client.children('/w');
    if (children.length !== count) throw new Error('of ' + count + ' there are ' + children.length);
  });
  console.log('every server has all');
  process.exit(0);
`;

interface Writer extends Output {
  waitForProgress(): Promise<void>;
  finish(): Promise<void>;
}

function startWriter(hosts: Namespaces): Writer {
  const servers = IDS.map((id) => `198.18.${id}.101:2181`).join(',');
  const output = launch(hosts, 'clients', [process.execPath, '--input-type=module', '-e', WRITER, servers]);
  const child = running.at(-1)!;
  const acknowledged = (): number => Number([...output.output.matchAll(/^acknowledged (\d+)$/gm)].at(-1)?.[1] ?? 0);
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) {
      if (child.exitCode !== null && !holds()) throw new Error(`the writer has ended: ${output.output.slice(-2000)}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  return {
    get output() {
      return output.output;
    },
    async waitForProgress() {
      const aim = acknowledged() + 20;
      await until(() => acknowledged() >= aim);
    },
    async finish() {
      child.stdin!.write('enough');
      await until(() => output.output.includes('every server has all'));
    },
  };
}

function launch(hosts: Namespaces, host: string, command: readonly string[]): Output {
  const [program, ...args] = [...hosts.commandOf(host), ...command];
  const child = spawn(program!, args, { cwd: ROOT, stdio: ['pipe', 'pipe', 'pipe'] });
  running.push(child);
  const output: Output = { output: '' };
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output.output = (output.output + chunk.toString()).slice(-200_000);
    });
  }
  return output;
}

/** Kills the program itself, because `ip netns exec` is replaced by it. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('close', resolve));
  child.kill('SIGKILL');
  await ended;
}

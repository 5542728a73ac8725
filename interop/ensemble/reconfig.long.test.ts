import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Client, ReconfigOptions } from '@meerkat/client';
import { afterEach, describe, expect, onTestFailed, test } from 'vitest';
import { ConsoleProcess } from '../harness/console-process.ts';
import { MEERKAT_COMMAND } from '../harness/meerkat-command.ts';
import { describeWith, isCi, isInstalled } from '../harness/peers.ts';
import { freePort, type ServerKind } from '../harness/server-process.ts';
import { ChangingEnsemble, freePorts } from './changing-ensemble.ts';

let ensemble: ChangingEnsemble | null = null;

afterEach(async () => {
  await ensemble?.dispose();
  ensemble = null;
});

async function start(kinds: readonly ServerKind[], more: readonly string[] = []): Promise<ChangingEnsemble> {
  const started = await ChangingEnsemble.start(kinds, more);
  ensemble = started;
  onTestFailed(() => console.log(started.logs));
  return started;
}

const text = (data: Uint8Array): string => new TextDecoder().decode(data);
const LONG_MS = 240_000;

/** The leader may be removed before it replies, and the next one may still be waiting for its followers. */
async function reconfigUntilDone(
  client: Client,
  change: ReconfigOptions,
  line: string,
  isThere: boolean,
): Promise<void> {
  while (text((await client.config().catch(() => ({ data: new Uint8Array(0) }))).data).includes(line) !== isThere) {
    await client.reconfig(change).catch(() => null);
  }
}

/** Creates znodes in sequence, records which were acknowledged, and holds an ephemeral. */
class LoadingClient {
  readonly #client: Client;
  readonly #name: string;
  readonly #session: bigint | undefined;
  readonly #acknowledged: string[] = [];
  #longestPauseMs = 0;
  #isEnding = false;
  #done: Promise<void> = Promise.resolve();

  static async start(ensemble: ChangingEnsemble, n: number): Promise<LoadingClient> {
    const client = await ensemble.connect();
    await client.create(`/load/own-${n}`, '', { mode: 'ephemeral' });
    const loading = new LoadingClient(client, String(n));
    loading.#done = loading.#write();
    return loading;
  }

  private constructor(client: Client, name: string) {
    this.#client = client;
    this.#name = name;
    this.#session = client.session?.id;
  }

  async #write(): Promise<void> {
    let lastMs = performance.now();
    for (let n = 0; !this.#isEnding; n++) {
      const path = `/load/${this.#name}-${n}`;
      const isAcknowledged = await this.#client.create(path, '').then(
        () => true,
        () => false,
      );
      if (!isAcknowledged) continue;
      this.#acknowledged.push(path);
      this.#longestPauseMs = Math.max(this.#longestPauseMs, performance.now() - lastMs);
      lastMs = performance.now();
    }
  }

  /** @returns the longest time between two acknowledged writes, in milliseconds */
  async end(): Promise<number> {
    this.#isEnding = true;
    await this.#done;
    expect(this.#client.session?.id).toBe(this.#session);
    expect((await this.#client.exists(`/load/own-${this.#name}`))?.ephemeralOwner).toBe(this.#session);
    const found = new Set((await this.#client.children('/load')).children);
    expect(this.#acknowledged.filter((path) => !found.has(path.slice('/load/'.length)))).toEqual([]);
    expect(this.#acknowledged.length).toBeGreaterThan(10);
    await this.#client.close();
    return Math.round(this.#longestPauseMs);
  }
}

/** Retries, because the connection and the reply may be lost. */
async function createUntilDone(client: Client, path: string): Promise<void> {
  while ((await client.exists(path).catch(() => null)) === null) await client.create(path, '').catch(() => null);
}

describe('an ensemble of ours', () => {
  const OURS: readonly ServerKind[] = ['meerkat', 'meerkat', 'meerkat'];

  test(
    'grows from three servers to five, and shrinks to the new ones with their leader',
    async () => {
      const ensemble = await start(OURS);
      await using client = await ensemble.connect();
      const before = await client.config();
      expect(text(before.data)).toMatch(/^server\.1=.*\nserver\.2=.*\nserver\.3=.*\nversion=100000000$/);
      await client.create('/before', 'x');
      for (const id of [4, 5]) {
        const joiner = await ensemble.join(id, 'meerkat', [1, 2, 3]);
        const { data, stat } = await client.reconfig({ joining: [`server.${id}=${joiner.line()}`] });
        expect(text(data)).toContain(`server.${id}=${joiner.line()}`);
        expect(text(data)).toContain(`version=${stat.mzxid.toString(16)}`);
      }
      await client.reconfig({ leaving: [1, 2] });
      for (const id of [1, 2]) {
        await ensemble.server(id).waitForOutput(/is no longer a member of the ensemble/);
        await ensemble.server(id).kill();
      }
      await createUntilDone(client, '/after');
      expect([3, 4, 5]).toContain((await ensemble.leader()).id);
      for (const id of [3, 4, 5]) {
        await using each = await ensemble.connect([id]);
        await each.sync();
        expect(text((await each.config()).data)).toMatch(/^server\.3=.*\nserver\.4=.*\nserver\.5=.*\nversion=/);
        expect(text((await each.get('/before')).data)).toBe('x');
      }
    },
    LONG_MS,
  );

  test(
    'removes its leader, which logs it, and its clients keep their sessions',
    async () => {
      const ensemble = await start(OURS);
      await using client = await ensemble.connect();
      const session = client.session?.id;
      await client.create('/ephemeral', '', { mode: 'ephemeral' });
      const leader = await ensemble.leader();
      await client.reconfig({ leaving: [leader.id] }).catch(() => null);
      await leader.waitForOutput(/is no longer a member of the ensemble/);
      await createUntilDone(client, '/after');
      expect((await ensemble.leader()).id).not.toBe(leader.id);
      expect(client.session?.id).toBe(session);
      expect((await client.exists('/ephemeral'))?.ephemeralOwner).toBe(session);
      // It follows without a vote, and after a restart it reports what is wrong.
      await leader.waitFor(/follower/);
      await leader.kill('SIGTERM');
      leader.launch();
      await leader.waitForOutput(/myid.*an id that .* lists/s);
    },
    LONG_MS,
  );

  test(
    'makes a voter an observer and an observer a voter',
    async () => {
      const ensemble = await start(OURS);
      await using client = await ensemble.connect();
      const leader = await ensemble.leader();
      const other = ensemble.server(leader.id === 1 ? 2 : 1);
      await client.reconfig({ joining: [`server.${other.id}=${other.line('observer')}`] });
      await other.waitFor(/observer/);
      await client.reconfig({ joining: [`server.${other.id}=${other.line('participant')}`] }).catch(() => null);
      await client.reconfig({ joining: [`server.${other.id}=${other.line('participant')}`] });
      await other.waitFor(/follower|leader/);
    },
    LONG_MS,
  );

  test(
    'moves a server to other ports, client port included, and then its leader',
    async () => {
      const ensemble = await start(OURS);
      await using client = await ensemble.connect();
      const leader = await ensemble.leader();
      const follower = ensemble.server(leader.id === 1 ? 2 : 1);
      for (const server of [follower, leader]) {
        const ports = await freePorts();
        await client
          .reconfig({ joining: [`server.${server.id}=${server.line('participant', ports)}`] })
          .catch(() => null);
        server.ports = ports;
        await server.waitFor(/leader|follower/);
        expect(server.staticText).toMatch(/^dynamicConfigFile=.*zoo\.cfg\.dynamic\.\w+$/m);
      }
      await createUntilDone(client, '/after');
      for (const server of ensemble.servers.values()) await server.kill();
      for (const server of ensemble.servers.values()) server.launch();
      for (const server of ensemble.servers.values()) await server.waitFor(/leader|follower/);
      await using again = await ensemble.connect();
      expect(await again.exists('/after')).not.toBeNull();
      for (const server of ensemble.servers.values()) expect(server.dynamicText).toContain(follower.line());
    },
    LONG_MS,
  );

  test(
    'replaces all three machines under load with `meerkat members apply`: no write, session or ephemeral is lost',
    async () => {
      const ensemble = await start(OURS);
      for (const id of [4, 5, 6]) await ensemble.add(id, 'meerkat');
      await using operator = await ensemble.connect();
      await operator.create('/load', '');
      const load = await Promise.all([1, 2, 3, 4].map((n) => LoadingClient.start(ensemble, n)));
      const [program, ...args] = MEERKAT_COMMAND;
      for (const id of [1, 2, 3]) {
        const change = ['--add', `${id + 3}=${ensemble.server(id + 3).line()}`, '--remove', String(id)];
        const where = ['--server', ensemble.connectString(), '--auth', 'digest:super:test'];
        const applied = promisify(execFile)(program, [...args, 'members', 'apply', ...change, ...where]);
        const rest = [...ensemble.servers.keys()].filter((other) => other >= id && other < id + 3);
        await ensemble.join(id + 3, 'meerkat', rest);
        await applied;
        await ensemble.server(id).kill('SIGTERM');
      }
      const pauses = await Promise.all(load.map((client) => client.end()));
      console.log(`the longest pause of a client: ${Math.max(...pauses)} ms`);
      expect(text((await operator.config()).data)).toMatch(/^server\.4=.*\nserver\.5=.*\nserver\.6=.*\nversion=/);
    },
    LONG_MS,
  );

  test(
    'grows, shrinks and grows again with the old data directories',
    async () => {
      const ensemble = await start(OURS);
      await using client = await ensemble.connect();
      for (const round of [1, 2]) {
        for (const id of [4, 5]) {
          // It has its data of the first round, and gets a member list that includes itself.
          const joiner = await ensemble.join(id, 'meerkat', [1, 2, 3]);
          await reconfigUntilDone(client, { joining: [`server.${id}=${joiner.line()}`] }, `server.${id}=`, true);
        }
        await createUntilDone(client, `/five-${round}`);
        await reconfigUntilDone(client, { leaving: [4, 5] }, 'server.4=', false);
        await createUntilDone(client, `/three-${round}`);
        for (const id of [4, 5]) await ensemble.server(id).kill();
      }
      for (const id of [4, 5]) {
        const joiner = await ensemble.join(id, 'meerkat', [1, 2, 3]);
        await reconfigUntilDone(client, { joining: [`server.${id}=${joiner.line()}`] }, `server.${id}=`, true);
        await using own = await ensemble.connect([id]);
        expect((await own.children('/')).children.toSorted()).toEqual([
          'five-1',
          'five-2',
          'three-1',
          'three-2',
          'zookeeper',
        ]);
      }
    },
    LONG_MS,
  );

  test(
    'adds second addresses to its members and removes the first ones, one by one and all at once',
    async () => {
      const ensemble = await start(OURS, ['multiAddress.enabled=true']);
      await using client = await ensemble.connect();
      const first = (id: number): string =>
        `127.0.0.1:${ensemble.server(id).ports.quorum}:${ensemble.server(id).ports.election}`;
      const second = new Map<number, string>();
      for (const id of [1, 2, 3]) second.set(id, `[0:0:0:0:0:0:0:1]:${await freePort()}:${await freePort()}`);
      const line = (id: number, ...addresses: readonly string[]): string =>
        `server.${id}=${addresses.join('|')}:participant;${ensemble.server(id).address}`;
      const change = async (options: ReconfigOptions, text: string, isThere: boolean, round: string): Promise<void> => {
        await reconfigUntilDone(client, options, text, isThere);
        await createUntilDone(client, `/${round}`);
        for (const id of [1, 2, 3]) {
          await using own = await ensemble.connect([id]);
          await own.sync();
          expect(await own.exists(`/${round}`)).not.toBeNull();
        }
      };
      for (const id of [1, 2, 3]) {
        await change({ joining: [line(id, first(id), second.get(id)!)] }, second.get(id)!, true, `both-${id}`);
      }
      await change({ joining: [line(3, second.get(3)!)] }, first(3), false, 'second-3');
      const seconds = [1, 2, 3].map((id) => line(id, second.get(id)!));
      await change({ members: seconds }, first(1), false, 'second');
      const all = [1, 2, 3].map((id) => line(id, first(id), second.get(id)!));
      await change({ members: all }, first(1), true, 'both');
    },
    LONG_MS,
  );
});

describeWith(['apache'], 'with servers of Apache', () => {
  test.each([[['apache', 'apache', 'meerkat']], [['meerkat', 'meerkat', 'apache']]] as const)(
    '%j: members join and leave under either leader',
    async (kinds) => {
      const ensemble = await start(kinds);
      await using client = await ensemble.connect();
      await client.create('/before', 'x');
      const ours = await ensemble.join(4, 'meerkat', [1, 2, 3]);
      await client.reconfig({ joining: [`server.4=${ours.line()}`] });
      const theirs = await ensemble.join(5, 'apache', [1, 2, 3]);
      await client.reconfig({ joining: [`server.5=${theirs.line()}`] });
      for (let round = 0; round < 2; round++) {
        const leader = await ensemble.leader();
        await client.reconfig({ leaving: [leader.id] }).catch(() => null);
        await createUntilDone(client, `/without-${leader.id}`);
        await leader.kill();
        ensemble.servers.delete(leader.id);
        await ensemble.leader();
      }
      const texts = await Promise.all(
        [...ensemble.servers.keys()].map(async (id) => {
          await using each = await ensemble.connect([id]);
          await each.sync();
          expect(text((await each.get('/before')).data)).toBe('x');
          return text((await each.config()).data);
        }),
      );
      expect(new Set(texts).size).toBe(1);
      expect(texts[0]!.match(/^server\./gm)).toHaveLength(3);
      // Apache's server continues with the files written by ours.
      const exchanged = [...ensemble.servers.values()].find(({ kind }) => kind === 'meerkat')!;
      await exchanged.kill('SIGTERM');
      expect(exchanged.dynamicText).toMatch(/^# version \w+, crc32 \w{8} of the lines below\nserver\./);
      exchanged.kind = 'apache';
      exchanged.launch();
      await exchanged.waitFor(/leader|follower/);
      await using each = await ensemble.connect([exchanged.id]);
      expect(text((await each.config()).data)).toBe(texts[0]);
    },
    LONG_MS,
  );
});

describeWith(['zkCli'], 'the shell of Apache', () => {
  test(
    'adds, removes and replaces members of ours, and shows them',
    async () => {
      const ensemble = await start(['meerkat', 'meerkat', 'meerkat']);
      const joiner = await ensemble.join(4, 'meerkat', [1, 2, 3]);
      const shell = new ConsoleProcess('/usr/share/zookeeper/bin/zkCli.sh', ['-server', ensemble.connectString([1])]);
      await shell.waitFor(/state:SyncConnected.*\n/);
      shell.send(`reconfig -add server.4=${joiner.line()}`);
      await shell.waitFor(/(Insufficient permission|NoAuth)/i);
      shell.send('addauth digest super:test');
      shell.send(`reconfig -add server.4=${joiner.line()}`);
      await shell.waitFor(/Committed new configuration:[\s\S]*server\.4=/);
      shell.send('config -w');
      await shell.waitFor(/server\.4=[\s\S]*version=/);
      shell.send('reconfig -remove 4 -v 1');
      await shell.waitFor(/version/i);
      expect(shell.output).not.toContain('NodeDataChanged');
      shell.send('reconfig -remove 4');
      await shell.waitFor(/type:NodeDataChanged path:\/zookeeper\/config/);
      shell.send('quit');
      await shell.end();
      await using client = await ensemble.connect([1, 2, 3]);
      expect(text((await client.config()).data)).not.toContain('server.4=');
    },
    LONG_MS,
  );
});

if (isInstalled('kazoo') || isCi()) {
  test(
    "kazoo's reconfig changes the membership, and is refused without the right to",
    async () => {
      const ensemble = await start(['meerkat', 'meerkat', 'meerkat']);
      const joiner = await ensemble.join(4, 'meerkat', [1, 2, 3]);
      const kazoo = async (...args: readonly string[]): Promise<string> => {
        const script = fileURLToPath(new URL('../kazoo/reconfig.py', import.meta.url));
        const { stdout } = await promisify(execFile)('/usr/bin/python3', [
          script,
          ensemble.connectString([1, 2, 3]),
          ...args,
        ]);
        return stdout;
      };
      expect(await kazoo('-', `server.4=${joiner.line()}`, '-', '-1')).toContain('refused NoAuthError');
      expect(await kazoo('test', `server.4=${joiner.line()}`, '-', '-1')).toMatch(/committed .*server\.4=/);
      expect(await kazoo('test', '-', '4', '1')).toContain('refused BadVersionError');
      expect(await kazoo('test', '-', '4', '-1')).toMatch(/committed (?!.*server\.4=)/);
    },
    LONG_MS,
  );
}

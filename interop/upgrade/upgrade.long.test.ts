import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import { type Client, connect } from '@meerkat/client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MEERKAT_COMMAND } from '../harness/meerkat-command.ts';
import { freePort, ServerProcess } from '../harness/server-process.ts';
import { Program } from '../install/single-file.ts';
import { oldServer, RELEASE, readExpected, record, unpack, untilServing } from './fixture.ts';
import { dumpTree } from './tree.ts';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'meerkat-upgrade-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Expects the previous release's directory to be served, with every znode unchanged, and its session to resume. */
async function expectServed(): Promise<void> {
  const { znodes, session } = readExpected();
  await using server = await ServerProcess.start('meerkat', { directory, config: { maxSessionTimeout: 100_000_000 } });
  await using client = await connect(`127.0.0.1:${server.port}`, { session, sessionTimeoutMs: 86_400_000 });
  expect(client.session?.id).toBe(session.id);
  expect(await dumpTree(client)).toEqual(znodes);
  await client.create('/after', 'the upgrade');
}

/** Three members on one machine, each running the old or the new program. */
class Members implements AsyncDisposable {
  readonly #old: readonly string[] = oldServer(directory);
  readonly #ports: number[] = [];
  readonly #programs = new Map<number, Program>();

  static async start(): Promise<Members> {
    const members = new Members();
    const ports: number[] = [];
    for (let i = 0; i < 9; i++) ports.push(await freePort());
    members.#ports.push(...ports.slice(0, 3));
    const list = [1, 2, 3].map((id) => `server.${id}=127.0.0.1:${ports[id + 2]}:${ports[id + 5]}`);
    for (const id of [1, 2, 3]) {
      const own = join(directory, String(id));
      mkdirSync(join(own, 'data'), { recursive: true });
      writeFileSync(join(own, 'data/myid'), String(id));
      const lines = [
        ...['dataDir=data', `clientPort=${ports[id - 1]}`, 'clientPortAddress=127.0.0.1', 'admin.enableServer=false'],
        ...['tickTime=1000', 'initLimit=30', 'syncLimit=15', 'preAllocSize=1024', ...list],
      ];
      writeFileSync(join(own, 'zoo.cfg'), lines.join('\n'));
    }
    return members;
  }

  get address(): string {
    return this.#ports.map((port) => `127.0.0.1:${port}`).join(',');
  }

  run(id: number, release: 'old' | 'new'): void {
    const words = release === 'old' ? this.#old : [...MEERKAT_COMMAND, 'server'];
    this.#programs.set(id, new Program([...words, 'zoo.cfg'], join(directory, String(id)), process.env));
  }

  async modes(): Promise<readonly string[]> {
    return Promise.all([1, 2, 3].map((id) => untilServing(this.#portOf(id), this.#programOf(id))));
  }

  /** Replaces a member as in an upgrade: stops it gracefully and starts the other program on its directory. */
  async replace(id: number, release: 'old' | 'new'): Promise<void> {
    expect(await this.#programOf(id).stop()).toBe(0);
    this.run(id, release);
    await this.modes();
  }

  /** Writes through each member and reads at the others. */
  async write(step: string): Promise<void> {
    for (const id of [1, 2, 3]) {
      await using client = await connect(`127.0.0.1:${this.#portOf(id)}`, {
        sessionTimeoutMs: 30_000,
        connectTimeoutMs: 60_000,
      });
      await client.create(`/${step}-${id}`, step);
    }
  }

  async dumps(): Promise<readonly unknown[]> {
    const dumps: unknown[] = [];
    for (const id of [1, 2, 3]) {
      await using client = await connect(`127.0.0.1:${this.#portOf(id)}`, {
        sessionTimeoutMs: 30_000,
        connectTimeoutMs: 60_000,
      });
      await client.sync('/');
      dumps.push(await dumpTree(client));
    }
    return dumps;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const program of this.#programs.values()) await program[Symbol.asyncDispose]();
  }

  #portOf(id: number): number {
    return this.#ports[id - 1] ?? 0;
  }

  #programOf(id: number): Program {
    const program = this.#programs.get(id);
    if (program === undefined) throw new Error(`member ${id} was never started`);
    return program;
  }
}

if (env['RECORD'] === 'release') {
  test('records the fixture', () => record(directory, MEERKAT_COMMAND));
} else {
  test(`a data directory of ${RELEASE}, whose server was killed, is served with every znode and session`, async () => {
    unpack('data', join(directory, 'data'));
    await expectServed();
  });

  test(`a backup of a directory of ${RELEASE} is restored with every znode and session`, async () => {
    const backup = join(directory, 'backup');
    unpack('backup', backup);
    const [program, ...words] = MEERKAT_COMMAND;
    const into = ['restore', backup, '--into', join(directory, 'data')];
    expect(spawnSync(program, [...words, ...into], { encoding: 'utf8' })).toMatchObject({ status: 0 });
    await expectServed();
  });

  test(`members of ${RELEASE} are replaced one by one, and back, under a client that keeps its session`, async () => {
    await using members = await Members.start();
    for (const id of [1, 2, 3]) members.run(id, 'old');
    await members.modes();
    await using client: Client = await connect(members.address, { sessionTimeoutMs: 60_000, connectTimeoutMs: 60_000 });
    const session = client.session?.id;
    await client.create('/here', '', { mode: 'ephemeral' });
    await members.write('old');
    // The leader is replaced last, and on the way back first, so that both programs lead at some time.
    const order = (await members.modes()).map((mode, i) => ({ id: i + 1, isLeader: mode === 'leader' }));
    order.sort((a, b) => Number(a.isLeader) - Number(b.isLeader));
    for (const { id } of order) {
      await members.replace(id, 'new');
      await members.write(`new-${id}`);
    }
    for (const { id } of order.toReversed()) {
      await members.replace(id, 'old');
      await members.write(`back-${id}`);
    }
    const [first, ...others] = await members.dumps();
    for (const other of others) expect(other).toEqual(first);
    expect(client.session?.id).toBe(session);
    expect((await client.children('/')).children.filter((name) => /^(old|new|back)-/.test(name))).toHaveLength(21);
    expect(await client.exists('/here')).not.toBeNull();
  });
}

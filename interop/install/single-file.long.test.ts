import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, text } from '@meerkat/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { fourLetterWord, freePort } from '../harness/server-process.ts';
import { fetchArm64Libraries } from './arm64-libraries.ts';
import { BARE, buildSingleFile, Program } from './single-file.ts';

describeWith(['packagingTools'], 'the single executable, without Node.js installed', () => {
  let directory = '';
  let meerkat = '';

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'meerkat-single-'));
    meerkat = join(directory, 'meerkat');
    buildSingleFile(meerkat, 'x64');
  });

  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  function run(args: readonly string[], input = ''): { status: number | null; stdout: string; stderr: string } {
    return spawnSync(meerkat, args, { cwd: directory, env: BARE, input, encoding: 'utf8' });
  }

  function place(name: string): string {
    const own = join(directory, name);
    mkdirSync(own);
    return own;
  }

  /** Starts a server and waits until its admin port reports that it is ready. */
  async function serve(
    own: string,
    lines: readonly string[] = [],
  ): Promise<{ server: Program; port: number; admin: number }> {
    const [port, admin, metrics] = [await freePort(), await freePort(), await freePort()];
    const config = [
      ...['dataDir=data', `clientPort=${port}`, 'clientPortAddress=127.0.0.1', `admin.serverPort=${admin}`],
      'console.enabled=true',
      'metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider',
      ...['metricsProvider.httpHost=127.0.0.1', `metricsProvider.httpPort=${metrics}`, ...lines],
    ];
    writeFileSync(join(own, 'zoo.cfg'), config.join('\n'));
    const server = new Program([meerkat, 'server', 'zoo.cfg'], own, { ...BARE, MEERKAT_LOG: 'json' });
    const ask = async (url: string): Promise<string> => await (await fetch(url)).text().catch(() => '');
    await expect.poll(() => ask(`http://127.0.0.1:${admin}/readyz`).catch(() => server.output)).toBe('ok');
    expect(await ask(`http://127.0.0.1:${metrics}/metrics`)).toContain('\nznode_count ');
    // The console page is included, with its files.
    const page = await ask(`http://127.0.0.1:${admin}/console/`);
    const [, script = ''] = /<script [^>]*src="\.\/(assets\/[^"]+)"/.exec(page) ?? [];
    expect((await ask(`http://127.0.0.1:${admin}/console/${script}`)).length, page).toBeGreaterThan(100_000);
    return { server, port, admin };
  }

  /** The history from a server's console, where a thread reads the log. */
  async function historyOf(path: string, admin: number): Promise<unknown> {
    const api = `http://127.0.0.1:${admin}/console/api`;
    const cookieOf = ({ headers }: Response): string => headers.getSetCookie()[0]?.split(';')[0] ?? '';
    const hello = await fetch(`${api}/hello`);
    const { csrf } = (await hello.json()) as { csrf: string };
    const headers = { cookie: cookieOf(hello), 'x-meerkat-csrf': csrf, 'content-type': 'application/json' };
    const login = await fetch(`${api}/c/service/login`, { method: 'POST', headers, body: '{"method":"none"}' });
    expect(login.status).toBe(200);
    const url = `${api}/c/service/history?path=${path}`;
    return await (await fetch(url, { headers: { cookie: cookieOf(login) } })).json();
  }

  test('is smaller than 125 MB', () => {
    expect(statSync(meerkat).size).toBeLessThan(125e6);
  });

  test('has every command', () => {
    const help = run(['--help']).stdout;
    const names = [...help.matchAll(/^ {2}(\S+) {2,}/gm)]
      .map(([, name = '']) => name)
      .filter((name) => !name.startsWith('-'));
    expect(names.length).toBeGreaterThan(30);
    for (const name of names) {
      expect(run([name, '--help']), name).toMatchObject({
        status: 0,
        stdout: expect.stringContaining(`meerkat ${name}`),
      });
    }
    expect(run(['completion', 'bash']).stdout).toContain('complete -F _meerkat meerkat');
  });

  test('serves clients, the admin port and Prometheus, and keeps all data over a restart', async () => {
    const own = place('server');
    const at = async (
      lines: readonly string[],
      step: (address: string, admin: number) => Promise<void>,
    ): Promise<void> => {
      const { server, port, admin } = await serve(own, lines);
      await using running = server;
      await step(`127.0.0.1:${port}`, admin);
      expect(await running.stop()).toBe(0);
      expect(running.output).toContain('everything acknowledged is synced');
      expect(running.output).not.toContain('I/O thread');
    };
    await at([], async (address, admin) => {
      expect(run(['create', '--server', address, '/greeting', 'hello'])).toMatchObject({
        status: 0,
        stdout: '/greeting\n',
      });
      expect(run(['shell', '--server', address], 'ls /\nquit\n').stdout).toContain('greeting');
      expect(run(['complete', '--', 'get', '--server', address, '/gree']).stdout).toContain('/greeting');
      expect(run(['lock', '--server', address, '/lock', '--', '/bin/echo', 'held'])).toMatchObject({
        status: 0,
        stdout: 'held\n',
      });
      expect(run(['status', '--server', address]).stdout).toContain('standalone');
      expect(await historyOf('/greeting', admin)).toMatchObject({ entries: [{ change: 'created' }] });
    });
    await at(['clientThreads=2'], async (address) => {
      await using client = await connect(address);
      expect((await client.get('/greeting', { codec: text })).data).toBe('hello');
    });
  });

  test.each(['mjs', 'cjs'])('loads a custom authentication scheme from a .%s file', async (ending) => {
    const own = place(`scheme-${ending}`);
    const provider =
      "{ scheme: 'badge', authenticate: (auth) => [{ scheme: 'badge', id: Buffer.from(auth).toString() }] }";
    const statement = ending === 'mjs' ? 'export default' : 'module.exports =';
    writeFileSync(join(own, `badge.${ending}`), `${statement} ${provider};\n`);
    const { server, port } = await serve(own, [`authProvider.1=${join(own, `badge.${ending}`)}`]);
    await using running = server;
    await using client = await connect(`127.0.0.1:${port}`);
    await client.addAuth('badge', 'ann');
    expect(await client.whoAmI()).toContainEqual({ scheme: 'badge', user: 'ann' });
    expect(await running.stop()).toBe(0);
  });

  test('runs the members of an ensemble with TLS', async () => {
    const own = place('up');
    await using up = new Program([meerkat, 'up', '3', '--tls', '--port', String(await freePort())], own);
    await expect.poll(() => up.output, { timeout: 120_000 }).toMatch(/leader {2,}epoch 1[\s\S]*connect to/);
    up.child.stdin?.write('kill leader\n');
    await expect.poll(() => up.output, { timeout: 120_000 }).toMatch(/was killed[\s\S]*leader {2,}epoch [2-9]/);
    up.child.stdin?.end('quit\n');
    expect(await up.exited).toBe(0);
  });
});

describeWith(['packagingTools', 'qemu'], 'the single executable for arm64, emulated', () => {
  test('serves a client', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'meerkat-arm64-'));
    try {
      const meerkat = join(directory, 'meerkat');
      buildSingleFile(meerkat, 'arm64');
      const emulator = ['qemu-aarch64-static', '-L', fetchArm64Libraries(directory)];
      const port = await freePort();
      const env = { ...BARE, PATH: process.env['PATH'] };
      await using server = new Program([...emulator, meerkat, 'server', String(port), 'data'], directory, env);
      await expect
        .poll(() => fourLetterWord(port, 'srvr').catch(() => server.output), { timeout: 120_000 })
        .toContain('Mode: standalone');
      await using client = await connect(`127.0.0.1:${port}`);
      await client.create('/a', 'b');
      expect((await client.get('/a', { codec: text })).data).toBe('b');
      expect(await server.stop()).toBe(0);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});

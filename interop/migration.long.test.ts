import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect } from '@meerkat/client';
import { expect, test } from 'vitest';
import { Ensemble } from './ensemble/ensemble.ts';
import { startWriter } from './ensemble/load.ts';
import { MEERKAT_COMMAND } from './harness/meerkat-command.ts';
import { describeWith } from './harness/peers.ts';

/*
 * Runs docs/migration.md from top to bottom: `sh` blocks are run by a shell, blocks with a file name are written to it.
 * Machines are loopback addresses; `ssh` stops and starts the servers of this test. Clients write continuously.
 */
const PAGE = fileURLToPath(new URL('../docs/migration.md', import.meta.url));

interface Block {
  readonly file: string | null;
  readonly text: string;
}

function readBlocks(): Block[] {
  const page = readFileSync(PAGE, 'utf8');
  return [...page.matchAll(/^```sh(?: file=(\S+))?\n([\s\S]*?)^```$/gm)].map(([, file = null, text = '']) => ({
    file,
    text,
  }));
}

describeWith(['apache'], 'docs/migration.md', () => {
  test('migrates from Apache to Meerkat and back under load, without losing a write or session', async () => {
    const place = { kind: 'apache' } as const;
    // All addresses of 127.0.0.0/8 are this machine.
    const config = { clientPortAddress: '0.0.0.0', maxSessionTimeout: 60_000 };
    const ensemble = await Ensemble.start([place, place, place], config);
    const home = mkdtempSync(join(tmpdir(), 'migration-'));
    const hosts = ensemble.members.map(({ id, server }) => ({ host: `127.0.0.${id}`, server }));
    const orders: string[] = [];
    const control = createServer((request, response) => {
      const [, host, verb, unit] = (request.url ?? '').split('/');
      orders.push(`${verb} ${unit} at ${host}`);
      const { server } = hosts.find((known) => known.host === host)!;
      const done = verb === 'stop' ? server.stop() : server.restart(unit === 'meerkat' ? 'meerkat' : 'apache');
      done.then(
        () => response.end(),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
    });
    await once(control.listen(0, '127.0.0.1'), 'listening');
    try {
      mkdirSync(join(home, 'bin'));
      mkdirSync(join(home, '.config', 'meerkat'), { recursive: true });
      const servers = hosts.map(({ host, server }) => `${host}:${server.port}`).join(',');
      const profiles = { profiles: { prod: { server: servers, sessionTimeout: '30s' } } };
      writeFileSync(join(home, '.config', 'meerkat', 'profiles.json'), JSON.stringify(profiles));
      writeFileSync(
        join(home, 'bin', 'meerkat'),
        `#!/bin/sh\nexec ${MEERKAT_COMMAND.map((word) => `"${word}"`).join(' ')} "$@"\n`,
      );
      const url = `http://127.0.0.1:${(control.address() as AddressInfo).port}`;
      const ssh = `const [host,,,verb,unit]=process.argv.slice(2);const r=await fetch('${url}/'+host+'/'+verb+'/'+unit);if(!r.ok)throw new Error(await r.text())`;
      writeFileSync(join(home, 'bin', 'ssh.mjs'), ssh);
      writeFileSync(
        join(home, 'bin', 'ssh'),
        `#!/bin/sh\nexec "${process.execPath}" "${join(home, 'bin', 'ssh.mjs')}" "$@"\n`,
      );
      for (const name of ['meerkat', 'ssh']) chmodSync(join(home, 'bin', name), 0o755);
      const env = {
        PATH: `${join(home, 'bin')}:${dirname(process.execPath)}:${process.env['PATH']}`,
        HOME: home,
        ZOO_CFG: join(hosts[0]!.server.directory, 'zoo.cfg'),
      };

      const writer = await startWriter(servers, '/load', 30_000);
      const printed: string[] = [];
      for (const { file, text } of readBlocks()) {
        if (file !== null) writeFileSync(join(home, file), text);
        else printed.push(await play(text, home, env));
      }
      const written = await writer.finish();
      const all = printed.join('\n');
      console.log(all);

      // Findings from the running servers, and from the files of one.
      const found = [...all.matchAll(/^(?:fact|change|stop) {2,}\S+ +(.*)$/gm)].map(([, text = '']) => text);
      expect(found.slice(0, 3).toSorted()).toEqual(['3.8.0, follower', '3.8.0, follower', '3.8.0, leader']);
      expect(found.slice(3)).toEqual([
        expect.stringMatching(/^\d+ znodes of \d+ bytes, 1 ephemerals, 0 watches, 1 sessions$/),
        expect.stringMatching(/^a server of Meerkat will take about \d+ MB of memory/),
        'every line takes effect',
        expect.stringMatching(/^\d+ snapshots, \d+ logs with \d+ txns$/),
        expect.stringMatching(/^\d+ znodes of \d+ B, /),
      ]);

      const stops = orders.filter((order) => order.startsWith('stop'));
      expect(stops.map((order) => order.split(' ')[1])).toEqual([
        ...Array(3).fill('zookeeper'),
        ...Array(3).fill('meerkat'),
      ]);
      expect(new Set(stops).size).toBe(6);
      // Each rolling restart reports three servers, and the pauses of its probe.
      const rolled = [...all.matchAll(/^127\.0\.0\.\d:\d+ +(?:leader|follower) +(3\.\S+) +(3\.\S+) +\d+ +\d+/gm)];
      expect(
        rolled.map(([, before = '', after = '']) => [before.includes('meerkat'), after.includes('meerkat')]),
      ).toEqual([...Array(3).fill([false, true]), ...Array(3).fill([true, false])]);
      expect(all).toMatch(/a client saw a pause of \d+ ms at most .*; its session was kept/);

      // Every acknowledged write exists, and the writer's session still owns its ephemerals.
      await using client = await connect(servers);
      const { children } = await client.children('/load');
      expect(children.filter((name) => !['register', 'mine'].includes(name))).toHaveLength(written.count);
      expect((await client.get('/load/mine')).stat.ephemeralOwner).toBe(written.session);
      await writer[Symbol.asyncDispose]();
    } finally {
      control.close();
      await ensemble.dispose();
      rmSync(home, { recursive: true, force: true });
    }
  });
});

/** @returns the output; rejects when the exit code is not 0 */
async function play(text: string, cwd: string, env: Readonly<Record<string, string>>): Promise<string> {
  const child = spawn('/bin/sh', ['-e', '-c', text], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`exit code ${code}:\n${text}\n${output}`);
  return `${text.replace(/^/gm, '$ ')}\n${output}`;
}

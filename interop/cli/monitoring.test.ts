import { connect } from '@meerkat/client';
import { Mutex } from '@meerkat/recipes';
import { expect, test } from 'vitest';
import { MEERKAT_COMMAND } from '../harness/meerkat-command.ts';
import { describeWith } from '../harness/peers.ts';
import { freePort, SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';
import { type Ended, RunningCommand } from './harness.ts';
import { Terminal } from './shell/terminal.ts';

function run(...args: string[]): Promise<Ended> {
  return new RunningCommand(args, {}, false).ended;
}

describeWith(['apache'], 'the monitoring commands', () => {
  test.each(SERVER_KINDS)('report on a server of %s, and that another one is down', async (kind) => {
    await using server = await ServerProcess.start(kind);
    const client = await connect({ servers: `127.0.0.1:${server.port}` });
    const session = `0x${client.session?.id.toString(16)}`;
    await client.create('/e', 'x', { mode: 'ephemeral' });
    await client.get('/e', { watch: true });
    // A busy machine may take longer than the three seconds of the commands.
    const here = ['--server', `127.0.0.1:${server.port}`, '--timeout', '60s'];
    const missing = `127.0.0.1:${await freePort()}`;

    const status = await run('status', ...here, '-o', 'json');
    expect(status.exitCode).toBe(0);
    expect(JSON.parse(status.stdout)).toMatchObject([{ role: 'standalone', lag: 0, problem: null, znodes: 6 }]);
    expect((await run('status', ...here)).stdout).toMatch(
      /^server +role +version .*\n127\.0\.0\.1:\d+ +standalone +3\./,
    );

    // On a busy machine the first requests are so slow that `health` would report them.
    expect(await run('4lw', 'srst', ...here)).toMatchObject({ exitCode: 0, stdout: 'Server stats reset.\n' });
    expect(await run('health', ...here)).toMatchObject({ exitCode: 0 });
    const half = await run('health', '--server', `127.0.0.1:${server.port},${missing}`, '--timeout', '60s');
    expect(half.exitCode).toBe(1);
    expect(half.stdout).toContain(`${missing}: nothing listens there`);
    expect(await run('health', '--server', missing)).toMatchObject({ exitCode: 3 });

    const sessions = await run('sessions', ...here, '-o', 'json');
    expect(JSON.parse(sessions.stdout)).toMatchObject([
      { session, lastOperation: expect.any(String), timeoutMs: expect.any(Number) },
    ]);
    const ephemerals = await run('ephemerals', ...here, '-o', 'fields');
    expect(ephemerals.stdout).toBe(`/e\t${session}\n`);
    const watches = await run('watches', ...here, '-o', 'json', '--session', session);
    expect(JSON.parse(watches.stdout)).toMatchObject([{ path: '/e', session }]);

    const word = await run('4lw', 'ruok', ...here);
    expect(word).toMatchObject({ exitCode: 0, stdout: 'imok\n' });
    expect(await run('4lw', 'nope!', ...here)).toMatchObject({ exitCode: 2 });
    const once = await run('top', '--count', '2', '--every', '50ms', '--timeout', '60s', ...here);
    expect(once.stdout).toMatch(/^1 of 1 servers serve · \d+ requests\/s · \d+ connections\n/);
    await client.close();
  });

  test('a word that a server does not allow is reported with what to do', async () => {
    await using server = await ServerProcess.start('meerkat', { config: { '4lw.commands.whitelist': 'srvr' } });
    const ended = await run('sessions', '--server', `127.0.0.1:${server.port}`);
    expect(ended.exitCode).toBe(3);
    expect(ended.stderr).toContain('does not allow cons: add it to 4lw.commands.whitelist');
  });

  test('who-blocks shows the holder and the waiters of a lock', async () => {
    await using server = await ServerProcess.start('meerkat');
    const servers = `127.0.0.1:${server.port}`;
    const holder = await connect({ servers });
    const waiter = await connect({ servers });
    const held = await new Mutex(holder, '/locks/job').acquire();
    const waiting = new Mutex(waiter, '/locks/job').acquire();
    await expect.poll(async () => (await holder.children('/locks/job')).children.length).toBe(2);
    const ended = await run('who-blocks', '/locks/job', '--server', servers, '-o', 'json');
    const line = JSON.parse(ended.stdout) as { place: number; session: string; client: string }[];
    expect(line.map(({ place, session }) => [place, session])).toEqual([
      [1, `0x${holder.session?.id.toString(16)}`],
      [2, `0x${waiter.session?.id.toString(16)}`],
    ]);
    expect(line[0]?.client).toMatch(/^127\.0\.0\.1:\d+$/);
    await held.release();
    await (await waiting).release();
    expect(await run('who-blocks', '/locks/job', '--server', servers)).toMatchObject({ exitCode: 1 });
    await Promise.all([holder.close(), waiter.close()]);
  });
});

describeWith(['tmux'], 'top in a terminal of 80 × 24', () => {
  test('redraws one screen, in which every line fits', async () => {
    await using server = await ServerProcess.start('meerkat');
    const args = [...MEERKAT_COMMAND, 'top', '--server', `127.0.0.1:${server.port}`, '--every', '100ms'];
    await using terminal = await Terminal.start(args, { HOME: '/nonexistent' });
    // The screen may be read while it is redrawn.
    const plot = /requests\/s +latency, ms\n127\.0\.0\.1:\d+ +[▁-█]{4}/;
    const row = /^127\.0\.0\.1:\d+ +standalone +\d+ +[\d.]+ +\d+ +\d+ +\d+ +0 +5$/m;
    const screen = await terminal.until('a plot and a row', (text) => plot.test(text) && row.test(text));
    expect(screen.match(/servers serve/g)).toHaveLength(1);
    expect(Math.max(...screen.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(screen).toMatch(/^server +role +req\/s avg ms max ms +conns +queue +lag +znodes$/m);
  });
});

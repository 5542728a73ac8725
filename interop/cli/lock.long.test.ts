import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { TcpProxy } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { ForeignProgram } from '../recipes/harness.ts';
import { describeCli, type RunningCommand } from './harness.ts';

/** Prints that it runs, and continues until it gets SIGTERM. */
const UNTIL_TOLD = "trap 'echo told; exit 3' TERM; echo runs; while :; do sleep 0.05; done";
/** Appends to a file while it runs, and ignores SIGTERM. */
const STUBBORN = 'trap \'\' TERM; echo runs; while :; do echo "$NAME" >> "$LOG"; sleep 0.02; done';

/** Short for fast tests, but long enough for a busy machine. */
const SHORT_SESSION = ['--session-timeout', '4s', '--kill-after', '500ms', '--margin', '1s'];

function untilRuns(command: RunningCommand): Promise<void> {
  return command.until('its child runs', ({ stdout }) => stdout.includes('runs\n'));
}

/** Whether a process exists and is not a zombie. */
function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

async function untilDead(pid: number): Promise<void> {
  while (isAlive(pid)) await sleep(10);
}

describeCli(
  'meerkat lock',
  (site) => {
    test('runs a command with the lock in its environment, and exits as the command does', async () => {
      const env = await site.run(
        ['lock', '/env', '--id', 'ann', '--', 'sh', '-c', 'env | grep ^MEERKAT_LOCK; cat; exit 7'],
        {
          input: 'from outside',
        },
      );
      expect(env).toMatchObject({ exitCode: 7, stderr: '' });
      expect(env.stdout).toMatch(/^MEERKAT_LOCK_PATH=\/env$/m);
      expect(env.stdout).toMatch(/^MEERKAT_LOCK_TOKEN=\d+$/m);
      expect(env.stdout).toMatch(/^MEERKAT_LOCK_ZNODE=\/env\/_c_[-0-9a-f]{36}-lock-\d{10}$/m);
      expect(env.stdout).toMatch(/^MEERKAT_LOCK_SESSION=0x[0-9a-f]+$/m);
      expect(env.stdout).toMatch(/from outside$/);
      expect((await site.client.children('/env')).children).toEqual([]);
      const [killed, missing, relative] = await Promise.all([
        site.run(['lock', '/env', '--', 'sh', '-c', 'kill -KILL $$']),
        site.run(['lock', '/env', '--', 'no-such-program']),
        site.run(['lock', 'env', '--', 'true']),
      ]);
      expect(killed.exitCode).toBe(137);
      expect(missing).toMatchObject({ exitCode: 127 });
      expect(missing.stderr).toContain('meerkat: cannot run "no-such-program": there is no such program');
      expect(relative).toMatchObject({ exitCode: 2 });
    });

    test('never lets two commands run at the same time, and gives them increasing tokens', async () => {
      const directory = site.directory();
      const env = { LOCK: join(directory, 'held'), LOG: join(directory, 'log') };
      // mkdir fails while another holder is running.
      const body =
        'mkdir "$LOCK" || echo overlap >> "$LOG"; echo "$MEERKAT_LOCK_TOKEN" >> "$LOG"; sleep 0.1; rmdir "$LOCK"';
      const runs = ['a', 'b', 'c', 'd'].map((id) =>
        site.run(['lock', '--id', id, '/turns', '--', 'sh', '-c', body], { env }),
      );
      for (const { exitCode } of await Promise.all(runs)) expect(exitCode).toBe(0);
      const tokens = readFileSync(env.LOG, 'utf8').trim().split('\n');
      expect(tokens).toHaveLength(4);
      expect(tokens).not.toContain('overlap');
      expect(tokens.map(Number)).toEqual(tokens.map(Number).toSorted((a, b) => a - b));
    });

    test('stops waiting on a timeout or signal, reports the holder, and exits with the requested code', async () => {
      const holder = site.start(['lock', '--id', 'ann at work', '/busy', '--', 'sh', '-c', UNTIL_TOLD]);
      await untilRuns(holder);
      const [atOnce, later, asked] = await Promise.all([
        site.run(['lock', '--no-wait', '/busy', '--', 'echo', 'ran']),
        site.run(['lock', '--acquire-timeout', '400ms', '/busy', '--', 'echo', 'ran']),
        site.run(['lock', '--no-wait', '-E', '99', '/busy', '--', 'echo', 'ran']),
      ]);
      expect(atOnce).toMatchObject({ exitCode: 1, stdout: '' });
      expect(atOnce.stderr).toMatch(
        /^meerkat: \/busy is locked by ann at work since \d{4}-.*Z; the command was not run\n$/,
      );
      expect(later).toMatchObject({ exitCode: 124, stdout: '' });
      expect(later.stderr).toContain('could not be locked within --acquire-timeout, it is locked by ann at work');
      expect(asked).toMatchObject({ exitCode: 99, stdout: '' });
      const waiting = site.start(['lock', '/busy', '--', 'echo', 'ran']);
      await waiting.until('it waits', ({ stderr }) =>
        stderr.includes('waiting for /busy, which is locked by ann at work'),
      );
      // Cancelled by Ctrl-C: the line is empty.
      waiting.child.kill('SIGINT');
      expect(await waiting.ended).toMatchObject({ exitCode: 130, stdout: '' });
      expect((await site.client.children('/busy')).children).toHaveLength(1);
      // A signal is passed on; the lock is released once the child has exited.
      holder.child.kill('SIGTERM');
      expect(await holder.ended).toMatchObject({ exitCode: 3, stdout: 'runs\ntold\n' });
      expect((await site.client.children('/busy')).children).toEqual([]);
    });

    test('admits concurrent readers but exclusive writers, and grants up to the maximum number of leases', async () => {
      const reader = site.start(['lock', '--read', '/book', '--', 'sh', '-c', UNTIL_TOLD]);
      const lease = site.start(['lock', '--leases', '2', '/limit', '--', 'sh', '-c', UNTIL_TOLD]);
      await Promise.all([untilRuns(reader), untilRuns(lease)]);
      // An attempt is in the queue for a moment, so these run in sequence.
      const books = async (): Promise<readonly (number | null)[]> => [
        (await site.run(['lock', '--no-wait', '--read', '/book', '--', 'true'])).exitCode,
        (await site.run(['lock', '--no-wait', '--write', '/book', '--', 'true'])).exitCode,
      ];
      const limits = async (): Promise<readonly (number | null)[]> => [
        (await site.run(['lock', '--no-wait', '--leases', '2', '/limit', '--', 'true'])).exitCode,
        (await site.run(['lock', '--no-wait', '--leases', '1', '/limit', '--', 'true'])).exitCode,
      ];
      expect(await Promise.all([books(), limits()])).toEqual([
        [0, 1],
        [0, 1],
      ]);
      const [both, tooLong] = await Promise.all([
        site.run(['lock', '--read', '--write', '/book', '--', 'true']),
        site.run(['lock', '--kill-after', '6s', '/book', '--', 'true']),
      ]);
      expect([both.exitCode, tooLong.exitCode]).toEqual([2, 2]);
      expect(tooLong.stderr).toContain('leave too little of the session timeout of 10000 ms');
    });

    test('when partitioned, kills a command that does not stop before another holder gets the lock', async () => {
      const directory = site.directory();
      const LOG = join(directory, 'log');
      await using proxy = await TcpProxy.start({ target: site.server.port });
      const cutOff = site.start(['lock', ...SHORT_SESSION, '/cut', '--', 'sh', '-c', STUBBORN], {
        env: { MEERKAT_SERVER: proxy.connectString, LOG, NAME: 'first' },
      });
      await untilRuns(cutOff);
      const other = site.start(['lock', ...SHORT_SESSION, '/cut', '--', 'sh', '-c', STUBBORN], {
        env: { LOG, NAME: 'second' },
      });
      await other.until('it waits', ({ stderr }) => stderr.includes('waiting for /cut'));
      proxy.freeze();
      expect(await cutOff.ended).toMatchObject({ exitCode: 27 });
      expect(cutOff.stderr).toMatch(/the command is sent SIGTERM, and killed in \d+ ms\n/);
      expect(cutOff.stderr).toContain('meerkat: the lock was lost while the command ran, and the command was ended');
      await untilRuns(other);
      const log = (): string => readFileSync(LOG, 'utf8');
      while (!log().includes('second\n')) await sleep(10);
      const names = log().trim().split('\n');
      expect(names.lastIndexOf('first')).toBeLessThan(names.indexOf('second'));
    });

    test('leaves no orphaned command when it is killed itself', async () => {
      const pidFile = join(site.directory(), 'pid');
      const command = site.start(
        [
          'lock',
          '--session-timeout',
          '6s',
          '--kill-after',
          '300ms',
          '/orphan',
          '--',
          'sh',
          '-c',
          `echo $$ > ${pidFile}; ${STUBBORN}`,
        ],
        { env: { LOG: '/dev/null', NAME: '' } },
      );
      await untilRuns(command);
      const pid = Number(readFileSync(pidFile, 'utf8'));
      command.child.kill('SIGKILL');
      await untilDead(pid);
      // The lock is still held: the session has not expired yet.
      expect((await site.client.children('/orphan')).children).toHaveLength(1);
    });

    test('stops a command and its children when the lock is deleted by hand', async () => {
      const pidFile = join(site.directory(), 'pid');
      const inner = `sh -c 'trap "" TERM; echo $$ > ${pidFile}; while :; do sleep 0.05; done' & `;
      const command = site.start(['lock', '--kill-after', '300ms', '/taken', '--', 'sh', '-c', inner + UNTIL_TOLD]);
      await untilRuns(command);
      while (!existsSync(pidFile) || readFileSync(pidFile, 'utf8') === '') await sleep(10);
      const { children } = await site.client.children('/taken');
      await site.client.delete(`/taken/${children[0]}`);
      const ended = await command.ended;
      expect(ended).toMatchObject({ exitCode: 27, stdout: 'runs\ntold\n' });
      expect(ended.stderr).toContain('its znode was deleted');
      await untilDead(Number(readFileSync(pidFile, 'utf8')));
    });

    test('keeps the lock while the server restarts', async () => {
      const command = site.start(['lock', '--session-timeout', '60s', '/away', '--', 'sh', '-c', UNTIL_TOLD]);
      await untilRuns(command);
      await site.server.restart();
      await expect.poll(async () => (await site.client.children('/away')).children.length).toBe(1);
      expect(command.child.exitCode).toBeNull();
      command.child.kill('SIGTERM');
      await command.ended;
    });

    test('loses the lock when the server stays away', async () => {
      const command = site.start(['lock', ...SHORT_SESSION, '/gone', '--', 'sh', '-c', UNTIL_TOLD]);
      await untilRuns(command);
      await site.server.kill();
      expect(await command.ended).toMatchObject({ exitCode: 27, stdout: 'runs\ntold\n' });
      const unreachable = await site.run(['lock', '--connect-timeout', '300ms', '/gone', '--', 'echo', 'ran']);
      expect(unreachable).toMatchObject({ exitCode: 3, stdout: '' });
      await site.server.restart();
    });
  },
  { config: { tickTime: 500, maxSessionTimeout: 60_000 } },
);

describeWith(['kazoo'], 'meerkat lock together with kazoo', () => {
  describeCli('with its layout', (site) => {
    test('waits for a lock that kazoo holds, and gets it next', async () => {
      await using kazoo = await ForeignProgram.python('locks', site.server.port);
      await kazoo.ask('acquire', 'one', 'mutex', '/mixed', 'kazoo');
      const command = site.start([
        'lock',
        '--layout',
        'kazoo',
        '--id',
        'meerkat',
        '/mixed',
        '--',
        'sh',
        '-c',
        UNTIL_TOLD,
      ]);
      await command.until('it waits', ({ stderr }) => stderr.includes('waiting for /mixed, which is locked by kazoo'));
      expect(await kazoo.ask('contenders', 'mutex', '/mixed')).toBe('kazoo,meerkat');
      await kazoo.ask('release', 'one');
      await untilRuns(command);
    });
  });
});

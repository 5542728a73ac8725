import { TcpProxy } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { describeRequests } from './harness.ts';

const waits = ({ stderr }: { stderr: string }): boolean => stderr.includes('waiting: ');

describeRequests(
  'meerkat wait',
  (site) => {
    test('waits for one or more conditions, and prints the state in which all of them hold', async () => {
      const { client } = site;
      await client.create('/state', 'busy');
      const here = site.start(['wait', '/state/ready']);
      const done = site.start([
        'wait',
        '/state',
        '--value',
        'done',
        '--children',
        '>=2',
        '--data-version',
        '>=2',
        '-o',
        'json',
      ]);
      await Promise.all([here.until('it waits', waits), done.until('it waits', waits)]);
      expect(here.stderr).toBe('waiting: /state/ready: it is not there\n');
      await client.create('/state/ready', '');
      expect(await here.ended).toMatchObject({
        exitCode: 0,
        stdout: '/state/ready: it is there, with version 0, 0 children and 0 B\n',
      });
      await client.set('/state', 'done');
      await client.create('/state/other', '');
      await client.set('/state', 'failed');
      await client.set('/state', 'done');
      const { exitCode, stdout } = await done.ended;
      expect(exitCode).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({
        path: '/state',
        exists: true,
        version: 3,
        numChildren: 2,
        data: 'done',
      });
    });

    test('waits for a deletion or a pattern, and returns at once if the condition already holds', async () => {
      const { client } = site;
      await client.create('/going', 'x');
      const gone = site.start(['wait', '/going', '--gone', '-q']);
      const [missing, matching] = await Promise.all([
        site.run(['wait', '/nowhere', '--gone']),
        site.run(['wait', '/going', '--value-matches', '^[x-z]$']),
      ]);
      expect(missing).toMatchObject({ exitCode: 0, stdout: '/nowhere: it is not there\n' });
      expect(matching).toMatchObject({
        exitCode: 0,
        stdout: '/going: it is there, with version 0, 0 children and 1 B\n',
      });
      await client.delete('/going');
      expect(await gone.ended).toMatchObject({ exitCode: 0, stderr: '' });
    });

    test('times out with its own exit code, and stops on Ctrl-C with another', async () => {
      const [late, same, wrong, away] = await Promise.all([
        site.run(['wait', '/never', '--children', '>=3', '--for', '300ms']),
        // `--timeout` limits the search for a server, too, unless that has a limit of its own.
        site.run(['wait', '/never', '--timeout', '300ms', '--connect-timeout', '30s', '-o', 'json']),
        site.run(['wait', '/never', '--children', 'three']),
        site.run(['wait', '/never', '--connect-timeout', '300ms'], { env: { MEERKAT_SERVER: '127.0.0.1:1' } }),
      ]);
      expect(late).toMatchObject({
        exitCode: 124,
        stdout: '',
        stderr: 'meerkat: /never: timed out waiting for --children >=3: it is not there\n',
      });
      expect(JSON.parse(same.stderr)).toMatchObject({ error: { exitCode: 124 } });
      expect([wrong.exitCode, away.exitCode]).toEqual([2, 3]);
      const stopped = site.start(['wait', '/never']);
      await stopped.until('it waits', waits);
      stopped.child.kill('SIGINT');
      expect(await stopped.ended).toMatchObject({ exitCode: 130, stdout: '' });
    });

    test('sees changes made while it was disconnected, also with a new session', async () => {
      const { client } = site;
      await using proxy = await TcpProxy.start({ target: site.server.port });
      const command = site.start(['wait', '/meanwhile'], { env: { MEERKAT_SERVER: proxy.connectString } });
      await command.until('it waits', waits);
      await proxy.refuse();
      await proxy.cut();
      await client.create('/meanwhile', '');
      await proxy.accept();
      expect(await command.ended).toMatchObject({ exitCode: 0 });
      const args = ['wait', '/later', '--session-timeout', '1s'];
      const other = site.start(args, { env: { MEERKAT_SERVER: proxy.connectString } });
      await other.until('it waits', waits);
      await proxy.refuse();
      await proxy.cut();
      await client.create('/later', '');
      // Its session has ended on the server too.
      await expect
        .poll(async () => (await site.server.fourLetterWord('dump')).match(/^\s+0x[0-9a-f]+$/gm)?.length)
        .toBe(1);
      await proxy.accept();
      expect(await other.ended).toMatchObject({ exitCode: 0 });
    });
  },
  { config: { tickTime: 500 } },
);

import { gzipSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';
import { describeRequests } from './harness.ts';

describeRequests('meerkat find and grep', (site) => {
  beforeAll(async () => {
    const { client } = site;
    for (const [path, data] of [
      ['/find', ''],
      ['/find/lock-1', ''],
      ['/find/mail', ''],
      ['/find/mail/config', 'host=localhost\nport=25\nuser=ann\n'],
      ['/find/packed', gzipSync('port: 9\n')],
      ['/find/logo', Buffer.from('\0\xff PORT \x01', 'latin1')],
      ['/find/line end', 'Port'],
    ] as const) {
      await client.create(path, data);
    }
    await client.create('/find/me', 'here', { mode: 'ephemeral' });
  });

  test('find selects paths by name, owner, age and size', async () => {
    const names = await site.run(['find', '/find', '--name', 'lock-*', '--name', 'config']);
    expect(names).toMatchObject({ exitCode: 0, stdout: '/find/lock-1\n/find/mail/config\n', stderr: '' });
    const owner = `0x${site.client.session!.id.toString(16)}`;
    expect((await site.run(['find', '/find', '--owner', owner, '--newer', '1h'])).stdout).toBe('/find/me\n');
    const nothing = await site.run(['find', '/find', '--ephemeral', '--older', '1d']);
    expect(nothing).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    const leaves = await site.run(['find', '/find', '--leaf', '--empty', '--prune', 'lock*']);
    expect(leaves.stdout).toBe('');
    expect(await site.run(['find', '--newer', 'soon'])).toMatchObject({ exitCode: 2, stdout: '' });
    expect(await site.run(['find', '/nowhere'])).toMatchObject({ exitCode: 10, stdout: '' });
  });

  test('find prints paths for xargs, tables and JSON', async () => {
    expect((await site.run(['find', '/find', '--regex', 'l[io]', '-0'])).stdout).toBe(
      '/find/line end\0/find/lock-1\0/find/logo\0',
    );
    const table = await site.run(['find', '/find', '--larger', '20', '-s']);
    expect(table.stdout).toMatch(
      /^path +version +size +children +modified *\n\/find\/mail\/config +0 +32 B +0 {2}\d{4}-/,
    );
    const json = await site.run(['find', '/find', '--ephemeral', '-s', '-o', 'json']);
    expect(JSON.parse(json.stdout)).toMatchObject([{ path: '/find/me', dataLength: 4, numChildren: 0 }]);
    const plain = await site.run(['find', '/find/l*', '--depth', '0', '-o', 'ndjson']);
    expect(plain.stdout).toBe('{"path":"/find/line end"}\n{"path":"/find/lock-1"}\n{"path":"/find/logo"}\n');
  });

  test('grep finds lines, also in gzip data, and reports matching binary data', async () => {
    const found = await site.run(['grep', '-i', 'port', '/find']);
    expect(found).toMatchObject({
      exitCode: 0,
      stdout:
        '/find/line end:1:Port\n/find/logo: binary data match\n/find/mail/config:2:port=25\n/find/packed:1:port: 9\n',
      stderr: '',
    });
    const around = await site.run(['grep', '^p.*5$', '/find/mail/*', '-C', '1']);
    expect(around.stdout).toBe(
      '/find/mail/config-1-host=localhost\n/find/mail/config:2:port=25\n/find/mail/config-3-user=ann\n',
    );
    const names = await site.run(['grep', '-F', '-n', 'k-1', '/find']);
    expect(names.stdout).toBe('/find/lock-1: the name matches\n');
  });

  test('grep prints only paths or counts, and JSON', async () => {
    expect((await site.run(['grep', '-l', 'port', '/find'])).stdout).toBe('/find/mail/config\n/find/packed\n');
    expect((await site.run(['grep', '-c', 's', '/find'])).stdout).toBe('/find/mail/config:2\n');
    const hits = await site.run(['grep', 'a', '/find', '-n', '-o', 'ndjson']);
    expect(
      hits.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([
      { path: '/find/mail', line: null, text: 'mail', where: 'name' },
      { path: '/find/mail/config', line: 1, text: 'host=localhost', where: 'data' },
      { path: '/find/mail/config', line: 3, text: 'user=ann', where: 'data' },
      { path: '/find/packed', line: null, text: 'packed', where: 'name' },
    ]);
  });

  test('grep exits with 1 when nothing matches, and with 2 when the pattern is invalid', async () => {
    expect(await site.run(['grep', 'nothing', '/find'])).toMatchObject({ exitCode: 1, stdout: '', stderr: '' });
    expect(await site.run(['grep', 'nothing', '/find', '-o', 'json'])).toMatchObject({ exitCode: 1, stdout: '[]\n' });
    const broken = await site.run(['grep', '(', '/find']);
    expect(broken).toMatchObject({ exitCode: 2, stdout: '' });
    expect(broken.stderr).toMatch(/^meerkat: the pattern: .*Unterminated group/);
  });

  test('reports its progress when interrupted, and ends silently when its reader goes away', async () => {
    // More than the pipe and the requests in flight hold, so that the command blocks until it is read.
    const { client } = site;
    await client.create('/bulk');
    const names = Array.from({ length: 150 }, (_, i) => `/bulk/${String(i).padStart(3, '0')}`);
    await Promise.all(names.map((name) => client.create(name, 'x'.repeat(30_000))));
    expect(await site.run(['grep', 'x', '/bulk'], { isUnread: true })).toMatchObject({ exitCode: 141, stderr: '' });

    const interrupted = site.start(['grep', 'x', '/bulk']);
    await interrupted.until('it prints', ({ stdout }) => stdout.length > 0);
    interrupted.child.stdout.pause();
    interrupted.child.kill('SIGINT');
    interrupted.child.stdout.resume();
    const { exitCode, stderr } = await interrupted.ended;
    expect(exitCode).toBe(130);
    expect(stderr).toMatch(/^stopped after \d+ znodes\nmeerkat: interrupted\n$/);
  });
});

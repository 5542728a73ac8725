import { once } from 'node:events';
import { beforeAll, expect, test } from 'vitest';
import { describeCli } from './harness.ts';

describeCli('meerkat ls', (site) => {
  beforeAll(async () => {
    for (const path of ['/ls', '/ls/b', '/ls/b/two', '/ls/b/one', '/ls/ä']) await site.client.create(path, 'data');
  });

  test('lists sorted names, and with -R all descendants, parents first', async () => {
    expect(await site.run(['ls', '/ls'])).toMatchObject({ exitCode: 0, stdout: 'b\nä\n', stderr: '' });
    const recursive = await site.run(['ls', '-R', '/ls']);
    expect(recursive.stdout).toBe('/ls\n/ls/b\n/ls/b/one\n/ls/b/two\n/ls/ä\n');
  });

  test('prints a header for each of several parents', async () => {
    const { stdout } = await site.run(['ls', '/ls', '/ls/b']);
    expect(stdout).toBe('/ls:\nb\nä\n\n/ls/b:\none\ntwo\n');
  });

  test('prints version, size and children as a table, and whole Stats as JSON', async () => {
    const table = await site.run(['ls', '-s', '/ls']);
    expect(table.stdout).toMatch(/^name {2}version {2}size {2}children {2}modified *\nb {11}0 {3}4 B {9}2 {2}\d{4}-/);
    const json = await site.run(['ls', '-s', '/ls', '-o', 'json']);
    expect(JSON.parse(json.stdout)).toMatchObject([
      { path: '/ls/b', name: 'b', version: 0, dataLength: 4, numChildren: 2, ephemeralOwner: '0x0' },
      { path: '/ls/ä' },
    ]);
    const lines = await site.run(['ls', '/ls', '-o', 'fields']);
    expect(lines.stdout).toBe('/ls/b\tb\n/ls/ä\tä\n');
  });

  test('accepts patterns, and continues after missing or unreadable znodes', async () => {
    const { client } = site;
    await client.create('/ls-shut');
    await client.create('/ls-shut/open');
    await client.create('/ls-shut/secret', 'hidden', { acl: [{ perms: 31, scheme: 'digest', id: 'bob:none' }] });
    expect((await site.run(['ls', '/l?-{shut,open}'])).stdout).toBe('open\nsecret\n');
    const table = await site.run(['ls', '-s', '/ls-shut/']);
    expect(table).toMatchObject({ exitCode: 0, stderr: '' });
    expect(table.stdout).toMatch(/\nopen .*\nsecret/);
    const recursive = await site.run(['ls', '-R', '/ls-nowhere', '/ls-shut']);
    expect(recursive).toMatchObject({ exitCode: 10, stdout: '/ls-shut\n/ls-shut/open\n' });
    expect(recursive.stderr).toMatch(/^meerkat: cannot list \/ls-nowhere: .*\nmeerkat: cannot read \/ls-shut\/secret/);
  });

  test('reports a missing znode with its own exit code', async () => {
    const missing = await site.run(['ls', '/nowhere']);
    expect(missing).toMatchObject({ exitCode: 10, stdout: '' });
    expect(missing.stderr).toMatch(/^meerkat: cannot list \/nowhere: there is no such znode/);
    const json = await site.run(['ls', '/nowhere', '-o', 'json']);
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { code: 'NONODE', exitCode: 10, path: '/nowhere' } });
  });

  test('ends quietly when its reader goes', async () => {
    expect(await site.run(['ls', '-R', '/'], { isUnread: true })).toMatchObject({ exitCode: 141, stderr: '' });
  });

  test('loses no output when its reader is slow, and stops at once on a signal', async () => {
    await site.client.create('/many');
    // More than a pipe and the reader's buffers hold: some 300 KB.
    const name = (i: number): string => String(i).padStart(200, 'a-long-name-');
    await Promise.all(Array.from({ length: 1500 }, (_, i) => site.client.create(`/many/${name(i)}`)));
    const slow = site.start(['ls', '/many']);
    slow.child.stdout.pause();
    // The pipe is full by now, and the rest waits.
    await once(slow.child.stdout, 'readable');
    await new Promise((resolve) => setTimeout(resolve, 500));
    slow.child.stdout.resume();
    const { stdout, exitCode } = await slow.ended;
    expect([exitCode, stdout.split('\n').length]).toEqual([0, 1501]);
    const stuck = site.start(['ls', '/many']);
    stuck.child.stdout.pause();
    await once(stuck.child.stdout, 'readable');
    stuck.child.kill('SIGINT');
    await once(stuck.child, 'exit');
    expect(stuck.child.exitCode).toBe(130);
    stuck.child.stdout.resume();
  });
});

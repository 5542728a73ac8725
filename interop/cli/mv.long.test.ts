import { acl } from '@meerkat/client';
import { beforeEach, expect, test } from 'vitest';
import { describeRequests } from './harness.ts';

describeRequests('meerkat mv', (site) => {
  const textOf = async (path: string) => new TextDecoder().decode((await site.client.get(path)).data);
  const tree = async (path: string) => (await site.run(['ls', '-R', path])).stdout.trimEnd().split('\n');

  beforeEach(async () => {
    if ((await site.client.exists('/mv')) !== null) await site.client.deleteRecursive('/mv');
    for (const path of ['/mv', '/mv/a', '/mv/a/b', '/mv/a/b/c', '/mv/job-1', '/mv/job-2', '/mv/done']) {
      await site.client.create(path, `data of ${path}`);
    }
  });

  test('moves a tree with its data and ACLs, in one transaction', async () => {
    await site.client.setAcl('/mv/a/b/c', [acl.world('cdra')]);
    expect(await site.run(['mv', '/mv/a', '/mv/new/z', '-p'])).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: 'moved 3 znodes to /mv/new/z in one transaction; versions and zxids start over\n',
    });
    expect(await tree('/mv')).toEqual([
      '/mv',
      '/mv/done',
      '/mv/job-1',
      '/mv/job-2',
      '/mv/new',
      '/mv/new/z',
      '/mv/new/z/b',
      '/mv/new/z/b/c',
    ]);
    expect(await textOf('/mv/new/z/b/c')).toBe('data of /mv/a/b/c');
    expect((await site.client.getAcl('/mv/new/z/b/c')).acl).toEqual([acl.world('cdra')].map((entry) => ({ ...entry })));
    const [root, child] = await Promise.all([site.client.exists('/mv/new/z'), site.client.exists('/mv/new/z/b/c')]);
    expect(root?.czxid).toBe(child?.czxid);
  });

  test('moves several znodes into another one, and shows a preview', async () => {
    const dry = await site.run(['mv', '/mv/job-*', '/mv/a', '/mv/done/', '-n', '-o', 'ndjson']);
    expect(dry.stdout).toBe(
      '{"from":"/mv/job-1","to":"/mv/done/job-1","znodes":1,"atomic":true}\n' +
        '{"from":"/mv/job-2","to":"/mv/done/job-2","znodes":1,"atomic":true}\n' +
        '{"from":"/mv/a","to":"/mv/done/a","znodes":3,"atomic":true}\n',
    );
    expect((await site.client.children('/mv/done')).children).toEqual([]);
    const json = await site.run(['mv', '/mv/job-*', '/mv/done/', '-o', 'json', '-q']);
    expect(JSON.parse(json.stdout)).toMatchObject([{ to: '/mv/done/job-1' }, { to: '/mv/done/job-2' }]);
    expect(json.stderr).toBe('');
    expect((await site.client.children('/mv/done')).children.toSorted()).toEqual(['job-1', 'job-2']);
  });

  test('copies, compares and deletes trees that exceed one request, and says so', async () => {
    for (const name of ['one', 'two', 'three'])
      await site.client.create(`/mv/a/${name}`, new Uint8Array(250_000).fill(7));
    const moved = await site.run(['mv', '/mv/a', '/mv/big', '-o', 'ndjson']);
    expect(moved).toMatchObject({
      exitCode: 0,
      stderr: 'moved 6 znodes to /mv/big in steps: copied, compared, deleted; versions and zxids start over\n',
    });
    expect(JSON.parse(moved.stdout)).toEqual({ from: '/mv/a', to: '/mv/big', znodes: 6, atomic: false });
    expect(await site.client.exists('/mv/a')).toBeNull();
    expect((await site.client.get('/mv/big/two')).data).toEqual(new Uint8Array(250_000).fill(7));
    expect(await textOf('/mv/big/b/c')).toBe('data of /mv/a/b/c');
  });

  test('moves nothing when the target exists, and says so', async () => {
    const before = await tree('/mv');
    const exists = await site.run(['mv', '/mv/a', '/mv/done']);
    expect(exists).toMatchObject({ exitCode: 11, stdout: '' });
    expect(exists.stderr).toBe(
      'meerkat: cannot move /mv/a: /mv/done exists already; nothing was moved. "rm -r" deletes it; "/mv/done/" moves into it\n',
    );
    expect(await site.run(['mv', '/mv/a', '/mv/a/b/d'])).toMatchObject({ exitCode: 2 });
    expect(await site.run(['mv', '/mv/a', '/mv/a'])).toMatchObject({ exitCode: 2 });
    expect(await site.run(['mv', '/mv/job-*', '/mv/jobs'])).toMatchObject({ exitCode: 2 });
    expect(await site.run(['mv', '/mv/a', '/mv/no/a'])).toMatchObject({ exitCode: 10 });
    const missing = await site.run(['mv', '/mv/none', '/mv/x']);
    expect(missing).toMatchObject({ exitCode: 10, stderr: 'meerkat: cannot move /mv/none: there is no such znode\n' });
    expect(await site.run(['mv', '/mv/none-*', '/mv/x/'])).toMatchObject({ exitCode: 10 });
    expect((await site.run(['mv', '/zookeeper', '/mv/x'])).stderr).toMatch(/it belongs to the service/);
    expect((await site.run(['mv', '/mv/a', 'other:/a'])).stderr).toMatch(/mv works within one service/);
    await site.client.create('/mv/a/live', '', { mode: 'ephemeral' });
    const ephemeral = await site.run(['mv', '/mv/a', '/mv/x']);
    expect(ephemeral).toMatchObject({ exitCode: 18 });
    expect(ephemeral.stderr).toMatch(/cannot move \/mv\/a\/live: it is ephemeral/);
    await site.client.delete('/mv/a/live');
    expect(await tree('/mv')).toEqual(before);
    const away = await site.run(['mv', '/a', '/b', '--server', '127.0.0.1:1', '--connect-timeout', '200ms']);
    expect(away).toMatchObject({ exitCode: 3 });
  });
});

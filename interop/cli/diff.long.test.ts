import { join } from 'node:path';
import { acl } from '@meerkat/client';
import { beforeAll, expect, test } from 'vitest';
import { describeRequests } from './harness.ts';

describeRequests('meerkat diff', (site) => {
  beforeAll(async () => {
    const { client } = site;
    for (const root of ['/left', '/right']) {
      await client.create(root, 'top');
      await client.create(`${root}/same`, Uint8Array.of(0, 1));
      await client.create(`${root}/same/below`, null);
    }
    await client.create('/left/gone', 'was here');
    await client.create('/left/text', 'a\nb\nc\n');
    await client.create('/right/text', 'a\nB\nc\n', { acl: [acl.world('r')] });
    await client.create('/left/null', null);
    await client.create('/right/null', '');
    await client.create('/left/binary', Uint8Array.of(1, 2, 3));
    await client.create('/right/binary', Uint8Array.of(1, 2, 4, 5));
    await client.create('/right/came', '');
    await client.create('/left/live', 'x');
    await client.create('/right/live', 'x', { mode: 'ephemeral' });
  });

  test('lists created, deleted and changed znodes, with values by lines, and exits with 1', async () => {
    const ended = await site.run(['diff', '/left', '/right']);
    expect(ended.stdout.split('\n')).toEqual([
      '~ /binary  data',
      '    3 B → 4 B, the first difference at byte 2: 0x03 → 0x04',
      '+ /came  0 B',
      '- /gone  8 B',
      '~ /live  kind',
      '    -persistent',
      '    +ephemeral',
      '~ /null  data',
      '    no data (null) → empty data',
      '~ /text  data, acl',
      '    -acl world:anyone:cdrwa',
      '    +acl world:anyone:r',
      '     a',
      '    -b',
      '    +B',
      '     c',
      '',
    ]);
    expect(ended).toMatchObject({ exitCode: 1, stderr: '1 only in /left, 1 only in /right, 4 differ\n' });
  });

  test('lists paths only, without ACLs, ephemeral znodes or znodes that match a pattern', async () => {
    const args = ['diff', '/left', '/right', '-b', '--no-acl', '--no-ephemerals', '--exclude', 'null', '-q'];
    const ended = await site.run(args);
    expect(ended).toMatchObject({ exitCode: 1, stderr: '' });
    expect(ended.stdout).toBe('~ /binary  data\n+ /came  0 B\n- /gone  8 B\n- /live  1 B\n~ /text  data\n');
  });

  test('prints both sides as JSON', async () => {
    const ended = await site.run(['diff', '/left', '/right', '-o', 'json']);
    const found = JSON.parse(ended.stdout) as readonly { readonly path: string }[];
    expect(found.map(({ path }) => path)).toEqual(['/binary', '/came', '/gone', '/live', '/null', '/text']);
    expect(found[0]).toEqual({
      path: '/binary',
      change: 'changed',
      what: ['data'],
      left: { data: 'AQID', encoding: 'base64', acl: ['world:anyone:cdrwa'], kind: 'persistent' },
      right: { data: 'AQIEBQ==', encoding: 'base64', acl: ['world:anyone:cdrwa'], kind: 'persistent' },
    });
    expect(found[1]).toMatchObject({ change: 'added', left: null });
    const brief = await site.run(['diff', '/left/text', '/right/text', '--brief', '-o', 'ndjson']);
    expect(JSON.parse(brief.stdout)).toEqual({ path: '/', change: 'changed', what: ['data', 'acl'] });
  });

  test('compares a service with an export of it, and two services', async () => {
    const file = join(site.directory(), 'left.ndjson');
    await site.run(['export', '/left', file]);
    const same = await site.run(['diff', `file:${file}`, `zk://${site.address}/left`]);
    expect(same).toMatchObject({ exitCode: 0, stdout: '' });
    expect(same.stderr).toMatch(/ are the same: 8 znodes\n$/);
    const other = await site.run(['diff', `./left.ndjson`, '/right', '-b'], { cwd: join(file, '..') });
    expect(other).toMatchObject({ exitCode: 1 });
    expect(other.stdout).toContain('- /gone  8 B\n');
  });

  test('compares two values', async () => {
    const ended = await site.run(['diff', '/left', '/right', '--no-recursive']);
    expect(ended).toMatchObject({ exitCode: 0, stdout: '' });
  });

  test('reports what is missing, each with its exit code', async () => {
    const [znode, file, away] = await Promise.all([
      site.run(['diff', '/left', '/nowhere']),
      site.run(['diff', 'nothing.ndjson', '/left']),
      site.run(['diff', '/left', 'zk://127.0.0.1:1/left', '--connect-timeout', '200ms']),
    ]);
    expect(znode).toMatchObject({ exitCode: 10 });
    expect(znode?.stderr).toContain('cannot read /nowhere: there is no such znode');
    expect(file).toMatchObject({ exitCode: 28 });
    expect(away).toMatchObject({ exitCode: 3 });
  });
});

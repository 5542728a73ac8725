import { beforeAll, expect, test } from 'vitest';
import { describeRequests } from './harness.ts';

describeRequests('meerkat tree and du', (site) => {
  beforeAll(async () => {
    const { client } = site;
    for (const [path, data] of [
      ['/tree', ''],
      ['/tree/jobs', '12345'],
      ['/tree/jobs/1', 'x'.repeat(1000)],
      ['/tree/jobs/2', 'x'.repeat(2000)],
      ['/tree/jobs/3', ''],
      ['/tree/web', 'x'.repeat(100)],
    ] as const) {
      await client.create(path, data);
    }
    await client.create('/tree/me', 'here', { mode: 'ephemeral' });
    await client.create('/shut', '');
    await client.create('/shut/open', 'ab');
    await client.create('/shut/secret', 'hidden', { acl: [{ perms: 31, scheme: 'digest', id: 'bob:none' }] });
  });

  test('draws branches, marks ephemeral znodes, and prints totals', async () => {
    expect(await site.run(['tree', '/tree'])).toMatchObject({
      exitCode: 0,
      stderr: '',
      stdout: `/tree
├── jobs
│   ├── 1
│   ├── 2
│   └── 3
├── me  (ephemeral)
└── web

7 znodes, 1 of them ephemeral, 3.0 KiB of data
`,
    });
  });

  test('limits depth and width, with sizes and counts', async () => {
    const flat = await site.run(['tree', '-L', '1', '-s', '/tree']);
    expect(flat.stdout).toMatch(
      /^\/tree {2}\(0 B\)\n├── jobs {2}\(5 B, 3 children\)\n├── me {2}\(ephemeral, 4 B\)\n└── web /,
    );
    const narrow = await site.run(['tree', '-m', '2', '-c', '/tr*']);
    expect(narrow.stdout).toBe(`/tree  (3 children)
├── jobs  (3 children)
│   ├── 1
│   ├── 2
│   └── … 1 more
├── me  (ephemeral)
└── … 1 more

5 znodes, 1 of them ephemeral, 2.9 KiB of data
`);
    const lines = await site.run(['tree', '/tree/jobs', '-o', 'ndjson']);
    const records = lines.stdout.trim().split('\n');
    expect(records.map((line) => JSON.parse(line))).toMatchObject([
      { path: '/tree/jobs', depth: 0, numChildren: 3 },
      { path: '/tree/jobs/1', depth: 1, dataLength: 1000 },
      { path: '/tree/jobs/2' },
      { path: '/tree/jobs/3' },
    ]);
    expect(await site.run(['tree', '-L', 'x'])).toMatchObject({ exitCode: 2, stdout: '' });
  });

  test('reports missing or unreadable znodes, and continues', async () => {
    const drawn = await site.run(['tree', '/nowhere', '/shut']);
    expect(drawn).toMatchObject({ exitCode: 10 });
    expect(drawn.stdout).toBe('/shut\n├── open\n└── secret  (may not be read)\n\n2 znodes, 2 B of data\n');
    expect(drawn.stderr).toMatch(
      /^meerkat: cannot list \/nowhere: there is no such znode\nmeerkat: cannot read \/shut\/secret, nor what is below: the ACL /,
    );
    const sums = await site.run(['du', '/shut', '-o', 'ndjson']);
    expect(sums).toMatchObject({ exitCode: 14 });
    expect(JSON.parse(sums.stderr)).toMatchObject({ error: { code: 'NOAUTH', path: '/shut/secret' } });
    expect(await site.run(['tree', '/nowhere'])).toMatchObject({
      exitCode: 10,
      stdout: '',
      stderr: 'meerkat: cannot list /nowhere: there is no such znode\n',
    });
  });

  test('du sums up each child, the largest first', async () => {
    expect((await site.run(['du', '/tree'])).stdout).toBe(`   size    own  znodes  ephemerals  path
3.0 KiB    0 B       7           1  /tree
2.9 KiB    5 B       4           0  /tree/jobs
  100 B  100 B       1           0  /tree/web
    4 B    4 B       1           1  /tree/me
`);
    const exact = await site.run(['du', '/tree', '-b', '-d', '2', '-n', '2', '--sort', 'own']);
    expect(exact.stdout).toBe(` size    own  znodes  ephemerals  path
2,000  2,000       1           0  /tree/jobs/2
1,000  1,000       1           0  /tree/jobs/1
`);
    const json = await site.run(['du', '-d', '0', '/tree', '/tree/jobs', '-o', 'json']);
    expect(JSON.parse(json.stdout)).toEqual([{ path: '/tree', size: 3109, own: 0, znodes: 7, ephemerals: 1 }]);
    expect(await site.run(['du', '--sort', 'colour'])).toMatchObject({ exitCode: 2, stdout: '' });
  });
});

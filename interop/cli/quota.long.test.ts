import { beforeAll, expect, test } from 'vitest';
import { describeRequests } from './harness.ts';

describeRequests(
  'meerkat quota',
  (site) => {
    const textOf = async (path: string) => new TextDecoder().decode((await site.client.get(path)).data);
    const limitsOf = (path: string) => textOf(`/zookeeper/quota${path}/zookeeper_limits`);

    beforeAll(async () => {
      for (const path of ['/q', '/q/a', '/q/a/b', '/r', '/r/a']) await site.client.create(path, '12345');
    });

    test("writes limits in ZooKeeper's format, which the server enforces", async () => {
      const set = await site.run(['quota', 'set', '/q', '-n', '2', '-N', '4', '-b', '64K', '--hard-bytes', '20']);
      expect(set).toMatchObject({ exitCode: 0 });
      expect(set.stdout).toBe(
        'path  znodes  soft  hard  data    soft  hard\n/q         3     2     4  15 B  64 KiB  20 B\n',
      );
      expect(set.stderr).toMatch(/limits are kept by servers with enforceQuota=true/);
      expect(await limitsOf('/q')).toBe('count=2,bytes=65536=;byteHardLimit=20;countHardLimit=4');

      expect(await site.run(['create', '/q/c', '12345'])).toMatchObject({ exitCode: 0 });
      const count = await site.run(['create', '/q/d']);
      expect(count).toMatchObject({ exitCode: 17, stdout: '' });
      expect(count.stderr).toMatch(/^meerkat: cannot create \/q\/d: a quota above the znode allows no more/);
      expect(await site.run(['set', '/q/c', '123456'])).toMatchObject({ exitCode: 17 });
      expect(await textOf('/zookeeper/quota/q/zookeeper_stats')).toMatch(/^count=4,bytes=20/);
    });

    test('shows the quota that applies to a znode, and all quotas', async () => {
      await site.run(['quota', 'set', '/r/a', '-n', '10', '-q']);
      const all = await site.run(['quota', '-o', 'json']);
      expect(JSON.parse(all.stdout)).toEqual([
        { path: '/q', count: 4, countSoft: 2, countHard: 4, bytes: 20, bytesSoft: 65536, bytesHard: 20 },
        { path: '/r/a', count: 1, countSoft: 10, countHard: null, bytes: 5, bytesSoft: null, bytesHard: null },
      ]);
      const below = await site.run(['quota', 'show', '/q/a/b', '-o', 'fields']);
      expect(below).toMatchObject({ exitCode: 0, stdout: '/q\t4\t2\t4\t20\t65536\t20\n' });
      expect(below.stderr).toBe('/q/a/b counts to the quota of /q\n');
      expect(await site.run(['quota', '/r'])).toMatchObject({
        exitCode: 1,
        stdout: '',
        stderr: 'there is no quota at /r or above it\n',
      });
    });

    test('removes one limit, or the quota with all znodes created for it', async () => {
      expect(await site.run(['quota', 'remove', '-N', '/q'])).toMatchObject({ exitCode: 0, stderr: '' });
      expect(await limitsOf('/q')).toBe('count=2,bytes=65536=;byteHardLimit=20');
      expect(await site.run(['quota', 'set', '/q', '-n', 'none', '-B', '1M'])).toMatchObject({ exitCode: 0 });
      expect(await limitsOf('/q')).toBe('count=-1,bytes=65536=;byteHardLimit=1048576');
      expect(await site.run(['quota', 'remove', '/q'])).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
      expect(await site.run(['quota', 'remove', '/r/a', '-n'])).toMatchObject({ exitCode: 0, stdout: '' });
      expect((await site.client.children('/zookeeper/quota')).children).toEqual([]);
      expect(await site.run(['create', '/q/d'])).toMatchObject({ exitCode: 0 });
      const none = await site.run(['quota', 'remove', '/q']);
      expect(none).toMatchObject({ exitCode: 1 });
      expect(none.stderr).toMatch(/^meerkat: \/q has no quota of its own/);
    });

    test('reports invalid requests', async () => {
      await site.run(['quota', 'set', '/r', '-n', '10', '-q']);
      const nested = await site.run(['quota', 'set', '/r/a', '-n', '3']);
      expect(nested).toMatchObject({ exitCode: 18, stdout: '' });
      expect(nested.stderr).toMatch(/cannot set a quota of \/r\/a: \/r above it has one/);
      expect(await site.run(['quota', 'set', '/none', '-n', '3'])).toMatchObject({ exitCode: 10 });
      expect(await site.run(['quota', 'set', '/', '-n', '3'])).toMatchObject({ exitCode: 2 });
      expect(await site.run(['quota', 'set', '/r', '-n', 'many'])).toMatchObject({ exitCode: 2 });
      expect(await site.run(['quota', 'set', '/r'])).toMatchObject({ exitCode: 2 });
      const chroot = await site.run(['quota', '--chroot', '/r']);
      expect(chroot).toMatchObject({ exitCode: 2 });
      expect(chroot.stderr).toMatch(/outside of the chroot \/r/);
      const away = await site.run(['quota', '--server', '127.0.0.1:1', '--connect-timeout', '200ms']);
      expect(away).toMatchObject({ exitCode: 3 });
    });
  },
  { config: { enforceQuota: true } },
);

import { describe, expect, test } from 'vitest';
import { CliSite } from './harness.ts';

/* Past states, their authors, and undo: from the admin port, the directory of the running server, and a backup. */

describe('the past of a service', () => {
  const site = new CliSite('meerkat', { hasAdmin: true });

  test('is shown, listed and restored, from the admin port, the directory and a backup', async () => {
    const { client, server } = site;
    await client.create('/past', 'one');
    const created = client.lastZxid;
    await client.create('/past/child', 'kept');
    await client.transaction().set('/past', 'two').delete('/past/child').create('/past/other', '').commit();
    const changed = client.lastZxid;
    const at = (zxid: bigint): string => `0x${zxid.toString(16)}`;
    const backup = `${site.directory()}/backup`;
    const sources = [
      ['--admin', `127.0.0.1:${server.adminPort}`],
      ['--dir', server.dataDirectory],
      ['--dir', backup],
    ] as const;
    expect(await site.run(['backup', '--to', backup, ...sources[0]])).toMatchObject({ exitCode: 0 });

    for (const source of sources) {
      const run = async (...args: readonly string[]): Promise<string> => {
        const { stdout, stderr, exitCode } = await site.run([...args, ...source]);
        expect({ args, exitCode, stderr }).toEqual({ args, exitCode: 0, stderr: '' });
        return stdout;
      };
      expect(await run('get', '/past', '--at', at(created))).toBe('one');
      expect(await run('get', '/past', '--at', at(changed))).toBe('two');
      expect(await run('ls', '/past', '--at', at(changed - 1n))).toBe('child\n');
      expect(await run('tree', '/past', '--at', at(changed))).toContain('other');
      const stat = JSON.parse(await run('stat', '/past', '--at', at(changed - 1n), '-o', 'json')) as {
        version: number;
      };
      expect(stat.version).toBe(0);
      const history = JSON.parse(await run('history', '/past', '-r', '-o', 'json')) as {
        readonly zxid: string;
        readonly path: string;
        readonly change: string;
        readonly session: string;
        readonly old: { readonly data: string } | null;
        readonly new: { readonly data: string } | null;
      }[];
      const shown = history.map(({ zxid, path, change, old, new: now }) => [zxid, change, path, old?.data, now?.data]);
      expect(shown).toEqual([
        [at(created), 'created', '/past', undefined, 'one'],
        [at(created + 1n), 'created', '/past/child', undefined, 'kept'],
        [at(changed), 'changed', '/past', 'one', 'two'],
        [at(changed), 'deleted', '/past/child', 'kept', undefined],
        [at(changed), 'created', '/past/other', undefined, ''],
      ]);
      expect(history.map(({ session }) => session)).toEqual(history.map(() => at(client.session?.id ?? 0n)));
    }

    // As one executable, or as the packages, in which the command and the server have a client each.
    for (const env of [{}, { NODE_OPTIONS: '--no-warnings' }]) {
      const missing = await site.run(['get', '/past/other', '--at', at(created), ...sources[1]], { env });
      expect(missing).toMatchObject({ exitCode: 10, stdout: '' });
    }
    const beyond = await site.run(['get', '/past', '--at', '0x7fffffff', ...sources[2]]);
    expect(beyond.exitCode).toBe(28);
    expect(beyond.stderr).toMatch(/ends with zxid 0x\w+, before the 0x7fffffff that was asked for/);

    // The address of a client that is connected.
    const result = await site.run(['history', '/past', ...sources[0]]);
    expect(result.stdout).toMatch(/ of 127\.0\.0\.1:\d+\n/);

    const dryRun = await site.run(['undo', at(changed), '--dry-run', ...sources[0]]);
    expect(dryRun).toMatchObject({ exitCode: 0 });
    expect(Buffer.from((await client.get('/past')).data).toString()).toBe('two');
    expect(await site.run(['undo', at(changed), ...sources[0]])).toMatchObject({ exitCode: 0, stdout: dryRun.stdout });
    expect((await client.children('/past')).children).toEqual(['child']);
    expect(Buffer.from((await client.get('/past')).data).toString()).toBe('one');
    expect(Buffer.from((await client.get('/past/child')).data).toString()).toBe('kept');

    const again = await site.run(['undo', at(changed), ...sources[0]]);
    expect(again).toMatchObject({ exitCode: 13, stdout: '' });
    expect(again.stderr).toContain('was changed since');
  });

  test('is hidden from clients that the admin port refuses', async () => {
    const { client, server } = site;
    const admin = `127.0.0.1:${server.adminPort}`;
    await client.setAcl('/', [{ scheme: 'world', id: 'anyone', perms: 15 }]);
    const refused = await site.run(['get', '/', '--at', 'now', '--admin', admin]);
    expect(refused).toMatchObject({ exitCode: 28, stdout: '' });
    expect(refused.stderr).toContain(
      'refuses: Not authorized; --auth digest:user:password names who has every permission',
    );
    const allowed = await site.run(['ls', '/', '--admin', admin, '--auth', 'digest:super:test']);
    expect(allowed).toMatchObject({ exitCode: 0 });
    for (const file of ['../myid', 'log.1/../../myid', '/etc/passwd', 'acceptedEpoch']) {
      const url = `http://${admin}/commands/archive?file=${encodeURIComponent(file)}`;
      const answer = await fetch(url, { headers: { authorization: 'digest super:test' } });
      expect(answer.status, file).toBe(400);
    }
    expect((await fetch(`http://${admin}/commands/archive`)).status).toBe(401);
  });
});

import { acl, digestId, OPEN } from '@meerkat/client';
import { beforeAll, expect, test } from 'vitest';
import { describeRequests } from './harness.ts';

const ANN = ['--auth', 'digest:ann:secret'] as const;

describeRequests('meerkat acl', (site) => {
  const aclOf = async (path: string) => (await site.client.getAcl(path)).acl;
  const ANN_HASH = digestId('ann', 'secret');

  beforeAll(async () => {
    for (const path of ['/acl', '/acl/a', '/acl/a/b', '/acl/own']) await site.client.create(path);
  });

  test('shows the ACL, and the permissions of this client', async () => {
    const open = await site.run(['acl', '/acl']);
    expect(open).toMatchObject({ exitCode: 0 });
    expect(open.stdout).toMatch(
      /^entry +who +may\nworld:anyone:cdrwa +anyone +do everything\n\nyou are .*: you may do everything\n$|^entry +who +may\nworld:anyone:cdrwa +anyone +do everything\n$/,
    );
    await site.client.setAcl('/acl/own', [acl.world('r'), acl.digest('ann', 'secret', 'rw'), acl.ip('127.0.0.1', 'a')]);
    const own = await site.run(['acl', 'get', '/acl/own', ...ANN]);
    expect(own.stdout).toMatch(/:rw +user ann \(password\) +read, write\n/);
    expect(own.stdout).toMatch(
      /\nyou are .*ann \(digest\).*: you may read, write, set the ACL, if the password is right\n$/,
    );
    const json = await site.run(['acl', 'get', '/acl/own', '-o', 'json']);
    expect(JSON.parse(json.stdout)).toEqual([
      { path: '/acl/own', scheme: 'world', id: 'anyone', perms: 'r', aversion: 1 },
      { path: '/acl/own', scheme: 'digest', id: ANN_HASH, perms: 'rw', aversion: 1 },
      { path: '/acl/own', scheme: 'ip', id: '127.0.0.1', perms: 'a', aversion: 1 },
    ]);
    const several = await site.run(['acl', '-s', '/acl/*']);
    expect(several.stdout).toMatch(/^\/acl\/a:\nentry(.*\n)+.*\n\/acl\/own:\nentry(.*\n)+aversion +1\n/);
  });

  test('sets, adds and removes entries', async () => {
    expect(await site.run(['acl', 'set', '/acl/a', 'read-only,password:ann:secret:all'])).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: '',
    });
    // The service hides hashes from clients without the permission "a".
    expect(await aclOf('/acl/a')).toEqual([acl.world('r'), { scheme: 'digest', id: 'ann:x', perms: 31 }].map(plain));
    const refused = await site.run(['acl', 'add', '/acl/a', 'world:anyone:w']);
    expect(refused).toMatchObject({ exitCode: 14, stdout: '' });
    expect(refused.stderr).toMatch(/^meerkat: cannot (set|read) the ACL of \/acl\/a: the ACL does not allow it/);
    const added = await site.run(['acl', 'add', '/acl/a', 'world:anyone:wa', '-o', 'ndjson', ...ANN]);
    expect(JSON.parse(added.stdout)).toMatchObject({
      path: '/acl/a',
      acl: `world:anyone:rwa,digest:${ANN_HASH}:cdrwa`,
      aversion: 2,
    });
    expect(await site.run(['acl', 'remove', '/acl/a', 'digest:ann'])).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await aclOf('/acl/a')).toEqual([acl.world('rwa')].map(plain));
    const again = await site.run(['acl', 'remove', '/acl/a', 'digest:ann']);
    expect(again).toMatchObject({ exitCode: 0 });
    expect(again.stderr).toMatch(/nothing was changed/);
    const all = await site.run(['acl', 'remove', '/acl/a', 'world:anyone']);
    expect(all).toMatchObject({ exitCode: 15 });
    await site.run(['acl', 'set', '/acl/a', 'open']);
  });

  test('changes a whole tree, and checks the version of an ACL', async () => {
    const tree = await site.run(['acl', 'set', '-R', '/acl/a', 'auth::cdrwa,world:anyone:ra', ...ANN]);
    expect(tree).toMatchObject({ exitCode: 0, stdout: '', stderr: 'changed 2 ACLs of 2\n' });
    expect(await aclOf('/acl/a/b')).toEqual(
      expect.arrayContaining([{ scheme: 'digest', id: ANN_HASH, perms: 31 }, acl.world('ra')].map(plain)),
    );
    const { aversion } = (await site.client.getAcl('/acl')).stat;
    const stale = await site.run(['acl', 'set', '/acl', 'open', '-v', String(aversion + 1)]);
    expect(stale).toMatchObject({ exitCode: 13 });
    const fresh = await site.run(['acl', 'set', '/acl', 'open', '-s', '-v', String(aversion)]);
    expect(fresh.stdout).toMatch(new RegExp(`\naversion +${aversion + 1}\n`));
    expect(await aclOf('/acl')).toEqual(OPEN);
  });

  test('reports errors, and warns of the consequences of an ACL', async () => {
    expect(await site.run(['acl', '/none'])).toMatchObject({ exitCode: 10, stdout: '' });
    expect(await site.run(['acl', 'set', '/none', 'open'])).toMatchObject({ exitCode: 10, stdout: '' });
    const bad = await site.run(['acl', 'set', '/acl', 'everybody']);
    expect(bad).toMatchObject({ exitCode: 2 });
    expect(bad.stderr).toMatch(/it is scheme:id:perms, such as world:anyone:r/);
    expect(await site.run(['acl', 'set', '/acl'])).toMatchObject({ exitCode: 2 });
    expect(await site.run(['acl', 'set', '/acl', 'creator'])).toMatchObject({ exitCode: 15 });
    const away = await site.run(['acl', '/acl', '--server', '127.0.0.1:1', '--connect-timeout', '200ms']);
    expect(away).toMatchObject({ exitCode: 3 });
    const locked = await site.run(['acl', 'remove', '/acl/own', 'ip:127.0.0.1']);
    expect(locked.stderr).toMatch(/^only the super user may set the ACL of \/acl\/own again/);
  });
});

function plain(entry: { readonly scheme: string | null; readonly id: string | null; readonly perms: number }) {
  return { scheme: entry.scheme, id: entry.id, perms: entry.perms };
}

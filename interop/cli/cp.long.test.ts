import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { acl, type Client, nullableBytes, OPEN, READ_ONLY } from '@meerkat/client';
import { TcpProxy } from '@meerkat/testing';
import { beforeAll, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { CliSite, describeRequests, type Ended } from './harness.ts';

const BINARY = Uint8Array.of(0, 1, 254, 255);

/** Creates znodes of all kinds below /from. */
async function makeTree(client: Client): Promise<void> {
  await client.create('/from', 'top');
  await client.create('/from/binary', BINARY);
  await client.create('/from/empty', '');
  await client.create('/from/null', null);
  await client.create('/from/ä-1:{}', 'odd', { acl: READ_ONLY });
  await client.create('/from/job-0000000007', 'the seventh');
  await client.create('/from/locked', 'nobody creates here');
  await client.create('/from/locked/child', '', { acl: [acl.digest('ann', 'secret'), acl.world('r')] });
  await client.create('/from/locked/child/below', 'deep');
  await client.setAcl('/from/locked', [acl.ip('127.0.0.1', 'r'), acl.world('r')]);
  await client.create('/from/mine', 'short-lived', { mode: 'ephemeral' });
}

async function expectCopy(client: Client, root: string): Promise<void> {
  const read = async (path: string) => (await client.get(`${root}${path}`, { codec: nullableBytes })).data;
  expect(await read('/binary')).toEqual(BINARY);
  expect(await read('/empty')).toEqual(new Uint8Array(0));
  expect(await read('/null')).toBe(null);
  expect(await read('/job-0000000007')).toEqual(bytesOf('the seventh'));
  expect(await read('/locked/child/below')).toEqual(bytesOf('deep'));
  expect((await client.getAcl(`${root}/ä-1:{}`)).acl).toEqual(READ_ONLY);
  expect((await client.getAcl(`${root}/locked`)).acl).toEqual([acl.ip('127.0.0.1', 'r'), acl.world('r')]);
  expect((await client.getAcl(root)).acl).toEqual(OPEN);
  expect(await client.exists(`${root}/mine`)).toBe(null);
}

describeRequests('meerkat cp', (site) => {
  beforeAll(async () => {
    await site.client.addAuth('digest', 'ann:secret');
    await makeTree(site.client);
  });

  const as = (...args: string[]): Promise<Ended> => site.run(['--auth', 'digest:ann:secret', ...args]);

  test('copies a tree with null, empty and binary data, odd names and ACLs, and leaves ephemeral znodes out', async () => {
    const ended = await as('cp', '-r', '/from', '/copy');
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' });
    expect(ended.stdout).toBe(
      'copied /from to /copy: 9 created, 1 ephemeral, left out (--ephemerals-as-persistent takes them along)\n',
    );
    await expectCopy(site.client, '/copy');
    const { acl: entries } = await site.client.getAcl('/copy/locked/child');
    expect(entries).toEqual([acl.digest('ann', 'secret'), acl.world('r')]);
  });

  test('does nothing where the copy is the same, and prints the counts as JSON', async () => {
    const ended = await as('cp', '-r', '/from', '/copy', '--verify', '-o', 'json');
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' });
    expect(JSON.parse(ended.stdout)).toMatchObject({ created: 0, same: 9, ephemerals: 1, verified: true });
  });

  test('does not change znodes that differ without an option', async () => {
    await as('cp', '-r', '/from', '/other');
    await site.client.set('/other/binary', 'changed');
    await site.client.create('/other/extra', '');
    await site.client.create('/other/extra/below', '');
    await site.client.delete('/other/empty');

    const refused = await as('cp', '-r', '/from', '/other');
    expect(refused).toMatchObject({ exitCode: 11, stdout: '' });
    expect(refused.stderr).toMatch(
      /^meerkat: \/other has other znodes already: \/other\/binary \(data\); --overwrite /,
    );
    expect(await site.client.exists('/other/empty')).toBe(null);

    // The data in the source are older than in the target.
    const updated = await as('cp', '-r', '/from', '/other', '--update');
    expect(updated.stdout).toContain(
      '1 created, 7 the same before, 1 newer in the target, left as they are, 2 only in',
    );
    const skipped = await as('cp', '-r', '/from', '/other', '--skip');
    expect(skipped.stdout).toContain('8 the same before, 1 skipped, they differ, 2 only in the target');

    const rehearsed = await as('cp', '-r', '/from', '/other', '--delete', '--dry-run');
    expect(rehearsed.stdout).toMatch(
      /action +path +what +bytes\nchange +\/other\/binary +data +4\ndelete +\/other\/extra\/below\ndelete +\/other\/extra\n/,
    );
    expect(await site.client.exists('/other/extra')).not.toBe(null);

    const mirrored = await as('cp', '-r', '/from', '/other', '--delete');
    expect(mirrored.stdout).toContain('1 changed, 2 deleted, 8 the same before');
    await expectCopy(site.client, '/other');
    expect(await site.client.exists('/other/extra')).toBe(null);
  });

  test('resumes below a znode whose final ACL was not set yet', async () => {
    const { client } = site;
    const final = [acl.ip('127.0.0.1', 'r'), acl.world('r')];
    await client.create('/begun', 'top');
    await client.create('/begun/locked', 'nobody creates here', { acl: [...final, acl.ip('127.0.0.1', 'ca')] });
    const ended = await as('cp', '-r', '/from', '/begun');
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' });
    expect(ended.stdout).toContain('7 created, 1 finished, the ACL was still to be set, 1 the same before');
    await expectCopy(client, '/begun');
  });

  test('reports an ACL that the target refuses', async () => {
    const file = join(site.directory(), 'acl.ndjson');
    const lines = [
      { meerkatExport: 1, root: '/acl' },
      { path: '/', data: '' },
      { path: '/bad', data: '', acl: [{ perms: 'r', scheme: 'no-such-scheme', id: 'x' }] },
      { end: true, znodes: 2 },
    ];
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const ended = await site.run(['import', file]);
    expect(ended).toMatchObject({ exitCode: 15, stdout: '' });
    expect(ended.stderr).toMatch(/the target does not take the ACL of \/acl\/bad: .*--no-acl leaves ACLs out\n$/);
  });

  test('a mirror leaves ephemeral znodes of the target and what is above them', async () => {
    await site.client.create('/live', '');
    await site.client.create('/live/members', '');
    await site.client.create('/live/members/me', '', { mode: 'ephemeral' });
    await site.client.create('/source', '');
    const ended = await site.run(['cp', '-r', '/source', '/live', '--delete']);
    expect(ended.stdout).toContain('2 only in the target, left there: ephemeral, or with ephemeral ones below');
    expect(await site.client.exists('/live/members/me')).not.toBe(null);
  });

  test('makes ephemeral znodes persistent on demand, and skips znodes that match a pattern', async () => {
    const args = ['cp', '-r', '/from', '/kept', '--ephemerals-as-persistent', '--exclude', 'lo*', '--exclude', '/ä*'];
    const ended = await as(...args);
    expect(ended).toMatchObject({ exitCode: 0, stdout: 'copied /from to /kept: 6 created\n' });
    expect((await site.client.exists('/kept/mine'))?.isEphemeral).toBe(false);
    expect(await site.client.exists('/kept/locked')).toBe(null);
  });

  test('copies one znode without -r, several into another one, and data without ACLs', async () => {
    const one = await as('cp', '/from', '/made/by/cp', '--parents');
    expect(one).toMatchObject({ exitCode: 0, stderr: '/from has 7 children: -r copies them too\n' });
    const several = await as('cp', '/from/?-1*', '/from/null', '/made/', '--no-acl');
    expect(several).toMatchObject({ exitCode: 0 });
    expect((await site.client.children('/made')).children.toSorted()).toEqual(['by', 'null', 'ä-1:{}']);
    expect((await site.client.getAcl('/made/ä-1:{}')).acl).toEqual(OPEN);
  });

  test('reports errors, each with its exit code', async () => {
    const [missing, orphan, into, itself, masked, several, mirror] = await Promise.all([
      site.run(['cp', '/nowhere', '/x']),
      site.run(['cp', '/from', '/no/parent']),
      site.run(['cp', '-r', '/from', '/from/below']),
      site.run(['cp', '/from', `zk://localhost:${site.server.port}/from`]),
      site.run(['cp', '-r', '/from', '/x']),
      site.run(['cp', '/from', '/copy', '/x']),
      site.run(['cp', '/from', '/copy', '--delete']),
    ]);
    expect(missing).toMatchObject({ exitCode: 10 });
    expect(missing?.stderr).toMatch(/^meerkat: cannot read \/nowhere: there is no such znode/);
    expect(orphan).toMatchObject({ exitCode: 10 });
    expect(orphan?.stderr).toContain('its parent /no is not there; --parents makes it');
    expect(into).toMatchObject({ exitCode: 2 });
    expect(into?.stderr).toContain('a tree cannot be copied into itself');
    expect(itself).toMatchObject({ exitCode: 2 });
    // Without credentials hashes are masked, and a copy of a masked ACL would lock every user out.
    expect(masked).toMatchObject({ exitCode: 14 });
    expect(masked?.stderr).toContain('cannot read the ACL of /from/locked/child: the service hides the hashes');
    expect(several).toMatchObject({ exitCode: 2 });
    expect(mirror).toMatchObject({ exitCode: 2 });
  });

  test('an interrupted copy reports its progress, and the same command resumes it', async () => {
    const count = 20_000;
    await fill(site.client, '/many', count);
    const running = site.start(['cp', '-r', '/many', '/half']);
    // More than it has in flight, so some replies have arrived.
    while (((await site.client.exists('/half'))?.numChildren ?? 0) < 300) await delay(1);
    running.child.kill('SIGINT');
    const ended = await running.ended;
    expect(ended).toMatchObject({ exitCode: 130, stdout: '' });
    expect(ended.stderr).toMatch(
      /^copy: [\d,]+ znodes are written, the last one is \/half.*; the same command again continues from there\nmeerkat: interrupted\n$/,
    );
    const again = await site.run(['cp', '-r', '/many', '/half', '-o', 'json']);
    const { created, same } = JSON.parse(again.stdout) as { created: number; same: number };
    expect(created + same).toBe(count + 1);
    expect(same).toBeGreaterThan(0);
    expect((await site.client.exists('/half'))?.numChildren).toBe(count);
  });
});

describeWith(['apache'], 'meerkat cp between our server and that of Apache', () => {
  const sites = { ours: new CliSite('meerkat', {}), theirs: new CliSite('apache', {}) };

  test.each([
    ['ours', 'theirs'],
    ['theirs', 'ours'],
  ] as const)('copies from %s to %s and verifies, also a root', async (from, to) => {
    const [source, target] = [sites[from], sites[to]];
    for (const { client } of [source, target]) await client.addAuth('digest', 'ann:secret');
    if ((await source.client.exists('/from')) !== null) await source.client.deleteRecursive('/from');
    await makeTree(source.client);
    await target.client.create(`/by-${from}`, '');
    const root = `/by-${from}/root`;
    const args = ['cp', '-r', '/', `work:${root}`, '--auth', 'digest:ann:secret', '--exclude', 'by-*'];
    const env = profileOf(target);
    const ended = await source.run(args, { env });
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' });
    expect(ended.stdout).toContain('10 created, 1 ephemeral, left out');
    expect(ended.stdout).toContain('; verified: the copy is the same as its source\n');
    await expectCopy(target.client, `${root}/from`);
    expect(await target.client.exists(`${root}/zookeeper`)).toBe(null);
  });

  test('a copy survives a crash and restart of the service', async () => {
    const { ours, theirs } = sites;
    await fill(theirs.client, '/restarted', 6000);
    const { changed } = await ours.client.exists('/restarted', { watch: true });
    const running = theirs.start(['cp', '-r', '/restarted', `zk://${ours.address}/restarted`]);
    await changed;
    await ours.server.restart();
    const ended = await running.ended;
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' });
    expect(ended.stdout).toContain('; verified: ');
    expect((await ours.client.exists('/restarted'))?.numChildren).toBe(6000);
  });

  test('a copy that is changed during the run is reported as different', async () => {
    const { ours, theirs } = sites;
    await fill(ours.client, '/raced', 6000);
    const { changed } = await theirs.client.exists('/raced/00000', { watch: true });
    const running = ours.start(['cp', '-r', '/raced', `zk://${theirs.address}/raced`, '--no-acl']);
    await changed;
    // Thousands are still to be copied before the first one is verified.
    await theirs.client.set('/raced/00000', 'changed');
    const ended = await running.ended;
    expect(ended).toMatchObject({ exitCode: 26 });
    expect(ended.stderr).toMatch(
      /\/raced is not the same as \/raced: \/raced\/00000 \(data\); either may have been changed/,
    );
  });

  // At most 12 transactions of 250 znodes are in flight.
  test.each([
    ['silent-at-once', 1, /^copy: it is not known whether something was written; the same command again continues/],
    ['silent-later', 3300, /^copy: at least ([\d,]+) znodes are written, the last one is \/silent-later.*; the same/],
  ] as const)('an interrupted copy reports that more may have been written: %s', async (name, znodes, expected) => {
    const { ours, theirs } = sites;
    await fill(ours.client, `/${name}`, 20_000);
    await using proxy = await TcpProxy.start({ target: theirs.server.port });
    // Replies are delayed, so that the copy is not complete when they stop.
    proxy.delay(1000, 'toClient');
    const running = ours.start(['cp', '-r', `/${name}`, `zk://${proxy.connectString}/${name}`]);
    while (((await theirs.client.exists(`/${name}`))?.numChildren ?? 0) < znodes) await delay(10);
    proxy.freeze('toClient');
    running.child.kill('SIGINT');
    const ended = await running.ended;
    expect(ended).toMatchObject({ exitCode: 130, stdout: '' });
    expect(ended.stderr).toMatch(expected);
    const number = Number((expected.exec(ended.stderr)?.[1] ?? '0').replaceAll(',', ''));
    expect((await theirs.client.exists(`/${name}`))?.numChildren).toBeGreaterThan(number);
  });
});

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

async function fill(client: Client, root: string, count: number): Promise<void> {
  await client.create(root, '');
  const commits: Promise<unknown>[] = [];
  for (let i = 0; i < count; i += 500) {
    const transaction = client.transaction();
    for (let j = i; j < i + 500; j++) transaction.create(`${root}/${String(j).padStart(5, '0')}`, 'x');
    commits.push(transaction.commit());
  }
  await Promise.all(commits);
}

/** A profile "work" with the credentials of the tests. */
function profileOf(site: CliSite): Record<string, string> {
  const directory = site.directory();
  writeFileSync(join(directory, 'profiles.json'), JSON.stringify({ profiles: { work: { server: site.address } } }));
  const secrets = { work: { auth: ['digest:ann:secret'] } };
  writeFileSync(join(directory, 'secrets.json'), JSON.stringify(secrets), { mode: 0o600 });
  return { MEERKAT_CONFIG_DIR: directory };
}

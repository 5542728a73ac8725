import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';
import { describeRequests, type RunningCommand } from './harness.ts';

const text = (data: Uint8Array) => new TextDecoder().decode(data);

describeRequests('meerkat create and set', (site) => {
  beforeAll(async () => {
    await site.client.create('/w');
  });

  test('create prints the path: of a sequential znode, with missing parents, with data from a file', async () => {
    expect(await site.run(['create', '/w/text', 'on'])).toMatchObject({ exitCode: 0, stdout: '/w/text\n', stderr: '' });
    expect(text((await site.client.get('/w/text')).data)).toBe('on');
    const { stdout } = await site.run(['create', '-s', '/w/job-', 'x']);
    expect(stdout).toMatch(/^\/w\/job-\d{10}\n$/);
    const file = join(site.directory(), 'bytes');
    writeFileSync(file, Uint8Array.of(0, 255, 10));
    expect(await site.run(['create', '-p', '/w/a/b/c', '--file', file])).toMatchObject({ exitCode: 0 });
    expect((await site.client.get('/w/a/b/c')).data).toEqual(Uint8Array.of(0, 255, 10));
    expect(await site.run(['create', '-c', '/w/container'])).toMatchObject({ exitCode: 0 });
    expect(await site.run(['create', '-t', '1h', '/w/ttl'])).toMatchObject({ exitCode: 0, stdout: '/w/ttl\n' });
    rmSync(file);
    const gone = await site.run(['create', '/w/none', '--file', file]);
    expect(gone).toMatchObject({ exitCode: 28, stdout: '' });
    expect(gone.stderr).toMatch(/cannot read the data of --file .*: there is no such file/);
  });

  test('create prints the Stat as JSON, and whether the znode is new', async () => {
    const first = await site.run(['create', '--or-set', '/w/or', '{"a":1}', '--json', '-o', 'json']);
    expect(JSON.parse(first.stdout)).toMatchObject({ path: '/w/or', created: true, version: 0, dataLength: 7 });
    const second = await site.run(['create', '--or-set', '/w/or', '00ff', '--hex', '-o', 'ndjson']);
    expect(JSON.parse(second.stdout)).toMatchObject({ path: '/w/or', created: false, version: 1, dataLength: 2 });
  });

  test('create sets the ACL, also in the syntax of zkCli', async () => {
    await site.run(['create', '/w/acl', 'x', 'world:anyone:r,ip:127.0.0.1:cdrwa']);
    expect((await site.client.getAcl('/w/acl')).acl).toEqual([
      { scheme: 'world', id: 'anyone', perms: 1 },
      { scheme: 'ip', id: '127.0.0.1', perms: 31 },
    ]);
    const refused = await site.run(['create', '/w/acl2', 'x', '--acl', 'creator']);
    expect(refused).toMatchObject({ exitCode: 15, stdout: '' });
    const bad = await site.run(['create', '/w/acl2', 'x', '--acl', 'world:anyone:xyz']);
    expect(bad).toMatchObject({ exitCode: 2, stdout: '' });
    expect(bad.stderr).toMatch(/"xyz" are no permissions/);
  });

  test('an ephemeral znode is deleted when the command exits, which says so, and --hold keeps it', async () => {
    const oneShot = await site.run(['create', '-e', '/w/e']);
    expect(oneShot).toMatchObject({ exitCode: 0, stdout: '/w/e\n' });
    expect(oneShot.stderr).toMatch(/goes now, with the session of this command; --hold keeps it/);
    expect(await site.client.exists('/w/e')).toBeNull();

    const held = site.start(['create', '-e', '/w/e', 'here', '--hold']);
    await held.until('it says that it holds', ({ stderr }) => stderr.includes('/w/e stays until Ctrl-C'));
    expect((await site.client.exists('/w/e'))?.isEphemeral).toBe(true);
    held.child.kill('SIGINT');
    expect(await held.ended).toMatchObject({ exitCode: 130, stdout: '/w/e\n' });
    expect(await site.client.exists('/w/e')).toBeNull();

    const during = await site.run(['create', '-e', '/w/e', '--while', 'echo "at $MEERKAT_PATH"; exit 7']);
    expect(during).toMatchObject({ exitCode: 7, stdout: '/w/e\nat /w/e\n', stderr: '' });
    expect(await site.client.exists('/w/e')).toBeNull();
  });

  test('create reports why it fails', async () => {
    const exists = await site.run(['create', '/w', 'x']);
    expect(exists).toMatchObject({ exitCode: 11, stdout: '' });
    expect(exists.stderr).toMatch(/^meerkat: cannot create \/w: the znode exists already; "set" changes it/);
    const orphan = await site.run(['create', '/w/no/parent', 'x']);
    expect(orphan).toMatchObject({ exitCode: 10 });
    expect(orphan.stderr).toMatch(/--parents/);
    expect(await site.run(['create', '-c', '-e', '/w/x'])).toMatchObject({ exitCode: 2 });
    expect(await site.run(['create', 'w/x'])).toMatchObject({ exitCode: 2 });
    const endless = await site.run(['create', '/w/endless', '--file', '/dev/zero']);
    expect(endless).toMatchObject({ exitCode: 19, stdout: '' });
    expect(endless.stderr).toMatch(
      /^meerkat: the data of --file \/dev\/zero is longer than \d+ MiB: no znode holds it/,
    );
    const absent = await site.run(['create', '/w/absent', '--file', '/nonexistent/file']);
    expect(absent).toMatchObject({ exitCode: 28 });
    expect(absent.stderr).toContain('there is no such file or directory');
  });

  test('set writes text, bytes and piped input, compressed on demand', async () => {
    expect(await site.run(['set', '/w/text', 'off'])).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    expect(text((await site.client.get('/w/text')).data)).toBe('off');
    await site.run(['set', '/w/text', '-', '--gzip'], { input: 'a line\n' });
    expect(gunzipSync((await site.client.get('/w/text')).data).toString()).toBe('a line\n');
    await site.run(['set', '/w/text', '']);
    expect((await site.client.get('/w/text')).data).toHaveLength(0);
    const json = await site.run(['set', '/w/text', 'AP8=', '-b', '-o', 'json']);
    expect(JSON.parse(json.stdout)).toMatchObject({ path: '/w/text', version: 4, dataLength: 2 });
    const stat = await site.run(['set', '/w/text', 'x', '-s']);
    expect(stat.stdout).toMatch(/^czxid +0x[0-9a-f]+\n(.*\n)*version +5\n/);
    const noJson = await site.run(['set', '/w/text', '{a', '--json']);
    expect(noJson).toMatchObject({ exitCode: 25 });
    expect(noJson.stderr).toMatch(/the data are no JSON/);
    expect((await site.client.get('/w/text')).stat.version).toBe(5);
  });

  test('set checks the version, and creates missing znodes only on demand', async () => {
    await site.client.create('/w/v', '');
    expect(await site.run(['set', '/w/v', 'a', '--if-version', '0'])).toMatchObject({ exitCode: 0 });
    const changed = await site.run(['set', '/w/v', 'b', '-v', '0']);
    expect(changed).toMatchObject({ exitCode: 13, stdout: '' });
    expect(changed.stderr).toMatch(/cannot set \/w\/v: the znode has another version/);
    expect(await site.run(['set', '/w/v', 'b', '-v', 'new'])).toMatchObject({ exitCode: 2 });
    expect(await site.run(['set', '/w/missing/b', 'b'])).toMatchObject({ exitCode: 10, stdout: '' });
    expect(await site.run(['set', '/w/missing/b', 'b', '--create', '-p'])).toMatchObject({ exitCode: 0 });
    expect(text((await site.client.get('/w/missing/b')).data)).toBe('b');
    expect(await site.run(['set', '/w/v'])).toMatchObject({ exitCode: 2 });
  });

  test('set reports that no server answers, stops reading at Ctrl-C, and ignores a closed pipe', async () => {
    const away = await site.run(['set', '/w/v', 'x', '--server', '127.0.0.1:1', '--connect-timeout', '200ms']);
    expect(away).toMatchObject({ exitCode: 3, stdout: '' });
    const reading = site.start(['set', '/w/v', '-']);
    await waitUntilReading(reading);
    reading.child.kill('SIGINT');
    expect(await reading.ended).toMatchObject({ exitCode: 130, stderr: 'meerkat: interrupted\n' });
    expect(text((await site.client.get('/w/v')).data)).toBe('a');
    expect(await site.run(['set', '/w/v', 'c', '-s'], { isUnread: true })).toMatchObject({ exitCode: 141, stderr: '' });
    expect(text((await site.client.get('/w/v')).data)).toBe('c');
  });

  test('create stops the command that it runs when the session of the znode is lost', async () => {
    const line = 'echo runs; sleep 600; echo slept';
    const held = site.start(['create', '-e', '/w/lost', '--session-timeout', '1s', '--while', line]);
    await held.until('the command runs', ({ stdout }) => stdout.includes('runs'));
    await site.server.kill();
    expect(await held.ended).toMatchObject({
      exitCode: 21,
      stdout: '/w/lost\nruns\n',
      stderr: 'meerkat: the session was lost, so the ephemeral /w/lost is gone, and the command was ended\n',
    });
    await site.server.restart();
  });
});

/** Resolves when more than a pipe's capacity has been read from us. */
function waitUntilReading({ child }: RunningCommand): Promise<void> {
  return new Promise((resolve) => child.stdin.write(new Uint8Array(1024 * 1024), () => resolve()));
}

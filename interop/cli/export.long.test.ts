import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { acl, type Client } from '@meerkat/client';
import { beforeAll, expect, test } from 'vitest';
import { describeRequests, type Ended } from './harness.ts';

const OPEN_ENTRY = { perms: 'cdrwa', scheme: 'world', id: 'anyone' };

async function makeTree(client: Client): Promise<void> {
  await client.addAuth('digest', 'ann:secret');
  await client.create('/app', null);
  await client.create('/app/binary', Uint8Array.of(0, 255));
  await client.create('/app/config', '{"on":true}', { acl: [acl.world('r'), acl.digest('ann', 'secret')] });
  await client.create('/app/config/ä:b', '');
  await client.create('/app/me', 'short-lived', { mode: 'ephemeral' });
}

interface Line {
  readonly path?: string;
  readonly stat?: { readonly version: number };
}

function linesOf(text: string): readonly Line[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
}

describeRequests('meerkat export and import', (site) => {
  beforeAll(() => makeTree(site.client));

  const as = (...args: string[]): Promise<Ended> => site.run(['--auth', 'digest:ann:secret', ...args]);

  test('writes a line per znode between a header and an end line, to standard output', async () => {
    const ended = await as('export', '/app');
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' });
    const [header, ...lines] = linesOf(ended.stdout);
    const end = lines.pop();
    expect(header).toMatchObject({
      meerkatExport: 1,
      root: '/app',
      source: site.address,
      zxid: expect.stringMatching(/^0x/),
    });
    expect(lines).toMatchObject([
      { path: '/', data: null, acl: [OPEN_ENTRY], kind: 'persistent', stat: { version: 0, ephemeralOwner: '0x0' } },
      { path: '/binary', data: 'AP8=', encoding: 'base64' },
      {
        path: '/config',
        data: '{"on":true}',
        encoding: 'utf8',
        acl: [{ perms: 'r' }, { scheme: 'digest', perms: 'cdrwa' }],
      },
      { path: '/config/ä:b', data: '' },
      { path: '/me', data: 'short-lived', kind: 'ephemeral' },
    ]);
    expect(end).toMatchObject({ end: true, znodes: 5, zxid: expect.stringMatching(/^0x/) });
  });

  test('an export file gets its name when complete, is compressed on demand, and imports through a pipe', async () => {
    const directory = site.directory();
    const file = join(directory, 'app.gz');
    const ended = await as('export', '/app', file, '--no-stat');
    expect(ended).toMatchObject({ exitCode: 0, stdout: `exported 5 znodes of /app to ${file}\n`, stderr: '' });
    expect(readdirSync(directory)).toEqual(['app.gz']);
    const text = gunzipSync(readFileSync(file)).toString();
    expect(text.split('\n')[0]).toBe('{"meerkatExport":1,"root":"/app"}');
    expect(text).not.toContain('"stat"');

    const again = await as('export', '/app', file);
    expect(again).toMatchObject({ exitCode: 28 });
    expect(again.stderr).toContain('is there already: --overwrite replaces it');

    const piped = await site.run(['--auth', 'digest:ann:secret', 'import', '-', '/piped', '-o', 'json'], {
      input: readFileSync(file),
    });
    expect(piped).toMatchObject({ exitCode: 0, stderr: '' });
    expect(JSON.parse(piped.stdout)).toMatchObject({
      source: 'standard input',
      created: 4,
      ephemerals: 1,
      verified: true,
    });
    const copy = await as('export', '/piped', '--no-stat');
    expect(linesOf(copy.stdout).slice(1, -1)).toEqual(linesOf(text).slice(1, -2));
  });

  test('an import keeps the paths, adds a prefix or moves the tree; differences need an option', async () => {
    const file = join(site.directory(), 'app.ndjson');
    await as('export', '/app', file);
    const orphan = await as('import', file, '--prefix', '/deep/below');
    expect(orphan).toMatchObject({ exitCode: 10 });
    expect(orphan.stderr).toContain('--parents makes it');
    const below = await as('import', file, '--prefix', '/deep/below', '--parents');
    expect(below.stdout).toMatch(/^imported .* to \/deep\/below\/app: 4 created, 1 ephemeral, left out .*; verified/);

    await site.client.set('/deep/below/app/binary', 'changed');
    await site.client.create('/deep/below/app/extra', '');
    const refused = await as('import', file, '/deep/below/app');
    expect(refused).toMatchObject({ exitCode: 11 });
    const rehearsed = await as('import', file, '/deep/below/app', '--delete', '--dry-run', '-o', 'ndjson');
    expect(linesOf(rehearsed.stdout)).toEqual([
      { action: 'change', path: '/deep/below/app/binary', what: ['data'], bytes: 2 },
      { action: 'delete', path: '/deep/below/app/extra', what: [], bytes: null },
    ]);
    const mirrored = await as('import', file, '/deep/below/app', '--delete');
    expect(mirrored.stdout).toContain('1 changed, 1 deleted, 3 the same before');
    const same = await as('import', file);
    expect(same.stdout).toContain(': 4 the same before, 1 ephemeral');
  });

  test('directories hold the data as files, and can be edited', async () => {
    const directory = join(site.directory(), 'app');
    const ended = await as('export', '/app', '--dir', directory);
    expect(ended).toMatchObject({ exitCode: 0, stdout: `exported 5 znodes of /app to ${directory}\n` });
    expect(readdirSync(directory).toSorted()).toEqual(['_meerkat.json', 'binary', 'config', 'me']);
    expect(readFileSync(join(directory, 'binary/_znode'))).toEqual(Buffer.of(0, 255));
    expect(readFileSync(join(directory, 'config/ä%3Ab/_znode'), 'utf8')).toBe('');

    writeFileSync(join(directory, 'config/_znode'), '{"on":false}');
    const imported = await as('import', directory, '/from-directory');
    expect(imported).toMatchObject({ exitCode: 0, stderr: '' });
    const difference = await as('diff', '/app', '/from-directory');
    expect(difference).toMatchObject({ exitCode: 1 });
    expect(difference.stdout).toBe(
      '~ /config  data\n     {\n    -  "on": true\n    +  "on": false\n     }\n- /me  11 B, ephemeral\n',
    );
  });

  test('containers and TTL znodes are created from a file', async () => {
    const file = join(site.directory(), 'kinds.ndjson');
    const lines = [
      { meerkatExport: 1, root: '/kinds' },
      { path: '/', data: 'top' },
      { path: '/container', data: '', kind: 'container' },
      { path: '/ttl', data: '', kind: 'ttl', ttlMs: 60_000 },
      { end: true, znodes: 3 },
    ];
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const ended = await site.run(['import', file]);
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' });
    expect((await site.client.children('/kinds')).children.toSorted()).toEqual(['container', 'ttl']);
  });

  test('a truncated or invalid file changes nothing, and the line is reported', async () => {
    const whole = (await as('export', '/app', '--no-stat')).stdout;
    const lines = whole.split('\n');
    const file = join(site.directory(), 'bad');
    const importing = async (text: string | Uint8Array): Promise<string> => {
      writeFileSync(file, text);
      const ended = await site.run(['import', file, '/bad']);
      expect(ended).toMatchObject({ exitCode: 25, stdout: '' });
      return ended.stderr.replace(file, 'FILE');
    };
    expect(await importing(lines.slice(0, 4).join('\n'))).toBe(
      'meerkat: FILE, line 4: the file is cut off behind 3 znodes: its last line, {"end":true,…}, is missing\n',
    );
    expect(await importing(whole.slice(0, -10))).toContain('line 7: the file is cut off behind 5 znodes');
    expect(await importing(lines.toSpliced(3, 1).join('\n'))).toContain('line 4: "/config/ä:b" has no parent');
    expect(await importing(lines.toSpliced(2, 1).join('\n'))).toContain(
      'line 6: the end counts 5 znodes, and the file has 4',
    );
    expect(await importing(whole.replace('"utf8"', '"utf16"'))).toContain('line 4: encoding: expected');
    expect(await importing(Buffer.from('{"meerkatExport":1,"root":"/a\xff"}\n', 'latin1'))).toContain('it is no UTF-8');
    expect(await importing('')).toContain('line 1: the file is empty');
    expect(await importing('[]\n')).toContain('expected the first line of an export');
    expect(await site.client.exists('/bad')).toBe(null);

    const packed = (await as('export', '/app', '-z')).bytes;
    expect(gunzipSync(packed).toString()).toContain('"end":true');
    expect(await importing(packed.subarray(0, packed.length - 20))).toBe('meerkat: FILE: the file is cut off\n');
  });

  test('a failed export leaves no file behind', async () => {
    const directory = site.directory();
    const [missing, masked, absent, away] = await Promise.all([
      site.run(['export', '/nowhere', join(directory, 'a')]),
      site.run(['export', '/app', join(directory, 'b')]),
      site.run(['import', join(directory, 'c')]),
      site.run(['import', '-', '/x', '--server', '127.0.0.1:1', '--connect-timeout', '200ms'], {
        input: '{"meerkatExport":1,"root":"/"}\n',
      }),
    ]);
    expect(missing).toMatchObject({ exitCode: 10 });
    expect(masked).toMatchObject({ exitCode: 14 });
    expect(absent).toMatchObject({ exitCode: 28 });
    expect(absent?.stderr).toContain('there is no such file');
    expect(away).toMatchObject({ exitCode: 3 });
    expect(readdirSync(directory)).toEqual([]);
  });

  test('ends quietly when its reader goes', async () => {
    expect(await site.run(['export', '/zookeeper'], { isUnread: true })).toMatchObject({ exitCode: 141, stderr: '' });
  });
});

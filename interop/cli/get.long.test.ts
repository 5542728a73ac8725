import { gzipSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';
import { describeRequests } from './harness.ts';

const BINARY = Buffer.from('89504e470d0a1a0a0000ff', 'hex');
const JSON_TEXT = '{"port":8080,"big":12345678901234567890}';

describeRequests('meerkat get and stat', (site) => {
  beforeAll(async () => {
    const { client } = site;
    await client.create('/get');
    await client.create('/get/text', 'wörds');
    await client.create('/get/json', JSON_TEXT);
    await client.create('/get/logo', BINARY);
    await client.create('/get/packed', gzipSync(JSON_TEXT));
    await client.create('/get/mine', 'me', { mode: 'ephemeral' });
    await client.set('/get/text', 'wörds');
  });

  test('writes the exact bytes to a pipe, without a line feed', async () => {
    for (const [path, data] of [
      ['/get/text', Buffer.from('wörds')],
      ['/get/logo', BINARY],
      ['/get', Buffer.alloc(0)],
    ] as const) {
      const { exitCode, bytes, stderr } = await site.run(['get', path]);
      expect({ exitCode, bytes, stderr }).toEqual({ exitCode: 0, bytes: data, stderr: '' });
    }
  });

  test('shows data in other formats, and refuses data that do not match the format', async () => {
    const json = await site.run(['get', '/get/packed', '--as', 'json']);
    expect(json.stdout).toBe('{\n  "port": 8080,\n  "big": 12345678901234567890\n}\n');
    expect((await site.run(['get', '-b', '/get/logo'])).stdout).toBe('iVBORw0KGgoAAP8=\n');
    expect((await site.run(['get', '-x', '/get/logo'])).stdout).toMatch(
      /^00000000 {2}89 50 4e 47 .*\|\.PNG\.\.\.\.\.\.\.\|\n$/,
    );
    const refused = await site.run(['get', '/get/logo', '--as', 'text']);
    expect(refused).toMatchObject({ exitCode: 25, stdout: '' });
    expect(refused.stderr).toBe(
      'meerkat: /get/logo: the data are no UTF-8 text: --as hexdump shows them, --as raw gives the bytes\n',
    );
    expect(await site.run(['get', '/get', '--as', 'octal'])).toMatchObject({ exitCode: 2, stdout: '' });
  });

  test('prints the Stat after the data', async () => {
    const { stdout } = await site.run(['get', '-s', '/get/text']);
    expect(stdout).toMatch(/^wörds\nczxid {11}0x[0-9a-f]+\nctime {11}\d{4}-.* {2}\(created .*\)\n/);
    expect(stdout).toMatch(
      /\nversion {9}1\n.*\nephemeralOwner {2}0x0 {2}\(not ephemeral\)\ndataLength {6}6\nnumChildren {5}0\n$/s,
    );
  });

  test('shows several znodes under their paths, reports missing ones and continues', async () => {
    const several = await site.run(['get', '/get/{text,js*}', '/get/nothing', '/get/logo']);
    expect(several.exitCode).toBe(10);
    expect(several.stdout).toMatch(
      /^\/get\/json:\n\{\n {2}"port": 8080,\n {2}"big": 12345678901234567890\n\}\n\n\/get\/text:\nwörds\n\n\/get\/logo:\n00000000 {2}89 /,
    );
    expect(several.stderr).toBe('meerkat: cannot read /get/nothing: there is no such znode\n');
    const raw = await site.run(['get', '/get/text', '/get/logo', '--as', 'raw']);
    expect(raw.bytes).toEqual(Buffer.concat([Buffer.from('wörds'), BINARY]));
    const none = await site.run(['get', '/get/x*']);
    expect(none).toMatchObject({ exitCode: 10, stdout: '', stderr: 'meerkat: there is no znode like /get/x*\n' });
  });

  test('prints JSON: an object, an array for several, or one line each', async () => {
    const one = await site.run(['get', '/get/logo', '-o', 'json']);
    expect(JSON.parse(one.stdout)).toMatchObject({
      path: '/get/logo',
      data: 'iVBORw0KGgoAAP8=',
      encoding: 'base64',
      stat: { version: 0, dataLength: 11, ephemeralOwner: '0x0' },
    });
    const list = await site.run(['get', '/get/text*', '-o', 'json']);
    expect(JSON.parse(list.stdout)).toMatchObject([{ path: '/get/text', data: 'wörds', encoding: 'utf8' }]);
    const lines = await site.run(['get', '/get/packed', '/get/nothing', '-o', 'ndjson', '--as', 'text']);
    expect(JSON.parse(lines.stdout)).toMatchObject({ path: '/get/packed', data: JSON_TEXT, encoding: 'utf8' });
    expect(JSON.parse(lines.stderr)).toMatchObject({ error: { code: 'NONODE', exitCode: 10, path: '/get/nothing' } });
    const fields = await site.run(['get', '/get/text', '-o', 'fields']);
    expect(fields.stdout.split('\t')).toHaveLength(14);
    expect(fields.stdout).toMatch(/^\/get\/text\twörds\tutf8\t0x/);
  });

  test('explains a Stat, and names the owner of an ephemeral znode', async () => {
    const { stdout } = await site.run(['stat', '/get/mine']);
    const owner = site.client.session!.id.toString(16);
    expect(stdout).toMatch(new RegExp(`\\nephemeralOwner  0x${owner}  \\(ephemeral: goes with this session.*\\)\\n`));
    const several = await site.run(['stat', '/get/nothing', '/get/t*', '/get/mine']);
    expect(several).toMatchObject({ exitCode: 10 });
    expect(several.stdout).toMatch(/^\/get\/text:\nczxid .*\n\n\/get\/mine:\nczxid /s);
    expect(several.stderr).toBe('meerkat: cannot look at /get/nothing: there is no such znode\n');
    const json = await site.run(['stat', '/get/text', '-o', 'json']);
    const { mzxid, version, mtime } = (await site.client.get('/get/text')).stat;
    expect(JSON.parse(json.stdout)).toMatchObject({
      path: '/get/text',
      mzxid: `0x${mzxid.toString(16)}`,
      mtime: new Date(mtime).toISOString(),
      version,
      dataLength: 6,
    });
  });

  test('reports that no server is available, and that a path is invalid', async () => {
    const away = await site.run(['get', '/x', '--server', '127.0.0.1:1', '--connect-timeout', '300ms']);
    expect(away).toMatchObject({ exitCode: 3, stdout: '' });
    expect(away.stderr).toMatch(/^meerkat: no server answered .*\n {2}127\.0\.0\.1:1: connection refused/);
    expect(await site.run(['stat', 'get'])).toMatchObject({ exitCode: 2, stdout: '' });
    expect(await site.run(['get', '/get//text'])).toMatchObject({ exitCode: 18, stdout: '' });
    expect(await site.run(['get', '/get/text/'])).toMatchObject({ exitCode: 0, stdout: 'wörds' });
  });

  test('ends quietly when its reader goes', async () => {
    await site.client.create('/get/long', Buffer.alloc(900_000, 'x'));
    const words = ['get', ...Array<string>(3).fill('/get/long'), '/get/text'];
    expect(await site.run(words, { isUnread: true })).toMatchObject({ exitCode: 141, stderr: '' });
  });
});

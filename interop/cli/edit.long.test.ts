import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';
import { describeRequests } from './harness.ts';

describeRequests('meerkat edit', (site) => {
  let scratch = '';
  const textOf = async (path: string) => new TextDecoder().decode((await site.client.get(path)).data);
  const edit = (path: string, editor: string, ...more: readonly string[]) =>
    site.run(['edit', path, ...more], { env: { EDITOR: editor, TMPDIR: scratch } });
  /** The file that the text was kept in, according to the message. */
  const keptIn = (stderr: string) => /your text is in (\S+)/.exec(stderr)?.[1] ?? '';

  beforeAll(async () => {
    scratch = site.directory();
    for (const [path, data] of [
      ['/edit', 'a'],
      ['/edit/text', 'one\ntwo'],
      ['/edit/json', '{"a":1}'],
      ['/edit/gzip', new Uint8Array(gzipSync('packed'))],
      ['/edit/bytes', Uint8Array.of(0, 255)],
    ] as const) {
      await site.client.create(path, data);
    }
  });

  test('writes the edited text in its original format', async () => {
    expect(await edit('/edit/text', 'sed -i s/two/three/')).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: '/edit/text has version 1 now\n',
    });
    expect(await textOf('/edit/text')).toBe('one\nthree');
    const json = await edit('/edit/json', 'sed -i "s/: 1/: 2/"', '-o', 'json');
    expect(JSON.parse(json.stdout)).toMatchObject({ path: '/edit/json', changed: true, version: 1 });
    expect(await textOf('/edit/json')).toBe('{"a":2}');
    await edit('/edit/gzip', 'sed -i s/packed/again/');
    expect(gunzipSync((await site.client.get('/edit/gzip')).data).toString()).toBe('again');
    await edit('/edit/bytes', 'sed -i s/ff/fe/', '--hex');
    expect((await site.client.get('/edit/bytes')).data).toEqual(Uint8Array.of(0, 254));
    expect(readdirSync(scratch)).toEqual([]);
  });

  test('gives the editor a private file, and writes nothing when nothing was changed', async () => {
    const script = join(scratch, 'look.sh');
    writeFileSync(
      script,
      `#!/bin/sh\nstat -c '%a %n' "$1" > ${scratch}/mode\nstat -c %a "$(dirname "$1")" >> ${scratch}/mode\n`,
    );
    chmodSync(script, 0o700);
    const same = await edit('/edit/json', script, '-o', 'ndjson');
    expect(JSON.parse(same.stdout)).toMatchObject({ changed: false, version: 1 });
    const [file = '', directory] = readFileSync(join(scratch, 'mode'), 'utf8').trim().split('\n');
    expect(file).toMatch(/^600 .*\/json\.json$/);
    expect(directory).toBe('700');
    expect(existsSync(file.slice(4))).toBe(false);
    expect((await edit('/edit/text', 'true')).stderr).toBe('/edit/text is as it was: nothing was written\n');
  });

  test('keeps the text when another client was faster, and says how to continue', async () => {
    const script = join(scratch, 'slow.sh');
    writeFileSync(script, '#!/bin/sh\necho mine > "$1"\ntouch "$STARTED"\nwhile [ ! -e "$GO" ]; do sleep 0.05; done\n');
    chmodSync(script, 0o700);
    const [started, go] = [join(scratch, 'started'), join(scratch, 'go')];
    const running = site.start(['edit', '/edit'], {
      env: { VISUAL: script, TMPDIR: scratch, STARTED: started, GO: go },
    });
    while (!existsSync(started)) await new Promise((resolve) => setTimeout(resolve, 20));
    await site.client.set('/edit', 'theirs');
    writeFileSync(go, '');
    const { exitCode, stderr } = await running.ended;
    expect(exitCode).toBe(13);
    const kept = keptIn(stderr);
    expect(stderr).toBe(
      `meerkat: another client has changed /edit meanwhile; it has version 1 now: nothing was written; your text is in ${kept}\n` +
        `"meerkat get /edit" shows theirs, "meerkat set /edit --file ${kept} --if-version 1" writes yours\n`,
    );
    expect(readFileSync(kept, 'utf8')).toBe('mine\n');
    expect(statSync(kept).mode & 0o777).toBe(0o600);
    expect(await textOf('/edit')).toBe('theirs');
  });

  test('stops with the editor on a signal, and keeps the text', async () => {
    const script = join(scratch, 'wait.sh');
    writeFileSync(script, '#!/bin/sh\necho begun > "$1"\ntouch "$STARTED"\nexec sleep 600\n');
    chmodSync(script, 0o700);
    const started = join(scratch, 'waiting');
    const running = site.start(['edit', '/edit'], { env: { VISUAL: script, TMPDIR: scratch, STARTED: started } });
    while (!existsSync(started)) await new Promise((resolve) => setTimeout(resolve, 20));
    running.child.kill('SIGTERM');
    const { exitCode, stderr } = await running.ended;
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 143,
      stderr: expect.stringMatching(/^meerkat: interrupted: nothing was written; your text is in /),
    });
    expect(readFileSync(keptIn(stderr), 'utf8')).toBe('begun\n');
  });

  test('refuses text that is no longer valid JSON, and keeps it', async () => {
    const broken = await edit('/edit/json', 'sed -i s/}//');
    expect(broken).toMatchObject({ exitCode: 25, stdout: '' });
    expect(broken.stderr).toMatch(/it is no longer valid JSON/);
    expect(readFileSync(keptIn(broken.stderr), 'utf8')).toMatch(/^\{\n {2}"a": 2\n/);
    expect(await textOf('/edit/json')).toBe('{"a":2}');
  });

  test('creates on demand, and reports missing znodes, binary data and a failed editor', async () => {
    expect(await edit('/edit/new/one', 'true')).toMatchObject({ exitCode: 10 });
    expect(await edit('/edit/new/one', 'echo x >', '--create')).toMatchObject({ exitCode: 0 });
    expect(await textOf('/edit/new/one')).toBe('x');
    const bytes = await edit('/edit/bytes', 'true');
    expect(bytes).toMatchObject({ exitCode: 25 });
    expect(bytes.stderr).toMatch(/no text: edit them as hex with --hex/);
    const failed = await edit('/edit/text', 'false');
    expect(failed).toMatchObject({ exitCode: 2 });
    expect(failed.stderr).toMatch(/cannot edit with "false": it failed/);
    expect(await edit('/edit/text', '')).toMatchObject({ exitCode: 2 });
    const away = await site.run([
      'edit',
      '/x',
      '--editor',
      'true',
      '--server',
      '127.0.0.1:1',
      '--connect-timeout',
      '200ms',
    ]);
    expect(away).toMatchObject({ exitCode: 3 });
  });
});

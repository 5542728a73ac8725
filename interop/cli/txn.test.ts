import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeCli } from './harness.ts';

describeCli('meerkat txn', (site) => {
  test('runs all operations of a file, and prints the result of each', async () => {
    const { client } = site;
    for (const path of ['/t', '/t/a', '/t/old']) await client.create(path, 'old');
    const directory = site.directory();
    writeFileSync(join(directory, 'blob'), Uint8Array.of(0, 255, 10));
    writeFileSync(
      join(directory, 'changes'),
      [
        '# a comment',
        'check /t/a -v 0',
        'create -s /t/job- "a value" --acl world:anyone:rd',
        'set /t/a @blob -v 0',
        '  create /t/mail "@home"',
        'set /t "-5"',
        'delete /t/old',
      ].join('\n'),
    );
    const { stdout, stderr, exitCode } = await site.run(['txn', 'changes', '-o', 'json'], { cwd: directory });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const rows = JSON.parse(stdout) as { op: string; path: string; version: number | null }[];
    expect(rows.map(({ op, path }) => [op, path])).toEqual([
      ['check', '/t/a'],
      ['create', '/t/job-0000000002'],
      ['set', '/t/a'],
      ['create', '/t/mail'],
      ['set', '/t'],
      ['delete', '/t/old'],
    ]);
    expect(rows[2]?.version).toBe(1);
    const text = async (path: string): Promise<string> => new TextDecoder().decode((await client.get(path)).data);
    expect(Array.from((await client.get('/t/a')).data)).toEqual([0, 255, 10]);
    expect([await text('/t/job-0000000002'), await text('/t/mail'), await text('/t')]).toEqual([
      'a value',
      '@home',
      '-5',
    ]);
    expect((await client.getAcl('/t/job-0000000002')).acl).toEqual([{ scheme: 'world', id: 'anyone', perms: 9 }]);
    expect(await client.exists('/t/old')).toBeNull();
  });

  test('reports the operation that is refused, and applies nothing', async () => {
    await site.client.create('/refused', 'old');
    const input = 'set /refused new\n\ncheck /refused -v 7\n';
    const refused = await site.run(['txn'], { input });
    expect(refused).toMatchObject({ exitCode: 13, stdout: '' });
    expect(refused.stderr).toMatch(
      /^meerkat: line 3: cannot check \/refused: the znode has another version.*; nothing was done\n$/,
    );
    const missing = await site.run(['txn', '-o', 'ndjson'], { input: '{"op":"delete","path":"/nowhere"}\n' });
    expect(missing.exitCode).toBe(10);
    expect(JSON.parse(missing.stderr)).toMatchObject({ error: { code: 'NONODE', path: '/nowhere', exitCode: 10 } });
    expect((await site.client.get('/refused')).stat.version).toBe(0);
  });

  test('accepts JSON as an array or an object per line, with binary data', async () => {
    const operations = [
      { op: 'create', path: '/json', data: 'AP8=', encoding: 'base64' },
      { op: 'create', path: '/json/e-', mode: 'ephemeral', sequential: true },
    ];
    const array = await site.run(['txn', '-', '-o', 'fields'], { input: JSON.stringify(operations) });
    expect(array.stdout).toMatch(/^1\tcreate\t\/json\t.*\n2\tcreate\t\/json\/e-0000000000\t/);
    expect(Array.from((await site.client.get('/json')).data)).toEqual([0, 255]);
    const lines = '\n{"op":"check","path":"/json","version":0}\n{"op":"set","path":"/json","data":"ä"}\n';
    const table = await site.run(['txn'], { input: lines });
    expect(table.stdout).toBe('op     path   version\ncheck  /json\nset    /json        1\n');
  });

  test('reports errors with their line, before anything is sent', async () => {
    const nowhere = { env: { MEERKAT_SERVER: '127.0.0.1:1' } };
    const mistakes: readonly (readonly [string, number, string])[] = [
      ['check /a\nfrobnicate /b', 2, 'standard input, line 2: "frobnicate" is no operation of a transaction'],
      ['\nset /a', 2, 'standard input, line 2: set /a: the value is missing'],
      ['set /a x -v three', 2, 'line 1: --if-version: expected a number, found "three"'],
      ['set /a "x', 2, 'line 1: the quote " is not closed'],
      ['set /a @/no/such/file', 28, 'line 1: cannot read the data of --file /no/such/file: there is no such file'],
      ['create /a x --acl world:me', 2, 'line 1: the entry "world:me" of the ACL'],
      ['delete', 2, "line 1: missing required argument 'path'"],
      ['[{"op":"set","path":"/a"}]', 2, 'standard input, operation 1: data:'],
      ['{"op":"jump","path":"/a"}', 2, 'standard input, line 1: op:'],
      ['# nothing', 2, 'standard input: there are no operations'],
    ];
    const runs = await Promise.all(mistakes.map(([input]) => site.run(['txn'], { ...nowhere, input })));
    for (const [i, [, exitCode, message]] of mistakes.entries()) {
      expect(runs[i]).toMatchObject({ exitCode, stdout: '' });
      expect(runs[i]?.stderr).toContain(message);
    }
    const dry = await site.run(['txn', '-n'], { ...nowhere, input: 'delete /x' });
    expect(dry).toMatchObject({ exitCode: 0, stdout: 'op      path  version\ndelete  /x\n' });
  });
});

import { acl } from '@meerkat/client';
import { TcpProxy } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { describeCli, type RunningCommand } from './harness.ts';

interface Row {
  readonly kind: string;
  readonly path: string;
  readonly zxid: string | null;
  readonly source: string;
  readonly data: string | null;
  readonly encoding: string | null;
  readonly before: { readonly data: string } | null;
  readonly came: readonly string[];
  readonly went: readonly string[];
}

function untilWatching(command: RunningCommand): Promise<void> {
  return command.until('it watches', ({ stderr }) => stderr.includes('watching '));
}

function rowsOf(command: { readonly stdout: string }): readonly Row[] {
  return command.stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Row);
}

function untilRows(command: RunningCommand, count: number): Promise<void> {
  return command.until(`${count} rows have come`, ({ stdout }) => stdout.split('\n').length > count);
}

describeCli('meerkat watch', (site) => {
  test('prints creations, changes and deletions below a znode as they happen, with old and new data', async () => {
    const { client } = site;
    await client.create('/w', 'zero');
    const command = site.start(['watch', '-r', '/w', '-o', 'ndjson']);
    await untilWatching(command);
    const { stat: created } = await client.create('/w/a', 'one');
    await untilRows(command, 1);
    const changed = await client.set('/w/a', Uint8Array.of(0, 255));
    await untilRows(command, 2);
    await client.set('/w', 'two');
    await untilRows(command, 3);
    await client.delete('/w/a');
    await untilRows(command, 4);
    command.child.kill('SIGINT');
    expect(await command.ended).toMatchObject({ exitCode: 130 });
    const rows = rowsOf(command);
    expect(rows.map(({ kind, path }) => [kind, path])).toEqual([
      ['created', '/w/a'],
      ['changed', '/w/a'],
      ['changed', '/w'],
      ['deleted', '/w/a'],
    ]);
    expect(rows[0]).toMatchObject({
      data: 'one',
      before: null,
      source: 'event',
      zxid: `0x${created.czxid.toString(16)}`,
    });
    expect(rows[1]).toMatchObject({ data: 'AP8=', encoding: 'base64', before: { version: 0, data: 'one' } });
    expect(rows[1]?.zxid).toBe(`0x${changed.mzxid.toString(16)}`);
    expect(rows[2]).toMatchObject({ data: 'two', before: { data: 'zero' } });
    expect(rows[3]).toMatchObject({ data: null, before: { version: 1, data: 'AP8=' } });
  });

  test('reports unreadable znodes, and prints changes of the others with their old data', async () => {
    const { client } = site;
    await client.create('/open');
    await client.create('/open/secret', 'x', { acl: [acl.digest('ann', 'pw')] });
    await client.create('/open/text', 'one');
    const command = site.start(['watch', '-r', '/open', '-o', 'ndjson', '--count', '1']);
    await command.until('it watches', ({ stderr }) => stderr.includes('--auth gives credentials'));
    expect(command.stderr).toContain('/open/secret may not be read: changes there are not reported');
    expect(command.stderr).not.toContain('too many');
    await client.set('/open/text', 'two');
    expect((await command.ended).exitCode).toBe(0);
    expect(rowsOf(command)).toMatchObject([{ path: '/open/text', data: 'two', before: { data: 'one' } }]);
  });

  test('shows diffs and changed children as text, and ends after a number of changes', async () => {
    const { client } = site;
    const command = site.start(['watch', '/people', '--count', '4']);
    await command.until('it watches', ({ stderr }) => stderr.includes('there is no such znode yet'));
    await client.create('/people', 'first\nline');
    await command.until('the creation is told', ({ stdout }) => stdout.includes('created'));
    await client.set('/people', 'second\nline');
    await command.until('the change is told', ({ stdout }) => stdout.includes('changed'));
    await client.create('/people/ann', '');
    await command.until('the child is told', ({ stdout }) => stdout.includes('+ann'));
    await client.delete('/people/ann');
    const { exitCode, stdout } = await command.ended;
    expect(exitCode).toBe(0);
    const time = '\\d\\d:\\d\\d:\\d\\d\\.\\d{3}';
    expect(stdout).toMatch(
      new RegExp(
        `^${time}  0x\\w+ +created   /people  version 0, 10 B\n    \\+first\n    \\+line\n` +
          `${time}  0x\\w+ +changed   /people  version 1, 11 B\n    -first\n    \\+second\n     line\n` +
          `${time}  .{11}  children  /people  \\+ann\n${time}  .{11}  children  /people  -ann\n$`,
      ),
    );
  });

  test('reports gaps, and finds the missed changes by comparison', async () => {
    const { client } = site;
    await client.create('/gap', '');
    for (const name of ['kept', 'goes', 'set']) await client.create(`/gap/${name}`, 'old');
    await using proxy = await TcpProxy.start({ target: site.server.port });
    const command = site.start(['watch', '-r', '/gap', '-o', 'ndjson'], {
      env: { MEERKAT_SERVER: proxy.connectString },
    });
    await untilWatching(command);
    await proxy.refuse();
    await proxy.cut();
    await client.delete('/gap/goes');
    await client.set('/gap/set', 'new');
    await client.create('/gap/came', 'x');
    await proxy.accept();
    await untilRows(command, 4);
    const rows = rowsOf(command);
    expect(command.stderr).toContain('no connection: ');
    expect(rows[0]).toMatchObject({ kind: 'gap', reason: 'reconnected' });
    const compared = rows.slice(1, 4).toSorted((a, b) => (a.path < b.path ? -1 : 1));
    expect(compared).toMatchObject([
      { kind: 'created', path: '/gap/came', source: 'comparison', data: 'x', before: null },
      { kind: 'deleted', path: '/gap/goes', source: 'comparison', before: { data: 'old' } },
      { kind: 'changed', path: '/gap/set', source: 'comparison', data: 'new', before: { data: 'old' } },
    ]);
    await client.set('/gap/kept', 'later');
    await untilRows(command, 5);
    expect(rowsOf(command).at(-1)).toMatchObject({ kind: 'changed', path: '/gap/kept', before: { data: 'old' } });
  });

  test('counts changes per znode for a period', async () => {
    const { client } = site;
    await client.create('/busy', '');
    const command = site.start(['watch', '-r', '/busy', '--stats', '--count', '7']);
    const interrupted = site.start(['watch', '-r', '/quiet', '--stats', '-o', 'ndjson']);
    await Promise.all([untilWatching(command), untilWatching(interrupted)]);
    await client.create('/busy/a', '');
    for (let i = 0; i < 5; i++) await client.set('/busy/a', `${i}`);
    await client.set('/busy', 'x');
    const { exitCode, stdout } = await command.ended;
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^7 changes of 2 znodes in \d+ s\npath +total +perSecond +created/);
    expect(stdout).toMatch(/\n\/busy\/a +6 +\d+(\.\d\d)? +1 +5 +0 +0 /);
    await client.create('/quiet', '');
    interrupted.child.kill('SIGINT');
    const rest = await interrupted.ended;
    expect(rest.exitCode).toBe(130);
    const few = await site.run(['watch', '/busy', '--for', '100ms', '--count', '1', '-q']);
    expect(few).toMatchObject({ exitCode: 124, stdout: '' });
    const [timed, wrong, away] = await Promise.all([
      site.run(['watch', '-r', '/busy', '--stats', '--for', '100ms', '-o', 'json']),
      site.run(['watch', '/busy', '--count', 'few']),
      site.run(['watch', '/busy', '--connect-timeout', '300ms'], { env: { MEERKAT_SERVER: '127.0.0.1:1' } }),
    ]);
    expect(timed).toMatchObject({ exitCode: 0, stdout: '[]\n' });
    expect([wrong.exitCode, away.exitCode]).toEqual([2, 3]);
  });

  test('ends quietly when its reader goes', async () => {
    const { client } = site;
    await client.create('/read', '');
    const command = site.start(['watch', '/read']);
    await untilWatching(command);
    command.child.stdout.destroy();
    await client.set('/read', 'x');
    expect((await command.ended).exitCode).toBe(141);
  });
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { Ensemble } from '../ensemble/ensemble.ts';
import { describeWith } from '../harness/peers.ts';
import { freePort, SUPER_CREDENTIALS } from '../harness/server-process.ts';
import { describeRequests, RunningCommand } from './harness.ts';

describeRequests('meerkat shell without a terminal', (site) => {
  beforeAll(async () => {
    await site.client.create('/s', 'data');
    await site.client.create('/s/child', new Uint8Array([0, 255, 1]));
  });

  test('runs the lines of -c in one session, and continues after a failure', async () => {
    const { exitCode, stdout, stderr } = await site.run([
      'shell',
      '-c',
      'create -e /s/mine; cd /s; get nope; get nope -o json; getEphemerals; stat -o fields /s/nope; ls',
    ]);
    expect(stdout).toBe('Created /s/mine\n/s/mine\nchild\nmine\n');
    expect(stderr).toMatch(/^meerkat: cannot read \/s\/nope: .*\(Node does not exist: \/s\/nope\)\n/);
    expect(stderr).toContain('{"error":{"code":"NONODE","exitCode":10,"path":"/s/nope",');
    expect(exitCode).toBe(10);
    expect(await site.client.exists('/s/mine')).toBeNull();
  });

  test('stops at the first line that fails with -e, from -c as from standard input', async () => {
    const given = await site.run(['shell', '-e', '-c', 'get /nope; ls /s']);
    expect(given).toMatchObject({ exitCode: 10, stdout: '' });
    const input = '# a script\nls /s\n\nget /nope\nls /s\n';
    const piped = await site.run(['shell', '--exit-on-error'], { input });
    expect(piped).toMatchObject({ exitCode: 10, stdout: 'child\n' });
    expect(piped.stderr).toMatch(/^meerkat: line 4: cannot read \/nope/);
    expect(await site.run(['shell', '-e'], { input: 'ls /s' })).toMatchObject({
      exitCode: 0,
      stdout: 'child\n',
      stderr: '',
    });
  });

  test('answers each line at once, and accepts multi-line values', async () => {
    const shell = site.start(['shell']);
    const send = (text: string): void => void shell.child.stdin.write(text);
    send('pwd\ncd /s; pwd\nset chi');
    await shell.until('both are answered', ({ stdout }) => stdout === '/\n/s\n');
    send("ld 'first\n");
    send("second'; get child\nset child <<END\n");
    await shell.until('the value is set', ({ stdout }) => stdout.endsWith('first\nsecond\n'));
    send('{}\nEND\nget -w child\n');
    await shell.until('the next one is read', ({ stdout }) => stdout.endsWith('{}\n'));
    await site.client.set('/s/child', new Uint8Array([0, 255, 1]));
    await shell.until('the event is told', ({ stdout }) => stdout.includes('type:NodeDataChanged path:/s/child'));
    send('stat \\\n');
    send('child -o fields\npwd here');
    shell.child.stdin.end();
    expect(await shell.ended).toMatchObject({ exitCode: 2 });
  });

  test('writes the exact bytes of a value, and passes standard input to the lines of -c', async () => {
    const { bytes } = await site.run(['shell', '-c', 'get /s/child --as raw']);
    expect([...bytes]).toEqual([0, 255, 1]);
    const set = await site.run(['shell', '-c', 'set /s -; get /s --as raw'], { input: new Uint8Array([7, 0]) });
    expect([...set.bytes]).toEqual([7, 0]);
  });

  test('refuses truncated input, and reports errors with the line', async () => {
    const open = await site.run(['shell'], { input: 'pwd\nset /s "never closed\nget /s\n' });
    expect(open).toMatchObject({ exitCode: 2, stdout: '/\n' });
    expect(open.stderr).toContain('the input ends too soon: the quote " is open');
    const document = await site.run(['shell', '-c', 'set /s <<END\nx\n']);
    expect(document.stderr).toContain('the line END');
    const mistake = await site.run(['shell'], { input: 'pwd\nget\nls /s' });
    expect(mistake).toMatchObject({ exitCode: 2, stdout: '/\nchild\n' });
    expect(mistake.stderr).toMatch(/^meerkat: line 2: get: missing required argument/);
  });

  test('accepts a line of a megabyte', async () => {
    const name = 'x'.repeat(1_000_000);
    const { exitCode, stdout } = await site.run(['shell'], { input: `get /${name}\n${name}\nls /s\n` });
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: 'child\n' });
  });

  test('applies its options to each line, and connects only if a line needs it', async () => {
    const json = await site.run(['shell', '-o', 'ndjson', '-c', 'ls /s; ls /s -o fields; pwd']);
    expect(json.stdout).toBe('{"path":"/s/child","name":"child"}\n/s/child\tchild\n{"path":"/"}\n');
    const away = { env: { MEERKAT_SERVER: '127.0.0.1:1' } };
    const gone = await site.run(['shell', '--connect-timeout', '300ms'], { ...away, input: 'pwd\nls /\nls /\n' });
    expect(gone).toMatchObject({ exitCode: 3, stdout: '/\n' });
    expect(gone.stderr.match(/no server answered/g)).toHaveLength(1);
    expect(await site.run(['shell', '-c', 'version; help cd'], away)).toMatchObject({ exitCode: 0, stderr: '' });
  });

  test('ends at Ctrl-C with 130, and quietly when its reader goes', async () => {
    const shell = site.start(['shell', '-c', 'pwd; wait /s/never; ls /']);
    await shell.until('it waits', ({ stderr }) => stderr.includes('waiting'));
    shell.child.kill('SIGINT');
    expect(await shell.ended).toMatchObject({ exitCode: 130, stdout: '/\n' });
    const unread = await site.run(['shell', '-c', 'ls -R /; ls -R /; ls -R /'], { isUnread: true });
    expect(unread).toMatchObject({ exitCode: 141, stderr: '' });
  });

  test('keeps no history of lines that were not typed', async () => {
    const state = site.directory();
    await site.run(['shell', '-c', 'pwd'], { env: { XDG_STATE_HOME: state } });
    expect(() => readFileSync(join(state, 'meerkat', 'history'))).toThrow('ENOENT');
  });
});

/** An ensemble of one accepts an observer even if it is not running. */
describeWith(['apache'], "reconfig in the shell, on Apache's server", () => {
  test('changes the members of the ensemble, and prints the new ones', async () => {
    const ensemble = await Ensemble.start([{ kind: 'apache' }], { standaloneEnabled: false, reconfigEnabled: true });
    try {
      const [quorumPort, electionPort] = [await freePort(), await freePort()];
      const observer = `server.2=127.0.0.1:${quorumPort}:${electionPort}:observer;127.0.0.1:2182`;
      const lines = [
        `addauth digest ${SUPER_CREDENTIALS}`,
        `reconfig -add ${observer}`,
        'config',
        'config -c',
        'config -o json',
        'reconfig -v 7fffffff00000000 -remove 2',
        'reconfig -s -remove 2',
      ];
      const shell = new RunningCommand(
        ['shell', '--server', ensemble.connectString],
        { input: lines.join('\n') },
        false,
      );
      const { exitCode, stdout, stderr } = await shell.ended;
      const pieces = stdout.split('Committed new configuration:\n');
      expect(pieces).toHaveLength(3);
      expect(pieces[1]).toContain(`\n${observer}\nversion=`);
      expect(pieces[1]).toMatch(/^[0-9a-f]+ .*127\.0\.0\.1:2182$/m);
      expect(pieces[1]).toContain('"id":"2"');
      expect(pieces[1]).toContain('"client":"127.0.0.1:2182"');
      expect(pieces[2]).toMatch(/^server\.1=.*\nversion=[0-9a-f]+\nczxid/);
      expect(stderr).toMatch(/^meerkat: line 6: .*BADVERSION|version/);
      expect(exitCode).toBe(13);
    } finally {
      await ensemble.dispose();
    }
  });
});

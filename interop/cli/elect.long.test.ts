import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeRequests, type RunningCommand } from './harness.ts';

const UNTIL_TOLD = "trap 'echo told; exit 3' TERM; echo leads; while :; do sleep 0.05; done";

function untilLeads(command: RunningCommand, times = 1): Promise<void> {
  return command.until('it leads', ({ stdout }) => stdout.split('leads\n').length > times);
}

describeRequests('meerkat elect', (site) => {
  test('runs the command of one candidate at a time, and tells the others who leads', async () => {
    const ann = site.start([
      'elect',
      '--id',
      'ann',
      '/leader',
      '--',
      'sh',
      '-c',
      `env | grep ^MEERKAT_ELECT; ${UNTIL_TOLD}`,
    ]);
    await untilLeads(ann);
    expect(ann.stdout).toMatch(/^MEERKAT_ELECTION_TOKEN=\d+$/m);
    expect(ann.stdout).toMatch(/^MEERKAT_ELECTION_ZNODE=\/leader\/_c_[-0-9a-f]{36}-latch-\d{10}$/m);
    expect(ann.stderr).toMatch(/^ann leads \/leader, with token \d+\n$/);
    const bob = site.start(['elect', '--id', 'bob', '/leader', '--', 'sh', '-c', UNTIL_TOLD]);
    await bob.until('it is told who leads', ({ stderr }) => stderr.includes('ann leads /leader since '));
    const late = await site.run(['elect', '--acquire-timeout', '300ms', '/leader', '--', 'echo', 'ran']);
    expect(late).toMatchObject({ exitCode: 124, stdout: '' });
    expect(bob.stdout).toBe('');
    ann.child.kill('SIGTERM');
    expect(await ann.ended).toMatchObject({ exitCode: 3 });
    await untilLeads(bob);
    bob.child.kill('SIGINT');
    // The shell that runs the command has no trap for SIGINT.
    expect(await bob.ended).toMatchObject({ exitCode: 130 });
    expect((await site.client.children('/leader')).children).toEqual([]);
  });

  test('runs for election again when the command exits or leadership is lost, until stopped', async () => {
    const log = join(site.directory(), 'tokens');
    const body = `echo $MEERKAT_ELECTION_TOKEN >> ${log}; ${UNTIL_TOLD}`;
    const command = site.start(['elect', '--again', '--id', 'ann', '/again', '--', 'sh', '-c', body]);
    await untilLeads(command);
    const [first] = (await site.client.children('/again')).children;
    await site.client.delete(`/again/${first}`);
    await untilLeads(command, 2);
    expect(command.stdout).toBe('leads\ntold\nleads\n');
    expect(command.stderr).toContain('the command has ended with 3; standing again');
    command.child.kill('SIGTERM');
    expect(await command.ended).toMatchObject({ exitCode: 3 });
    const [one, two] = readFileSync(log, 'utf8').split('\n').map(Number);
    expect(one).toBeLessThan(two ?? 0);
  });

  test('exits with its own code when leadership is lost, and reports missing arguments', async () => {
    const command = site.start(['elect', '/lost', '--', 'sh', '-c', UNTIL_TOLD]);
    await untilLeads(command);
    const [first] = (await site.client.children('/lost')).children;
    await site.client.delete(`/lost/${first}`);
    const ended = await command.ended;
    expect(ended).toMatchObject({ exitCode: 27, stdout: 'leads\ntold\n' });
    expect(ended.stderr).toContain('meerkat: leadership was lost while the command ran, and the command was ended');
    const [noCommand, noServer] = await Promise.all([
      site.run(['elect', '/lost']),
      site.run(['elect', '--connect-timeout', '300ms', '/lost', '--', 'true'], {
        env: { MEERKAT_SERVER: '127.0.0.1:1' },
      }),
    ]);
    expect(noCommand.exitCode).toBe(2);
    expect(noServer.exitCode).toBe(3);
  });
});

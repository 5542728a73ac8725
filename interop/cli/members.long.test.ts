import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, expect, onTestFailed, test } from 'vitest';
import { ChangingEnsemble } from '../ensemble/changing-ensemble.ts';
import { MEERKAT_COMMAND } from '../harness/meerkat-command.ts';
import { describeWith } from '../harness/peers.ts';
import type { ServerKind } from '../harness/server-process.ts';

const LONG_MS = 240_000;
let ensemble: ChangingEnsemble | null = null;

afterEach(async () => {
  await ensemble?.dispose();
  ensemble = null;
});

interface Ran {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(ensemble: ChangingEnsemble, ...words: readonly string[]): Promise<Ran> {
  const [program, ...args] = MEERKAT_COMMAND;
  const all = [...args, 'members', ...words, '--server', ensemble.connectString(), '--auth', 'digest:super:test'];
  try {
    const { stdout, stderr } = await promisify(execFile)(program, all);
    return { exitCode: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { exitCode: code, stdout, stderr };
  }
}

async function replaceOne(kinds: readonly ServerKind[], joining: ServerKind): Promise<void> {
  const started = await ChangingEnsemble.start(kinds);
  ensemble = started;
  onTestFailed(() => console.log(started.logs));
  const listed = await run(started, 'list', '-o', 'json');
  expect(JSON.parse(listed.stdout)).toMatchObject([1, 2, 3].map((id) => ({ id: String(id), listed: 'participant' })));

  const joiner = await started.add(4, joining);
  const change = ['--add', `4=${joiner.line()}`, '--remove', '1'];
  const planned = await run(started, 'plan', ...change, '-o', 'json');
  expect(planned.exitCode).toBe(1);
  expect(JSON.parse(planned.stdout)).toMatchObject([
    { step: 'add server 4 as a participant', participants: '1,2,3,4', quorum: 3, up: 3, survives: true },
    { step: 'remove server 1', participants: '2,3,4', quorum: 2, up: 2, survives: true, first: null },
  ]);
  expect(planned.stdout).toMatch(/start server 4 with the list of the members/);

  // It waits for the server to be added.
  const applied = run(started, 'apply', ...change, '-o', 'json');
  await started.join(4, joining, [1, 2, 3]);
  expect(await applied).toMatchObject({ exitCode: 0 });
  const after = await run(started, 'list', '-o', 'json');
  expect(JSON.parse(after.stdout).map(({ id }: { id: string }) => id)).toEqual(['2', '3', '4']);

  const leader = await started.leader();
  const handed = await run(started, 'hand-over', '-o', 'json');
  expect(handed).toMatchObject({ exitCode: 0 });
  const { from, to } = JSON.parse(handed.stdout);
  expect(from).toBe(String(leader.id));
  expect(to).not.toBe(from);
  const last = await run(started, 'list', '-o', 'json');
  expect(JSON.parse(last.stdout).every(({ listed }: { listed: string }) => listed === 'participant')).toBe(true);
}

test(
  'members lists, plans, applies and hands over with our servers',
  () => replaceOne(['meerkat', 'meerkat', 'meerkat'], 'meerkat'),
  LONG_MS,
);

test(
  'members reports invalid requests',
  async () => {
    ensemble = await ChangingEnsemble.start(['meerkat', 'meerkat', 'meerkat']);
    for (const words of [
      ['plan'],
      ['plan', '--add', 'x'],
      ['plan', '--remove', '1', '--add', '1=a:1:2;3'],
      ['nonsense'],
      ['list', '--remove', '1'],
    ]) {
      expect(await run(ensemble, ...words)).toMatchObject({ exitCode: 2 });
    }
    expect(await run(ensemble, 'apply', '--add', '4=127.0.0.1:1:2;3', '--wait', '0')).toMatchObject({ exitCode: 1 });
  },
  LONG_MS,
);

describeWith(['apache'], "with Apache's servers", () => {
  test('members does the same', () => replaceOne(['apache', 'apache', 'apache'], 'apache'), LONG_MS);
});

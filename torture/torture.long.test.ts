import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { whyNoNamespaces } from './namespaces.ts';
import { figure, prepareRuns, RUN_MS, start, temporary } from './testing/run.ts';

prepareRuns();

test(
  'each server gets its own network namespace where supported, and none is left behind',
  async () => {
    const run = start(['--minutes', '0.2', '--clients', '4', '--seed', '4']);
    expect(await run.ended, run.text()).toBe(0);
    expect(figure(run.text(), 'violations')).toBe(0);
    expect(readdirSync(temporary)).toEqual([]);
    if (whyNoNamespaces() !== null) expect(run.text()).toContain('proxies instead of network namespaces: ');
    else expect(execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' })).not.toContain(`torture-${run.child.pid}-`);
  },
  RUN_MS,
);

test(
  'Ctrl-C ends it early, and what was done so far is checked',
  async () => {
    const run = start(['--minutes', '60', '--clients', '2', '--faults', 'none', '--proxies']);
    await run.printed('round 1: ');
    run.child.kill('SIGINT');
    expect(await run.ended, run.text()).toBe(0);
    expect(run.text()).toContain('interrupted');
    expect(figure(run.text(), 'violations')).toBe(0);
  },
  RUN_MS,
);

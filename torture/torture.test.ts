import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { figure, prepareRuns, RUN_MS, start, temporary } from './testing/run.ts';

prepareRuns();

describe('torture', () => {
  test(
    'three servers and their clients run through faults behind proxies without a violation',
    async () => {
      const summary = join(temporary, 'summary.md');
      const run = start(['--proxies', '--minutes', '0.1', '--clients', '4', '--seed', '3', '--summary', summary]);
      expect(await run.ended, run.text()).toBe(0);
      expect(figure(run.text(), 'violations')).toBe(0);
      expect(figure(run.text(), 'operations')).toBeGreaterThan(0);
      expect(figure(run.text(), 'faults')).toBeGreaterThan(0);
      expect(figure(run.text(), 'changes of members acknowledged')).toBeGreaterThan(1);
      expect(readFileSync(summary, 'utf8')).toMatch(/^\| network \| proxies \|$/m);
      expect(readdirSync(temporary), 'no data are left').toEqual(['summary.md']);
    },
    RUN_MS,
  );

  test(
    'a server that exits by itself is a violation: the run reports it, keeps all files and exits with 1',
    async () => {
      const run = start(['--minutes', '60', '--clients', '2', '--faults', 'none', '--proxies']);
      await run.printed('round 1: ');
      const directory = join(temporary, readdirSync(temporary)[0]!);
      process.kill(Number(readFileSync(join(directory, '2', 'pid'), 'utf8')), 'SIGKILL');
      expect(await run.ended, run.text()).toBe(1);
      expect(run.text()).toContain('A2: server 2 ended by SIGKILL');
      expect(run.text()).toContain(`data and logs of the servers: ${directory}`);
      expect(readFileSync(join(directory, 'history.txt'), 'utf8')).toContain('zk2 ended by SIGKILL');
      for (const id of ['1', '2', '3']) {
        expect(existsSync(join(directory, id, 'data', 'version-2'))).toBe(true);
        expect(readFileSync(join(directory, id, 'log'), 'utf8')).not.toBe('');
        expect(existsSync(join(directory, id, 'pid')), 'it is no longer running').toBe(false);
      }
    },
    RUN_MS,
  );
});

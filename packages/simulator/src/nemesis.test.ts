import { expect, test } from 'vitest';
import { parseFault } from './fault.ts';
import { simulate } from './simulate.ts';

test('a server whose disk was wiped, and has not started since, has nothing that could rot', async () => {
  const plan = ['5000ms wipe zk1,zk2,zk3 for 3000ms #1', '6000ms rot zk1,zk2,zk3 for 1000ms #2'].map(
    (text) => parseFault(text)!,
  );
  const lines: string[] = [];
  const onLine = (line: string): void => void lines.push(line);
  const options = { seed: 3, servers: 3, minutes: 0.2, traits: [], plan, workload: { operationsPerSecond: 1 } };
  const { violations, stats } = await simulate({ ...options, onLine });
  expect(violations).toEqual([]);
  expect(stats.faultsByKind).toEqual(new Map([['wipe', 1]]));
  expect(lines.filter((line) => line.includes('has no file that could rot'))).toHaveLength(1);
});

import { expect, test } from 'vitest';
import { parseFault } from './fault.ts';
import { Nemesis } from './nemesis.ts';
import { simulate } from './simulate.ts';
import { VirtualWorld } from './virtual-world.ts';

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

test('a server whose log has rotted is replaced also where nobody can lead without it', async () => {
  // A change to two voters is in all other logs when one of the two dies: without it there is no quorum.
  const plan = [
    '894ms members  #3993780369',
    '2688ms members  #427071949',
    '327ms io-thread zk5 #3381269219',
    '2574ms io-thread zk1 #4127154491',
    '5536ms members  #1098662989',
    '5543ms rot zk2 for 1ms #3249786604',
  ].map((text) => parseFault(text)!);
  const { violations, stats } = await simulate({ seed: 500000321, servers: 3, spares: 2, minutes: 0.1, plan });
  expect(violations).toEqual([]);
  expect(stats.faultsByKind.get('rot')).toBe(1);
});

test('a nemesis is done when its last operator has gone, not with the healing', async () => {
  const world = new VirtualWorld({ seed: 1 });
  const ensemble = world.startEnsemble({ servers: 3, spares: 1 });
  await world.run(async () => {
    expect(await world.until(() => ensemble.isWhole, 60_000)).toBe(true);
    const before = ensemble.membershipNow.version;
    const nemesis = new Nemesis(world, ensemble);
    nemesis.unleash([parseFault('1ms members  #2')!]);
    await world.sleep(2);
    nemesis.heal();
    expect(nemesis.isDone).toBe(false);
    expect(await world.until(() => nemesis.isDone, 10_000)).toBe(true);
    expect(ensemble.membershipNow.version).toBeGreaterThan(before);
  });
});

import { expect, test } from 'vitest';
import { parseFault } from './fault.ts';
import { lastZxidOf, Nemesis } from './nemesis.ts';
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

test('servers lose their leader while they catch up, and only that counts as a fault', async () => {
  const lie = '0ms break-joins zk1,zk2,zk3 for 20000ms #1';
  const options = { seed: 3, servers: 3, minutes: 0.3, traits: [], workload: { operationsPerSecond: 1 } };
  const idle = await simulate({ ...options, plan: [parseFault(lie)!] });
  expect(idle.stats.faultsByKind.get('break-joins')).toBeUndefined();
  const plan = [lie, '5000ms restart-all zk1,zk2,zk3 for 100ms #2'].map((text) => parseFault(text)!);
  const lines: string[] = [];
  const { violations, stats } = await simulate({ ...options, plan, onLine: (line) => void lines.push(line) });
  expect(violations).toEqual([]);
  const lost = lines.filter((line) => line.includes('loses its leader'));
  expect(stats.faultsByKind.get('break-joins')).toBeGreaterThan(0);
  expect(lost.length).toBeGreaterThanOrEqual(stats.faultsByKind.get('break-joins')!);
});

test('a server whose log has rotted is replaced even when there is no quorum without it', async () => {
  const world = new VirtualWorld({ seed: 1 });
  const ensemble = world.startEnsemble({ servers: 3, spares: 1 });
  await world.run(async () => {
    expect(await world.until(() => ensemble.isWhole, 60_000)).toBe(true);
    const leader = ensemble.leader!;
    const [rotting, leaving] = ensemble.participants.filter((server) => server !== leader);
    const client = await world.connect('operator-1', {
      auth: [{ scheme: 'digest', auth: 'super:super' }],
      servers: `${leader.host}:2181`,
    });
    for (let i = 0; i < 50; i++) await client.create(`/${i}`);
    expect(await world.until(() => ensemble.isWhole, 60_000)).toBe(true);
    const nemesis = new Nemesis(world, ensemble);
    // A change to two voters is in all other logs when one of the two dies: without it there is no quorum.
    world.network.block(leader.host, rotting!.host);
    client.reconfig({ leaving: [leaving!.serverId] }).catch(() => {});
    const before = lastZxidOf(leaving!);
    expect(await world.until(() => lastZxidOf(leader) > before && lastZxidOf(leaving!) > before, 1_000)).toBe(true);
    const plan = [`1ms rot ${rotting!.host} for 1ms #1`, `1ms crash ${leader.host} for 1ms #2`];
    nemesis.unleash(plan.map((text) => parseFault(text)!));
    expect(await world.until(() => rotting!.failure !== null && leader.isRunning, 1_000)).toBe(true);
    nemesis.heal();
    const isWhole = (): boolean => {
      nemesis.tend();
      return ensemble.isWhole;
    };
    expect(await world.until(isWhole, 60_000)).toBe(true);
  });
});

test('a nemesis is done when its last operator has finished, not when it heals', async () => {
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

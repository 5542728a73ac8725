import { expect, test } from 'vitest';
import { VirtualWorld } from './virtual-world.ts';

test('an ensemble is not at rest while a txn is on its way, though all servers have the same', async () => {
  const world = new VirtualWorld({ seed: 1 });
  const ensemble = world.startEnsemble({ servers: 3 });
  await world.run(async () => {
    const client = await world.connect('app', { servers: ensemble.connectString, connectTimeoutMs: 60_000 });
    expect(await world.until(() => ensemble.isAtRest, 60_000)).toBe(true);
    const created = client.create('/a');
    const isOnItsWay = (): boolean => (ensemble.leader?.core?.view.outstandingRequests ?? 0) > 0;
    expect(await world.until(isOnItsWay, 1000, 1 / 16)).toBe(true);
    expect([ensemble.isWhole, ensemble.isAtRest]).toEqual([true, false]);
    await created;
    expect(await world.until(() => ensemble.isAtRest, 1000)).toBe(true);
  });
});

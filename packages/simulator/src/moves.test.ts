import { expect, test } from 'vitest';
import { findBrokenMove } from './moves.ts';
import { VirtualWorld } from './virtual-world.ts';

test('a move that ends at another server is found', async () => {
  const world = new VirtualWorld({ seed: 1 });
  const ensemble = world.startEnsemble({ servers: 3 });
  await world.run(async () => {
    const client = await world.connect('app', { servers: ensemble.connectString, connectTimeoutMs: 60_000 });
    expect(await world.until(() => ensemble.isWhole, 60_000)).toBe(true);
    await client.create('/a');
    const untilCaughtUp = () => world.until(() => ensemble.isWhole, 60_000);
    const targets = ensemble.servers.map(({ host, port }) => ({ host, port }));
    expect(await findBrokenMove(client, targets, '/a', 60_000, untilCaughtUp)).toBeNull();

    const [first, second] = targets;
    await client.moveTo(first!);
    client.moveTo = async () => undefined;
    expect(await findBrokenMove(client, [second!], '/a', 60_000, untilCaughtUp)).toBe(
      `a session moved from ${first!.host} to ${second!.host}, and is at ${first!.host}`,
    );
  });
});

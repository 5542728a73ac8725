import { type Client, connect } from '@meerkat/client';
import { TestEnsemble } from '@meerkat/testing';
import { expect, test } from 'vitest';

/** The code under test: records an order, and retries while the service has no leader. */
async function placeOrder(client: Client, id: string): Promise<void> {
  for (;;) {
    try {
      await client.create(`/order-${id}`, 'placed');
      return;
    } catch (error) {
      const { code, outcome } = error as { code?: string; outcome?: string };
      if (code === 'NODEEXISTS') return;
      if (outcome !== 'unknown') throw error;
    }
  }
}

test('an order is placed although the leader dies, and the session lives on', async () => {
  await using ensemble = await TestEnsemble.start();
  await using client = await connect(ensemble.connectString);
  const { lostSignal } = client;
  void ensemble.leader.kill();
  await placeOrder(client, '17');
  expect(lostSignal.aborted).toBe(false);
  expect((await client.children('/')).children).toContain('order-17');
});

test('a leader that is cut off takes no orders; the others do', async () => {
  await using ensemble = await TestEnsemble.start({ tickTimeMs: 30 });
  const [old, ...others] = [ensemble.leader, ...ensemble.followers];
  await using client = await connect(others.map((server) => server.connectString).join(','));
  ensemble.isolate(old);
  const successor = await ensemble.whenServing();
  expect(others).toContain(successor);
  await placeOrder(client, '18');

  ensemble.heal();
  await ensemble.whenWhole();
  await using late = await connect(old.connectString);
  await late.sync('/');
  expect(await late.exists('/order-18')).not.toBeNull();
});

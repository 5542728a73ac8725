import { text } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { NotHeldError } from '../kernel/not-held-error.ts';
import { cutOff, drain } from '../testing/drain.ts';
import { withClients } from '../testing/fleet.ts';
import { Queue } from './queue.ts';

describe('an item under a lease', () => {
  test(
    'does not affect another item that has its name since the queue was deleted and recreated',
    withClients(async (fleet, client) => {
      const other = await fleet.connect();
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const item = await queue.take();
      await other.deleteRecursive('/jobs');
      await new Queue(other, '/jobs', { codec: text }).put('b');
      // All replies and events of the service have arrived.
      await client.sync();
      await expect(item.done()).rejects.toThrow('the item was deleted by another client');
      expect((await client.children('/jobs')).children).toEqual([item.name]);
      await item.release();
      expect(await drain(queue)).toEqual(['b']);
    }),
  );

  test(
    'does not affect such an item either when it was put while the connection was lost',
    withClients(async (fleet, client) => {
      const other = await fleet.connect();
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const item = await queue.take();
      cutOff(fleet, 500);
      for (const end of fleet.world.network.openEnds) if (end.host === 'client1') end.breakStream();
      while (client.state === 'connected') await fleet.world.sleep(1);
      await other.deleteRecursive('/jobs');
      await new Queue(other, '/jobs', { codec: text }).put('b');
      await expect(item.done()).rejects.toThrow('the item was deleted by another client');
      expect((await client.children('/jobs')).children).toEqual([item.name]);
    }),
  );

  test(
    'is refused at once when its lease is over, also while disconnected',
    withClients(async (fleet, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const item = await queue.take();
      cutOff(fleet, 60_000);
      while (item.isHeld) await fleet.world.sleep(10);
      const sinceMs = fleet.world.nowMs;
      await expect(item.done()).rejects.toThrow(NotHeldError);
      expect(fleet.world.nowMs).toBe(sinceMs);
      await client.close({ timeoutMs: 1 });
      await expect(item.done()).rejects.toThrow(NotHeldError);
    }),
  );

  test(
    'is done also when its data was changed',
    withClients(async (fleet, client) => {
      const other = await fleet.connect();
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const item = await queue.take();
      await other.set(item.path, 'b');
      await client.sync();
      await item.done();
      expect(await queue.size()).toBe(0);
    }),
  );

  test(
    'is released once, deleting no lease of another client, when the reply is lost and it is leased again',
    withClients(async (fleet, client) => {
      const { network } = fleet.world;
      const other = await fleet.connect();
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const item = await queue.take();
      // The deletion arrives, but its reply does not.
      for (const { host } of fleet.ensemble.servers) network.block(host, 'client1');
      const given = item.release();
      await using leased = await new Queue(other, '/jobs', { codec: text }).take();
      for (const { host } of fleet.ensemble.servers) network.unblock(host, 'client1');
      for (const end of network.openEnds) if (end.host === 'client1') end.breakStream();
      await given;
      await other.sync();
      await fleet.world.sleep(100);
      expect(leased.name).toBe(item.name);
      expect(leased.isHeld).toBe(true);
      expect((await other.children('/jobs-leases')).children).toHaveLength(1);
    }),
  );

  test(
    'can be released again when the service has refused it the first time',
    withClients(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const item = await queue.take();
      await client.setAcl('/jobs-leases', [{ perms: ALL & ~DELETE, scheme: 'world', id: 'anyone' }]);
      await expect(item.release()).rejects.toMatchObject({ code: 'NOAUTH' });
      await client.setAcl('/jobs-leases', [{ perms: ALL, scheme: 'world', id: 'anyone' }]);
      await item.release();
      expect(await drain(queue)).toEqual(['a']);
    }),
  );
});

const ALL = 31;
const DELETE = 8;

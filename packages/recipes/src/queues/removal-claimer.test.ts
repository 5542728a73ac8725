import { text } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { drain, inWorld } from '../testing/queue-world.ts';
import { Queue } from './queue.ts';

describe('an item without a lease', () => {
  test(
    'is given back to a queue that was deleted when it was empty',
    inWorld(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text, leases: false });
      await queue.put('a');
      const item = await queue.take();
      // A person may do that, and the service does where Curator has made the queue, which is a container then.
      await client.delete('/jobs');
      await item.giveBack();
      expect(await drain(queue)).toEqual(['a']);
    }),
  );

  test(
    'can be given back again when the service has refused it the first time',
    inWorld(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text, leases: false });
      await queue.put('a');
      const item = await queue.take();
      await client.setAcl('/jobs', [{ perms: ALL & ~CREATE, scheme: 'world', id: 'anyone' }]);
      await expect(item.giveBack()).rejects.toMatchObject({ cause: { code: 'NOAUTH' } });
      await expect(item.done()).rejects.toThrow('given back');
      await client.setAcl('/jobs', [{ perms: ALL, scheme: 'world', id: 'anyone' }]);
      await Promise.all([item.giveBack(), item.giveBack()]);
      expect(await drain(queue)).toEqual(['a']);
    }),
  );
});

const ALL = 31;
const CREATE = 4;

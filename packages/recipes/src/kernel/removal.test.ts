import { type CallOptions, ConnectionLossError, joinPath } from '@meerkat/client';
import { expect, test } from 'vitest';
import { inWorld, names } from '../testing/in-world.ts';
import { removeMarked } from './removal.ts';

test('all znodes with a mark are removed, also when one is gone and the reply for another is lost', () =>
  inWorld(2, async ([one, two], { sleep }) => {
    const { client } = one;
    await client.ensurePath('/line');
    for (const name of ['mark-1', 'mark-2']) await client.create(joinPath('/line', name), '', { mode: 'ephemeral' });
    const remove = client.delete.bind(client);
    let isLost = false;
    client.delete = async (path: string, options: CallOptions = {}): Promise<void> => {
      if (path.endsWith('1')) {
        await two.client.delete(path);
      } else if (!isLost) {
        isLost = true;
        // Later than the reply for the other one.
        await sleep(100);
        throw new ConnectionLossError({ operation: 'delete', path, outcome: 'unknown' });
      }
      return remove(path, options);
    };
    expect(await removeMarked(client, '/line', 'mark-', client.session!.id)).toBeNull();
    expect(await names(two, '/line')).toEqual([]);
  }));

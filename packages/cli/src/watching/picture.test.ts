import { expect, test } from 'vitest';
import { Picture, type Seen } from './picture.ts';

function seen(mzxid: bigint, bytes: number): Seen {
  return { czxid: 1n, mzxid, version: 0, size: bytes, data: new Uint8Array(bytes) };
}

test('forgets the values that were written longest ago when there is no room for all', () => {
  const picture = new Picture({ znodesMax: 10, bytesMax: 100 });
  for (const [i, path] of ['/a', '/b', '/c'].entries()) picture.put(path, seen(BigInt(i), 40));
  expect(picture.get('/a')).toMatchObject({ mzxid: 0n, size: 40, data: null });
  expect(picture.get('/b')?.data).toHaveLength(40);
  // Written again, it is the youngest.
  picture.put('/b', seen(7n, 40));
  picture.put('/d', seen(8n, 40));
  expect([picture.get('/b')?.data?.length, picture.get('/c')?.data, picture.get('/d')?.data?.length]).toEqual([
    40,
    null,
    40,
  ]);
});

test('takes no more znodes in than it may, and says that it is not whole', () => {
  const picture = new Picture({ znodesMax: 2, bytesMax: 100 });
  picture.isWhole = true;
  for (const path of ['/a', '/b', '/c']) picture.put(path, seen(1n, 1));
  expect([picture.size, picture.get('/c'), picture.isFull, picture.isWhole]).toEqual([2, null, true, false]);
  picture.remove('/a');
  expect(picture.isFull).toBe(false);
});

test('knows what was not met again in a round', () => {
  const picture = new Picture();
  for (const path of ['/a', '/b', '/c']) picture.put(path, seen(1n, 1));
  picture.beginRound();
  picture.keep('/a');
  picture.put('/b', seen(2n, 1));
  expect(picture.leftover()).toEqual(['/c']);
});

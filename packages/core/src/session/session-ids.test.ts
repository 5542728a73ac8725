import { expect, test } from 'vitest';
import { SessionIds, serverIdOf } from './session-ids.ts';

/** Its low 40 bits are 0x8bcfe56800. */
const WALL_MS = 1_700_000_000_000;
const noneIsTaken = (): boolean => false;

test('a session id consists of the server id, 40 bits of the time and a counter, as with Apache', () => {
  const ids = new SessionIds(1, WALL_MS);
  expect([ids.next(noneIsTaken), ids.next(noneIsTaken)]).toEqual([0x018bcfe568000000n, 0x018bcfe568000001n]);
});

test('the id of a server above 127 makes session ids negative, as Java’s long', () => {
  const id = new SessionIds(255, WALL_MS).next(noneIsTaken);
  expect(id).toBe(0xff8bcfe568000000n - 2n ** 64n);
  expect(serverIdOf(id)).toBe(255);
});

test('ids that are taken are skipped, and none is given twice', () => {
  const ids = new SessionIds(1, WALL_MS);
  const first = 0x018bcfe568000000n;
  const taken = new Set([first, first + 1n, first + 3n]);
  const given = [1, 2, 3].map(() => ids.next((id) => taken.has(id)));
  expect(given).toEqual([first + 2n, first + 4n, first + 5n]);
});

test('no session has the id 0, with which a client asks for a new one', () => {
  expect(new SessionIds(0, 0).next(noneIsTaken)).toBe(1n);
});

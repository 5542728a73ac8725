import type { PastState } from '@meerkat/console';
import { expect, test } from 'vitest';
import { NewestStates } from './newest-states.ts';

function stateOf(version: number, bytes: number): PastState {
  const state = { data: new Uint8Array(bytes), acl: [] };
  return { zxid: '0x1', atMs: 1, session: '0x1', client: null, change: 'changed', version, state };
}

test('of the states of a znode the newest 500 are kept, and it is told that there were older ones', () => {
  const newest = new NewestStates();
  for (let i = 0; i < 500; i++) newest.add(stateOf(i, 10));
  expect(newest).toMatchObject({ isCut: false, states: { length: 500 } });
  for (let i = 500; i < 503; i++) newest.add(stateOf(i, 10));
  expect(newest).toMatchObject({ isCut: true, states: { length: 500, 0: { version: 3 }, 499: { version: 502 } } });
});

test('their values have 16 MiB together, or the newest one as many as it has', () => {
  const newest = new NewestStates();
  for (let i = 0; i < 100; i++) newest.add(stateOf(i, 1 << 20));
  expect(newest).toMatchObject({ isCut: true, states: { length: 16, 15: { version: 99 } } });
  newest.add(stateOf(100, 20 << 20));
  expect(newest).toMatchObject({ states: { length: 1, 0: { version: 100 } } });
});

import { expect, test } from 'vitest';
import type { Identity } from '../base/ports.ts';
import { addIdentities, IDENTITIES_MAX } from './identities.ts';

const FRAME_BYTES_MAX = 0xfffff;

function users(count: number): Identity[] {
  return Array.from({ length: count }, (_, i) => ({ scheme: 'digest', id: `user-${i}:x` }));
}

test('an identity that is already known is not added again', () => {
  const known = users(3);
  expect(addIdentities(known, users(2), FRAME_BYTES_MAX)).toBe(known);
  expect(addIdentities(known, users(4), FRAME_BYTES_MAX)).toEqual(users(4));
});

test('the number of identities of a connection is limited', () => {
  expect(addIdentities([], users(IDENTITIES_MAX), FRAME_BYTES_MAX)).toHaveLength(IDENTITIES_MAX);
  expect(addIdentities(users(IDENTITIES_MAX), users(IDENTITIES_MAX + 1), FRAME_BYTES_MAX)).toBeNull();
  expect(addIdentities(users(IDENTITIES_MAX), users(IDENTITIES_MAX), FRAME_BYTES_MAX)).toHaveLength(IDENTITIES_MAX);
});

test('the total size of all identities is limited, also by jute.maxbuffer', () => {
  const long = (length: number): Identity[] => [{ scheme: 'digest', id: 'é'.repeat(length / 2) }];
  expect(addIdentities([], long(65_530), FRAME_BYTES_MAX)).not.toBeNull();
  expect(addIdentities([], long(65_532), FRAME_BYTES_MAX)).toBeNull();
  expect(addIdentities([], long(94), 100)).not.toBeNull();
  expect(addIdentities([], long(96), 100)).toBeNull();
});

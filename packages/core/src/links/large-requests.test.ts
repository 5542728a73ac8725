import { expect, test } from 'vitest';
import { LargeRequests } from './large-requests.ts';

test('large requests occupy room from their first bytes until their connection is owed no more replies', () => {
  const requests = new LargeRequests<{ waiting: unknown[] }>(100);
  const [one, two] = [{ waiting: [] as unknown[] }, { waiting: [] as unknown[] }];
  expect(requests.admit(one, 60)).toBe(true);
  // More bytes of the same request.
  expect(requests.admit(one, 60)).toBe(true);
  expect(requests.admit(two, 60)).toBe(false);
  requests.onComplete(one);
  one.waiting.push('a write');
  requests.releaseAnswered();
  expect(requests.admit(two, 60)).toBe(false);
  one.waiting.length = 0;
  requests.releaseAnswered();
  expect(requests.bytes).toBe(0);
  expect(requests.admit(two, 60)).toBe(true);
  requests.release(two);
  expect(requests.bytes).toBe(0);
});

test('each large request of a connection is counted once, however many chunks it arrives in', () => {
  const requests = new LargeRequests<{ waiting: unknown[] }>(100);
  const connection = { waiting: ['a write'] };
  for (const bytes of [30, 40]) {
    for (let chunk = 0; chunk < 3; chunk++) expect(requests.admit(connection, bytes)).toBe(true);
    requests.onComplete(connection);
  }
  expect(requests.bytes).toBe(70);
  expect(requests.admit(connection, 31)).toBe(false);
});

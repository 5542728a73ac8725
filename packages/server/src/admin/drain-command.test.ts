import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { AdminAuthorization } from './authorization.ts';
import { DrainCommand, type DrainCommandParts } from './drain-command.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('a server that ends while it is drained leaves no timer behind', () => {
  const sheds: number[] = [];
  const core: DrainCommandParts['core'] = {
    isDraining: false,
    setDraining: () => {},
    shed: (count) => sheds.push(count),
    view: { connectionCount: 7 } as DrainCommandParts['core']['view'],
  };
  const command = new DrainCommand({
    authorization: { refusalOf: () => null } as unknown as AdminAuthorization,
    core,
    deliver: (event) => event(),
  });
  command.run(
    'drain',
    { per_second: '40' },
    { authorization: 'ip', remote: '127.0.0.1', forwardedFor: null, certificate: null },
  );
  vi.advanceTimersByTime(200);
  expect(sheds).toEqual([4, 4, 4]);
  command.stop();
  expect(vi.getTimerCount()).toBe(0);
});

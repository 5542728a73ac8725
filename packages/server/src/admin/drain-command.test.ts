import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SILENT_LOGGER } from '../logger.ts';
import type { Refusal } from './authorization.ts';
import { DrainCommand, type DrainName } from './drain-command.ts';

const CALLER = { authorization: 'ip', remote: '127.0.0.1', forwardedFor: null, certificate: null };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

interface World {
  readonly command: DrainCommand;
  readonly sheds: readonly number[];
  readonly drains: readonly boolean[];
  /** Operation and result. */
  readonly audited: readonly string[];
}

function make(refusal: Refusal | null = null): World {
  const sheds: number[] = [];
  const drains: boolean[] = [];
  const audited: string[] = [];
  const command = new DrainCommand({
    authorization: { refusalOf: () => refusal },
    core: {
      get isDraining() {
        return drains.at(-1) ?? false;
      },
      setDraining: (isDraining) => drains.push(isDraining),
      shed: (count) => sheds.push(count),
      view: { connectionCount: 7 },
    },
    audit: {
      add: (operation, caller, result) => {
        expect(caller).toBe(CALLER);
        audited.push(`${operation} ${result}`);
      },
      nameOf: () => 'ann',
    },
    logger: SILENT_LOGGER,
    deliver: (event) => event(),
  });
  return { command, sheds, drains, audited };
}

test('a server that ends while it is drained leaves no timer behind', () => {
  const { command, sheds } = make();
  command.run('drain', true, { per_second: '40' }, CALLER);
  vi.advanceTimersByTime(200);
  expect(sheds).toEqual([4, 4, 4]);
  command.stop();
  expect(vi.getTimerCount()).toBe(0);
});

test('another drain takes the place of the first one, and undrain ends it', () => {
  const { command, sheds, drains } = make();
  command.run('drain', true, { per_second: '40' }, CALLER);
  command.run('drain', true, { per_second: '10' }, CALLER);
  vi.advanceTimersByTime(200);
  expect(sheds).toEqual([4, 1, 1, 1]);
  command.run('undrain', true, {}, CALLER);
  expect([drains, vi.getTimerCount()]).toEqual([[true, true, false], 0]);
});

test('what is only looked at changes nothing, and is not audited', () => {
  const { command, sheds, drains, audited } = make();
  expect(command.run('drain', false, {}, CALLER)).toEqual({ isDraining: false, connections: 7, closed: 0 });
  expect([sheds, drains, audited, vi.getTimerCount()]).toEqual([[], [], [], 0]);
});

const ORDERS: readonly (readonly [name: DrainName, query: Readonly<Record<string, string>>])[] = [
  ['drain', { per_second: '40' }],
  ['undrain', {}],
  ['shed', { count: '3' }],
];

test.each(ORDERS)('%s by GET, as an older command asks for it, changes nothing and says so', (name, query) => {
  const { command, sheds, drains, audited } = make();
  expect(command.run(name, false, query, CALLER)).toMatchObject({ status: 405 });
  expect([sheds, drains, audited, vi.getTimerCount()]).toEqual([[], [], [], 0]);
});

test.each(ORDERS)('%s is audited', (name, query) => {
  const { command, audited } = make();
  expect(command.run(name, true, query, CALLER)).not.toHaveProperty('status');
  expect(audited).toEqual([`${name} success`]);
  command.stop();
});

test.each(ORDERS)('%s for who may not changes nothing, and is audited as a failure', (name, query) => {
  const { command, sheds, drains, audited } = make({ status: 403, error: 'Not authorized' });
  expect(command.run(name, true, query, CALLER)).toMatchObject({ status: 403 });
  expect(command.run(name, false, query, CALLER)).toMatchObject({ status: 403 });
  expect([sheds, drains, audited]).toEqual([[], [], [`${name} failure`]]);
});

test.each([
  ['drain', { per_second: '0' }],
  ['drain', { per_second: '100001' }],
  ['shed', {}],
  ['shed', { count: '-1' }],
] as const)('%s refuses %o, which is no such number', (name, query) => {
  const { command, sheds, drains, audited } = make();
  expect(command.run(name, true, query, CALLER)).toMatchObject({ status: 400 });
  expect([sheds, drains, audited]).toEqual([[], [], [`${name} failure`]]);
});

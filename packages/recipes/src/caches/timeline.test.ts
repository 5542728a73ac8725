import { expect, test } from 'vitest';
import { Timeline } from './timeline.ts';

interface Value {
  readonly since: bigint;
  readonly text: string;
}

const v = (text: string, since: number): Value => ({ text, since: BigInt(since) });
const make = (): Timeline<Value> => new Timeline(({ since }) => since);

/** `/a=x` of all paths, at the zxid that is published. */
const shown = (timeline: Timeline<Value>): string =>
  `${timeline.zxid}: ${[...timeline.values].map(([path, { text }]) => `${path}=${text}`).join(' ')}`;

function withAB(): Timeline<Value> {
  const timeline = make();
  timeline.onFound('/a', v('a1', 1), 3n);
  timeline.onFound('/b', v('b2', 2), 3n);
  timeline.publish(3n);
  return timeline;
}

test('publishes what is known of all paths up to the limit', () => {
  expect(shown(withAB())).toBe('3: /a=a1 /b=b2');
});

test('a value that is still unread keeps the image before its change', () => {
  const timeline = withAB();
  timeline.onChanged('/a', 5n);
  timeline.onChanged('/b', 7n);
  timeline.onFound('/b', v('b7', 7), 8n);
  expect(timeline.publish(8n)).toEqual([]);
  expect(shown(timeline)).toBe('4: /a=a1 /b=b2');
  timeline.onFound('/a', v('a5', 5), 8n);
  expect(timeline.publish(8n)?.length).toBe(2);
  expect(shown(timeline)).toBe('8: /a=a5 /b=b7');
});

test('a value read is not taken as current when a change without a known zxid was reported meanwhile', () => {
  const timeline = withAB();
  // Two transactions write both; /b was read after the second, /a after the first.
  for (const path of ['/a', '/b', '/a', '/b']) timeline.onChanged(path, 4n);
  timeline.onFound('/a', v('a4', 4), null);
  timeline.onOutdated('/a');
  timeline.onFound('/b', v('b6', 6), 6n);
  timeline.publish(6n);
  expect(shown(timeline)).toBe('3: /a=a1 /b=b2');
  timeline.onFound('/a', v('a6', 6), 6n);
  timeline.publish(6n);
  expect(shown(timeline)).toBe('6: /a=a6 /b=b6');
});

test('a value that was overwritten before it was read is skipped', () => {
  const timeline = withAB();
  for (const zxid of [5n, 6n]) timeline.onChanged('/a', zxid);
  timeline.onFound('/a', v('a6', 6), 6n);
  timeline.publish(5n);
  expect(shown(timeline)).toBe('4: /a=a1 /b=b2');
  timeline.publish(6n);
  expect(shown(timeline)).toBe('6: /a=a6 /b=b2');
});

test('two paths that change all the time still have a moment at which both are known', () => {
  const timeline = withAB();
  // /a changes at 4, 6, 8, …, /b at 5, 7, 9, …; each is read now and then, and the other one shortly after.
  for (let zxid = 4n; zxid <= 20n; zxid++) timeline.onChanged(zxid % 2n === 0n ? '/a' : '/b', zxid);
  timeline.onFound('/a', v('a10', 10), null);
  timeline.onFound('/b', v('b11', 11), null);
  timeline.publish(20n);
  expect(shown(timeline)).toBe('11: /a=a10 /b=b11');
});

test('a path not checked since a gap is unknown, and known for the whole gap when it has not changed', () => {
  const timeline = withAB();
  timeline.onBlind(4n);
  timeline.onSight(9n);
  timeline.onFound('/a', v('a1', 1), 9n);
  expect(timeline.publish(9n)).toBeNull();
  timeline.onMissing('/b', 9n);
  expect(timeline.publish(9n)).toEqual([{ path: '/b', before: v('b2', 2), after: null }]);
  expect(shown(timeline)).toBe('9: /a=a1');
});

test('no zxid between a gap and the first reply after it is published, even if nothing known has changed', () => {
  const timeline = withAB();
  timeline.onBlind(4n);
  timeline.onSight(9n);
  timeline.onFound('/a', v('a1', 1), 9n);
  timeline.onFound('/b', v('b2', 2), 9n);
  expect(timeline.publish(8n)).toBeNull();
  expect(timeline.publish(9n)).toEqual([]);
});

test('a deletion and a creation in one txn are one change', () => {
  const timeline = withAB();
  timeline.onDeleted('/a', 5n);
  timeline.onChanged('/a', 5n);
  timeline.onFound('/a', v('new', 5), 5n);
  expect(timeline.publish(5n)).toEqual([{ path: '/a', before: v('a1', 1), after: v('new', 5) }]);
});

test('a path that is missing after two gaps with nothing in between is known to be missing, and to stay so', () => {
  const timeline = withAB();
  timeline.onBlind(4n);
  timeline.onSight(9n);
  timeline.onBlind(10n);
  timeline.onSight(9n);
  timeline.onFound('/a', v('a1', 1), 9n);
  timeline.onMissing('/b', 9n);
  timeline.publish(9n);
  expect(shown(timeline)).toBe('9: /a=a1');
  timeline.publish(12n);
  expect(shown(timeline)).toBe('12: /a=a1');
});

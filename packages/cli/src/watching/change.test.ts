import type { WatchEvent } from '@meerkat/client';
import { expect, test } from 'vitest';
import { Paint } from '../output/paint.ts';
import { diffValues } from '../value/value-diff.ts';
import { type Change, childrenChange, deletion, found, gapChange, plainChange, writing } from './change.ts';
import { describeChange } from './change-report.ts';
import { ChurnTable } from './churn.ts';
import type { Seen } from './picture.ts';

function event(type: WatchEvent['type'], zxid: bigint | null, path = '/a'): WatchEvent {
  return { type, path, zxid };
}

function seen(czxid: bigint, mzxid: bigint, version: number, text = ''): Seen {
  const data = new TextEncoder().encode(text);
  return { czxid, mzxid, version, size: data.length, data };
}

function shown(change: Change): string {
  // Without the time, which depends on where this runs.
  return describeChange(change, new Paint(false), diffValues).replace(/^\S+ +/, '');
}

test('says whether the data that were read are those of the change', () => {
  const before = seen(1n, 5n, 3);
  expect(writing(event('changed', 6n), 0, before, seen(1n, 6n, 4)).value).toBe('exact');
  expect(writing(event('changed', 6n), 0, before, seen(1n, 8n, 6)).value).toBe('later');
  expect(writing(event('changed', 5n), 0, before, before).value).toBe('known');
  expect(writing(event('created', 6n), 0, null, seen(6n, 6n, 0)).value).toBe('exact');
  expect(writing(event('created', 6n), 0, null, seen(6n, 7n, 1)).value).toBe('later');
});

test('finds out the zxid that a server does not tell, only where nothing can have come in between', () => {
  const before = seen(1n, 5n, 3);
  expect(writing(event('changed', null), 0, before, seen(1n, 6n, 4))).toMatchObject({ zxid: 6n, value: 'exact' });
  expect(writing(event('changed', null), 0, before, seen(1n, 8n, 5))).toMatchObject({ zxid: null, value: 'later' });
  expect(writing(event('changed', null), 0, null, seen(1n, 8n, 5))).toMatchObject({ zxid: null, value: 'later' });
  expect(writing(event('changed', null), 0, before, seen(7n, 7n, 4))).toMatchObject({ zxid: null, value: 'later' });
  expect(writing(event('created', null), 0, null, seen(9n, 9n, 0))).toMatchObject({ zxid: 9n, value: 'exact' });
});

test('finds by comparison what a gap has hidden', () => {
  expect(found('/a', 0, seen(1n, 2n, 1), seen(1n, 2n, 1))).toBeNull();
  expect(found('/a', 0, null, null)).toBeNull();
  expect(found('/a', 0, null, seen(3n, 4n, 1))).toMatchObject({ kind: 'created', zxid: 3n, source: 'comparison' });
  expect(found('/a', 0, seen(1n, 2n, 1), seen(1n, 4n, 3))).toMatchObject({ kind: 'changed', zxid: 4n });
  expect(found('/a', 0, seen(1n, 2n, 1), null)).toMatchObject({ kind: 'deleted', zxid: null });
});

test('shows changes to people with what differs, names that came and went, and gaps', () => {
  const change = writing(event('changed', 6n), 0, seen(1n, 5n, 3, 'one\ntwo'), seen(1n, 6n, 4, 'one\n2'));
  expect(shown(change)).toBe('0x6          changed   /a  version 4, 5 B\n     one\n    -two\n    +2');
  const created = writing(event('created', 6n), 0, null, seen(6n, 6n, 0, 'x'));
  expect(shown(created)).toBe('0x6          created   /a  version 0, 1 B\n    +x');
  const same = writing(event('changed', 6n), 0, seen(1n, 5n, 3, 'x'), seen(1n, 6n, 4, 'x'));
  expect(shown(same)).toMatch(/\n {4}the same data, written again$/);
  const unknown = writing(event('changed', 6n), 0, null, seen(1n, 6n, 4, 'x'));
  expect(shown(unknown)).toMatch(/\n {4}what it was before is not known; it is now:\n {4}\+x$/);
  expect(shown(deletion(event('deleted', 7n), 0, seen(1n, 6n, 4)))).toBe('0x7          deleted   /a');
  expect(shown(childrenChange(event('children', 7n), 0, ['x', 'y'], ['y', 'b', 'a']))).toBe(
    '0x7          children  /a  +a, +b, -x',
  );
  expect(shown(plainChange(event('created', null), 0, 'passed'))).toContain('before it could be read');
  expect(shown(gapChange({ type: 'gap', reason: 'reconnected', missed: null }, '/', 0))).toBe(
    'gap: the connection was lost and is back; changes may be missing here',
  );
  expect(shown(gapChange({ type: 'gap', reason: 'overflow', missed: 1200 }, '/', 0))).toContain('1,200 are missing');
});

test('counts changes by path, with an end to the number of paths', () => {
  const churn = new ChurnTable(2);
  for (const path of ['/a', '/b', '/b', '/c', '/d']) churn.add(plainChange(event('changed', 3n, path), 5));
  churn.add(plainChange(event('deleted', 4n, '/b'), 6));
  churn.add(gapChange({ type: 'gap', reason: 'new-session', missed: null }, '/', 7));
  expect(churn.rows(2000).map(({ path, total, changed, deleted }) => [path, total, changed, deleted])).toEqual([
    ['/b', 3, 2, 1],
    ['/a', 1, 1, 0],
    [null, 2, 2, 0],
  ]);
  expect(churn.rows(2000)[0]).toMatchObject({ perSecond: 1.5, lastZxid: 4n, lastMs: 6 });
  expect([churn.total, churn.gaps, churn.paths]).toEqual([6, 1, 2]);
});

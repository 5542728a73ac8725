import { History } from '@meerkat/simulator';
import { expect, it } from 'vitest';
import { formatTime, RunTotals, shortfallsOf, tableOf } from './run-totals.ts';

it('totals count replies to clients and the longest gap between acknowledged writes', () => {
  let nowMs = 0;
  const history = new History(() => nowMs);
  const doAt = (atMs: number, op: 'sync' | 'delete', isAnswered: boolean): void => {
    const request = op === 'sync' ? ({ op, path: '/' } as const) : ({ op, path: '/a', version: -1 } as const);
    const operation = history.invoke('c1', request);
    nowMs = atMs;
    if (isAnswered) history.complete(operation, { op });
    else history.fail(operation, { code: 'CONNECTIONLOSS', outcome: 'unknown', failedPart: null });
  };
  doAt(1000, 'delete', true);
  doAt(2000, 'sync', true);
  doAt(3000, 'delete', false);
  doAt(4500, 'delete', true);
  doAt(5000, 'delete', true);
  const totals = new RunTotals();
  totals.addRound(history);
  totals.faults = new Map([
    ['stop', 2],
    ['crash', 1],
  ]);
  const table = new Map(tableOf(totals, 0));
  expect(totals).toMatchObject({ operations: 5, succeeded: 4, writes: 3, inDoubt: 1, longestGapMs: 3500 });
  expect([...table].filter(([label]) => /fault|stop|crash/.test(label))).toEqual([
    ['time under faults', '0:00'],
    ['faults', '3'],
    ['… crash', '1'],
    ['… stop', '2'],
  ]);
  expect(table.get('… refused, nothing done')).toBe('0');
});

it('a run that did too little reports of what', () => {
  const totals = new RunTotals();
  const kinds = ['crash', 'stop', 'members'] as const;
  totals.elapsedMs = 59_000;
  expect(shortfallsOf(totals, kinds)).toEqual([]);
  totals.elapsedMs = 1_800_000;
  totals.writes = 1799;
  totals.faults = new Map([
    ['crash', 89],
    ['members', 40],
  ]);
  totals.memberChanges = 29;
  totals.longestAbleMs = 61_000;
  totals.longestAble = 'servers 1,2 of 1,2, until 70.0 s';
  expect(shortfallsOf(totals, kinds)).toEqual([
    'faults: 89, expected 90 in 30:00',
    'changes of members acknowledged: 29, expected 30 in 30:00',
    'epochs: 0, expected 15 in 30:00',
    'writes that succeeded: 1,799, expected 1,800 in 30:00',
    'no fault of the kind stop',
    'no write in 61.0 s in which a majority could work (servers 1,2 of 1,2, until 70.0 s)',
  ]);
  totals.faults = new Map([
    ['crash', 89],
    ['stop', 1],
  ]);
  totals.writes = 1800;
  totals.longestAbleMs = 60_000;
  for (let epoch = 1; epoch <= 15; epoch++) totals.epochs.add(epoch);
  expect(shortfallsOf(totals, ['crash', 'stop'])).toEqual([]);
});

it('durations are minutes and seconds', () => {
  expect([0, 59_400, 61_000, 3_600_000].map(formatTime)).toEqual(['0:00', '0:59', '1:01', '60:00']);
});

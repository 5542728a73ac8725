import { makeZxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { formatPair, makeEntry, parseHistory, parsePair } from '../testing/history-text.ts';
import { RecentLog } from './recent-log.ts';

function logOf(history: string, countMax = 100): RecentLog {
  const tail = parseHistory(history);
  return new RecentLog({ tail, lastZxid: tail.at(-1)?.zxid ?? makeZxid(0, 0) }, countMax);
}

const zxidsOf = (log: RecentLog): string =>
  Array.from({ length: log.length }, (_, i) => formatPair(log.at(i).zxid)).join(' ');

describe('the newest txns in memory', () => {
  test('the oldest txn of the tail is the floor', () => {
    const log = logOf('(1,4)..(1,6)');
    expect(formatPair(log.floor)).toBe('(1,4)');
    expect(zxidsOf(log)).toBe('(1,5) (1,6)');
  });

  test('without a tail, the end of the history is the floor', () => {
    const log = new RecentLog({ tail: [], lastZxid: makeZxid(1, 9) }, 100);
    expect(formatPair(log.floor)).toBe('(1,9)');
    log.push(makeEntry(makeZxid(2, 1)));
    expect(zxidsOf(log)).toBe('(2,1)');
  });

  test('txns before a gap of the tail are dropped (ZOOKEEPER-2418)', () => {
    expect(formatPair(logOf('(1,1)..(1,3) (1,5)..(1,6)').floor)).toBe('(1,5)');
    expect(formatPair(logOf('(1,1)..(1,3) (2,2)..(2,4)').floor)).toBe('(2,2)');
    expect(formatPair(logOf('(1,1)..(1,3) (3,1)..(3,2)').floor)).toBe('(1,1)');
  });

  test('a txn that would leave a gap cannot be added (ZOOKEEPER-4925)', () => {
    expect(() => logOf('(1,1)').push(makeEntry(makeZxid(1, 3)))).toThrow('no gap');
    expect(() => logOf('(1,1)').push(makeEntry(makeZxid(1, 1)))).toThrow('no gap');
    expect(() => logOf('(1,1)').push(makeEntry(makeZxid(2, 2)))).toThrow('no gap');
  });

  test('the oldest txns are dropped, but none before it is applied', () => {
    const log = logOf('(1,1)..(1,3)', 2);
    for (const { zxid, payload } of parseHistory('(2,1)..(2,5)')) log.push({ zxid, payload });
    log.trim(parsePair('(2,2)'));
    expect(formatPair(log.floor)).toBe('(2,2)');
    expect(zxidsOf(log)).toBe('(2,3) (2,4) (2,5)');
    log.trim(parsePair('(2,5)'));
    expect(zxidsOf(log)).toBe('(2,4) (2,5)');
  });

  test('of thousands of txns the newest stay', () => {
    const log = logOf('', 10);
    for (let n = 1; n <= 5000; n++) {
      log.push(makeEntry(makeZxid(1, n)));
      log.trim(makeZxid(1, n));
    }
    expect(log.length).toBe(10);
    expect(log.at(0).zxid).toBe(makeZxid(1, 4991));
    expect(log.indexAfter(makeZxid(1, 4995))).toBe(5);
    expect(formatPair(log.floor)).toBe('(1,4990)');
  });

  test('fewer large txns are kept', () => {
    const log = logOf('', 100);
    for (let n = 1; n <= 40; n++) {
      log.push({ zxid: makeZxid(1, n), payload: new Uint8Array(1024 * 1024) });
      log.trim(makeZxid(1, n));
    }
    expect(log.length).toBe(16);
  });

  test('a point of the history is the last txn not later than the zxid', () => {
    const log = logOf('(1,3)..(1,5) (2,1)');
    expect(formatPair(log.pointAt(parsePair('(1,3)')))).toBe('(1,3)');
    expect(formatPair(log.pointAt(parsePair('(1,9)')))).toBe('(1,5)');
    expect(formatPair(log.pointAt(parsePair('(2,1)')))).toBe('(2,1)');
    expect(formatPair(log.pointAt(parsePair('(2,7)')))).toBe('(2,1)');
  });

  test('a placeholder is a point of the history, but no proposed txn', () => {
    const log = logOf('(1,3)..(1,5) (1,6)* (1,7)* (1,8)');
    expect(formatPair(log.pointAt(parsePair('(1,7)')))).toBe('(1,7)');
    expect(
      ['(1,8)', '(1,7)', '(1,6)', '(1,5)', '(1,3)'].map((pair) => formatPair(log.recordAt(parsePair(pair)))),
    ).toEqual(['(1,8)', '(1,5)', '(1,5)', '(1,5)', '(1,3)']);
  });
});

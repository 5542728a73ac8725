import { describe, expect, test } from 'vitest';
import { COST_MAX, WaitingRequests } from './waiting-requests.ts';

const MEBIBYTE = 1024 * 1024;

interface Write {
  readonly kind: 'write';
  readonly bytes: number;
}

interface Read {
  readonly kind: 'read';
  readonly bytes: number;
  isLong?: boolean;
}

const write = (bytes = 100): Write => ({ kind: 'write', bytes });
const read = (bytes = 100, isLong = false): Read => ({ kind: 'read', bytes, isLong });
const isFull = (waiting: WaitingRequests<Write, Read>): boolean => waiting.isFull(1000, false);

describe('a client is not read further', () => {
  test('while as many of its requests wait as may, of either kind', () => {
    const waiting = new WaitingRequests<Write, Read>();
    const first = write();
    waiting.addWrite(first);
    waiting.add(read());
    expect([waiting.isFull(3, false), waiting.isFull(2, false)]).toEqual([false, true]);
    waiting.removeWrite(first);
    expect([waiting.length, waiting.isFull(2, false)]).toEqual([1, false]);
  });

  test('while any of its requests waits and the server is overloaded', () => {
    const waiting = new WaitingRequests<Write, Read>();
    expect(waiting.isFull(1000, true)).toBe(false);
    waiting.add(read());
    expect(waiting.isFull(1000, true)).toBe(true);
  });

  test('while its requests have a mebibyte or more', () => {
    const waiting = new WaitingRequests<Write, Read>();
    const [large, small] = [write(MEBIBYTE - 200), read(200)];
    waiting.addWrite(large);
    expect(isFull(waiting)).toBe(false);
    waiting.add(small);
    expect(isFull(waiting)).toBe(true);
    waiting.removeWrite(large);
    expect(isFull(waiting)).toBe(false);
    waiting.addWrite(large);
    expect(isFull(waiting)).toBe(true);
    waiting.remove(small);
    expect(isFull(waiting)).toBe(false);
  });

  test('while its writes together cost too much; a write keeps its cost when it gets its txn, and that has its size', () => {
    const waiting = new WaitingRequests<Write, Read>();
    const [slot, proposal, next] = [write(10), write(MEBIBYTE - 100), write(100)];
    waiting.addWrite(slot);
    waiting.addCost(COST_MAX - 1);
    waiting.replaceWrite(slot, proposal);
    expect(waiting.oldest).toBe(proposal);
    expect(isFull(waiting)).toBe(false);
    waiting.addWrite(write(99));
    expect(isFull(waiting)).toBe(false);
    waiting.addWrite(next);
    expect(isFull(waiting), 'by size').toBe(true);
    waiting.removeWrite(proposal);
    expect(isFull(waiting)).toBe(false);
    waiting.addCost(COST_MAX);
    expect(isFull(waiting), 'by cost').toBe(true);
    waiting.addCost(COST_MAX - 1);
    expect(isFull(waiting), 'the cost is replaced').toBe(false);
  });

  test('while one of its reads takes several turns, whether that was known from the start or not', () => {
    const waiting = new WaitingRequests<Write, Read>();
    const [long, short] = [read(100, true), read()];
    waiting.add(long);
    waiting.add(short);
    expect([waiting.hasLongReads, isFull(waiting)]).toEqual([true, true]);
    waiting.markLong(long);
    waiting.remove(long);
    expect([waiting.hasLongReads, isFull(waiting)]).toEqual([false, false]);
    waiting.markLong(short);
    expect([waiting.hasLongReads, isFull(waiting)]).toEqual([true, true]);
    waiting.remove(short);
    expect([waiting.hasLongReads, isFull(waiting)]).toEqual([false, false]);
  });
});

describe('a request other than a write', () => {
  test('is owed until it is answered, or until only its client delays it', () => {
    const waiting = new WaitingRequests<Write, Read>();
    const reads = [read(), read(), read(), read()] as const;
    waiting.addWrite(write());
    for (const one of reads.slice(0, 3)) waiting.add(one);
    expect(waiting.remove(reads[0]), 'not the oldest').toBe(0);
    waiting.removeWrite(waiting.oldest as Write);
    expect(waiting.remove(reads[0])).toBe(1);
    expect(waiting.clearOwed()).toBe(2);
    expect([waiting.clearOwed(), waiting.remove(reads[1])]).toEqual([0, 0]);
    waiting.add(reads[3]);
    expect(waiting.clearOwed()).toBe(1);
  });

  test('is forgotten with all others when its client has left', () => {
    const waiting = new WaitingRequests<Write, Read>();
    const slot = write(MEBIBYTE);
    waiting.addWrite(slot);
    waiting.addCost(COST_MAX);
    waiting.add(read(100, true));
    waiting.clear();
    waiting.replaceWrite(slot, write());
    expect([waiting.length, waiting.oldest, waiting.hasLongReads]).toEqual([0, undefined, false]);
    waiting.addWrite(write());
    expect(isFull(waiting)).toBe(false);
  });
});

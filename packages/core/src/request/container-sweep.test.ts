import { describe, expect, it } from 'vitest';
import { ContainerSweep } from './container-sweep.ts';

const OPTIONS = { intervalMs: 1000, deletesPerMinuteMax: 6000, neverUsedMs: 0 };
const PAUSE_MS = 10;

/** `count` znodes, of which every `nth` may be deleted. */
function makeSweep(count: number, nth: number, options = OPTIONS): { sweep: ContainerSweep; tree: { looked: number } } {
  const tree = {
    looked: 0,
    *collectablePaths(): IterableIterator<string | null> {
      for (let i = 1; i <= count; i++) {
        tree.looked++;
        yield i % nth === 0 ? `/${i}` : null;
      }
    },
  };
  return { sweep: new ContainerSweep(tree, options, 0), tree };
}

describe('ContainerSweep', () => {
  it('begins after the interval, and returns what it finds at a limited rate', () => {
    const { sweep } = makeSweep(4, 2);
    expect(sweep.nextDeadlineMs).toBe(1000);
    expect(sweep.onTick(999, 0)).toEqual([]);
    expect(sweep.onTick(1000, 0)).toEqual(['/2']);
    expect(sweep.nextDeadlineMs).toBe(1000 + PAUSE_MS);
    expect(sweep.onTick(1005, 0)).toEqual([]);
    expect(sweep.onTick(1010, 0)).toEqual(['/4']);
    expect(sweep.nextDeadlineMs).toBe(2000);
    expect(sweep.onTick(2000, 0)).toEqual(['/2']);
  });

  it('visits a limited number of znodes per tick, and continues in the next tick while it finds none', () => {
    const { sweep, tree } = makeSweep(10_000, 9999);
    let ticks = 0;
    let found: readonly string[] = [];
    for (let before = 0; found.length === 0; ticks++) {
      found = sweep.onTick(1000 + ticks, 0);
      expect(tree.looked - before).toBeLessThan(3000);
      before = tree.looked;
      if (found.length === 0) expect(sweep.nextDeadlineMs).toBe(1001 + ticks);
    }
    expect(ticks).toBeGreaterThan(3);
    expect(found).toEqual(['/9999']);
    expect(sweep.nextDeadlineMs).toBe(2000);
  });

  it('finds all of many', () => {
    const { sweep } = makeSweep(10_000, 1);
    const found: string[] = [];
    for (let nowMs = 1000; found.length < 10_000; nowMs += PAUSE_MS) found.push(...sweep.onTick(nowMs, 0));
    expect(found).toEqual(Array.from({ length: 10_000 }, (_, i) => `/${i + 1}`));
  });

  it('returns few at a time even when it is called late', () => {
    const { sweep } = makeSweep(10_000, 1);
    sweep.onTick(1000, 0);
    const late = sweep.onTick(60_000, 0);
    expect(late.length).toBeGreaterThan(1);
    expect(late.length).toBeLessThan(100);
    expect(late.slice(0, 2)).toEqual(['/2', '/3']);
  });

  it('has deadlines in whole milliseconds, like ticks, at any rate', () => {
    const { sweep } = makeSweep(4, 1, { ...OPTIONS, deletesPerMinuteMax: 8000 });
    expect(sweep.onTick(1000, 0)).toEqual(['/1']);
    expect(sweep.nextDeadlineMs).toBe(1008);
    expect(sweep.onTick(1008, 0)).toEqual(['/2']);
  });
});

import { describe, expect, it } from 'vitest';
import { formatLimits, NO_LIMITS, parseLimits, parseUsage } from './quota-text.ts';

describe('the text of a quota', () => {
  // As zkCli 3.8 writes them.
  it.each([
    ['count=5,bytes=-1', { ...NO_LIMITS, countSoft: 5 }],
    ['count=-1,bytes=1000', { ...NO_LIMITS, bytesSoft: 1000 }],
    ['count=-1,bytes=-1=;countHardLimit=7', { ...NO_LIMITS, countHard: 7 }],
    ['count=3,bytes=4=;byteHardLimit=10;countHardLimit=7', { countSoft: 3, bytesSoft: 4, bytesHard: 10, countHard: 7 }],
  ])('is read and written as ZooKeeper has it: %s', (text, limits) => {
    expect(parseLimits(text)).toEqual(limits);
    expect(formatLimits(limits)).toBe(text);
  });

  it('has no limit where there is no number', () => {
    expect(parseLimits('')).toEqual(NO_LIMITS);
    expect(parseLimits('count=many;=;,,bytes=')).toEqual(NO_LIMITS);
  });

  it('reports the usage', () => {
    expect(parseUsage('count=12,bytes=345')).toEqual({ count: 12, bytes: 345 });
    expect(parseUsage('what?')).toBeNull();
  });
});

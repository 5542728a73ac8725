import { describe, expect, test } from 'vitest';
import { settle } from './options.ts';

describe('the settings of a client', () => {
  test('have a default for everything but the servers', () => {
    const settings = settle({ servers: 'one,two:2182/app' });
    expect(settings).toMatchObject({
      hosts: [
        { host: 'one', port: 2181 },
        { host: 'two', port: 2182 },
      ],
      chroot: '/app',
      sessionTimeoutMs: 10_000,
      connectTimeoutMs: 10_000,
      canBeReadOnly: false,
      requestBytesMax: 1_048_575,
    });
    expect(settings.clock.monotonicMs()).toBeGreaterThan(0);
  });

  test('let a session try every server before it is lost, after two thirds of its timeout without a reply', () => {
    for (const count of [1, 2, 3, 5]) {
      const servers = Array.from({ length: count }, (_, i) => `host-${i}`);
      const { attemptTimeoutMs } = settle({ servers, sessionTimeoutMs: 30_000 });
      expect(attemptTimeoutMs * count).toBeCloseTo(10_000);
    }
    expect(settle({ servers: 'one', sessionTimeoutMs: 600 }).attemptTimeoutMs).toBe(1000);
  });

  test('prefer given values to defaults', () => {
    const said = {
      sessionTimeoutMs: 5000,
      connectTimeoutMs: 100,
      attemptTimeoutMs: 7,
      backOff: { minMs: 1, maxMs: 2 },
    };
    expect(settle({ servers: 'one', chroot: '/a', ...said })).toMatchObject({ ...said, chroot: '/a' });
  });

  test.each([
    ['sessionTimeoutMs', [-1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31]],
    ['connectTimeoutMs', [-1, Number.NaN]],
    ['attemptTimeoutMs', [-1, 0, Number.NaN]],
    ['requestBytesMax', [-1, 0, Number.NaN]],
    ['replyBytesMax', [-1, 0, Number.NaN]],
  ])('refuse a %s that makes no sense', (name, numbers) => {
    for (const number of numbers) {
      const message = new RegExp(`${name} is .*, not ${number}$`);
      const attempt = (): unknown => settle({ servers: 'one', [name]: number });
      expect(attempt).toThrow(RangeError);
      expect(attempt).toThrow(message);
    }
  });

  test('refuse invalid delays', () => {
    for (const backOff of [
      { minMs: Number.NaN, maxMs: 1 },
      { minMs: 1, maxMs: -1 },
    ]) {
      expect(() => settle({ servers: 'one', backOff })).toThrow(RangeError);
    }
  });
});

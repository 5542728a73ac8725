import { describe, expect, test } from 'vitest';
import { formatDouble, formatRemote } from './java-text.ts';

describe("Java's texts", () => {
  test('doubles have a point, and an exponent when they are small or large', () => {
    expect([0, 1, 1.45454, 0.0001, 0.00005, 1e7, 12345678.5, 2.5].map(formatDouble)).toEqual([
      '0.0',
      '1.0',
      '1.4545',
      '1.0E-4',
      '1.0E-4',
      '1.0E7',
      '1.23456785E7',
      '2.5',
    ]);
  });

  test('an address of version 6 stands in brackets, all its groups written', () => {
    const ip = new Uint8Array(16);
    ip[15] = 1;
    expect(formatRemote({ ip, host: '::1', port: 51234 })).toBe('/[0:0:0:0:0:0:0:1]:51234');
  });
});

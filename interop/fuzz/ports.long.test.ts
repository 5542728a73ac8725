import { expect, test } from 'vitest';
import { fuzz } from './fuzz.ts';

/** Frames of the short form; `npm run fuzz` sends more. Fails when the well-behaved client is not served throughout. */
test.each([
  ['client', false, 8000],
  ['client', true, 2000],
  ['quorum', false, 2000],
  ['quorum', true, 1000],
  ['election', false, 2000],
  ['election', true, 1000],
] as const)(
  'random, modified and truncated frames on the %s port (TLS: %s), with and without authentication, are harmless',
  async (port, withTls, frames) => {
    const report = await fuzz({ port, withTls, frames, seed: 1 });
    expect(report.frames).toBeGreaterThanOrEqual(frames);
    if (port === 'client') expect(report.turns.reconnects).toBe(0);
    expect(report.residentBytesAfter - report.residentBytesBefore).toBeLessThan(512 * 2 ** 20);
  },
);

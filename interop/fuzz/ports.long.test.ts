import { expect, test } from 'vitest';
import { fuzz } from './fuzz.ts';

/** Frames of the short form: `npm run fuzz` sends more. It throws when the client beside is not served from before the first frame to behind the last. */
test.each([
  ['client', false, 8000],
  ['client', true, 2000],
  ['quorum', false, 2000],
  ['quorum', true, 1000],
  ['election', false, 2000],
  ['election', true, 1000],
] as const)(
  'random, changed and truncated frames at the %s port (TLS: %s), before and after authentication, leave servers and clients as they were',
  async (port, withTls, frames) => {
    const report = await fuzz({ port, withTls, frames, seed: 1 });
    expect(report.frames).toBeGreaterThanOrEqual(frames);
    if (port === 'client') expect(report.turns.reconnects).toBe(0);
    expect(report.residentBytesAfter - report.residentBytesBefore).toBeLessThan(512 * 2 ** 20);
  },
);

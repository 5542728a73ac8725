import { expect, test } from 'vitest';
import { fuzzClientPort } from './client-port.ts';

test('random, changed and truncated frames, before and after authentication, leave the server and its other clients as they were', async () => {
  const report = await fuzzClientPort({ frames: 12_000, seed: 1 });
  expect(report.frames).toBeGreaterThanOrEqual(12_000);
  expect(report.requests).toBeGreaterThan(10);
  expect(report.residentBytesAfter - report.residentBytesBefore).toBeLessThan(512 * 2 ** 20);
});

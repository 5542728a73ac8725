import type { Client } from '@meerkat/client';
import { expect, test } from 'vitest';
import { InvocationFailure } from '../run/command-failure.ts';
import { handleMargin, parseHoldSettings } from './hold-settings.ts';

const WORDS = { layout: 'curator', killAfter: '2s', margin: '0' } as const;

function clientOf(timeoutMs: number): Client {
  return { session: { id: 1n, password: new Uint8Array(16), timeoutMs } } as unknown as Client;
}

test('the margin of the handle is the time to kill in and the margin, up to half of the session timeout', () => {
  const settings = parseHoldSettings({ ...WORDS, margin: '3s' });
  expect(handleMargin(settings, clientOf(10_000))).toBe(5000);
  expect(() => handleMargin(settings, clientOf(9999))).toThrow(InvocationFailure);
});

test('by default waits without a limit and identifies itself by host and process', () => {
  expect(parseHoldSettings(WORDS)).toMatchObject({ acquireMs: undefined, id: expect.stringMatching(/^.+:\d+$/) });
  expect(parseHoldSettings({ ...WORDS, id: 'ann', acquireTimeout: '1m' })).toMatchObject({
    id: 'ann',
    acquireMs: 60_000,
  });
  expect(() => parseHoldSettings({ ...WORDS, killAfter: 'soon' })).toThrow('--kill-after: expected a time');
});

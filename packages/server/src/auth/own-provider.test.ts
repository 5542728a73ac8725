import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PeerAddress } from '@meerkat/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LogLevel } from '../logger.ts';
import { DEFAULT_AUTH_OPTIONS, makeAuthenticator } from './authenticator.ts';
import { loadOwnProviders } from './own-provider.ts';

const remote: PeerAddress = { ip: Uint8Array.of(10, 1, 2, 3), host: '10.1.2.3', port: 4000 };
const lines: string[] = [];
const logger = { log: (level: LogLevel, message: string) => lines.push(`${level} ${message}`) };

let directory: string;
let count = 0;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'own-provider-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

function moduleOf(text: string): string {
  const path = join(directory, `provider-${count++}.mjs`);
  writeFileSync(path, text);
  return path;
}

const BADGE = `export default () => ({
  scheme: 'badge',
  authenticate(auth, remote) {
    const text = new TextDecoder().decode(auth ?? undefined);
    if (text === 'throw') throw new Error('no reader');
    if (text === 'odd') return [{ scheme: 'digest', id: 'x' }];
    if (text === 'late') return Promise.resolve([]);
    return text.startsWith('B') ? [{ scheme: 'badge', id: text + '@' + remote.host }] : null;
  },
  matches: (id, acl) => id.startsWith(acl),
});`;

describe("a module of the user's own", () => {
  test('is a scheme like any other', async () => {
    const own = await loadOwnProviders([moduleOf(BADGE)], logger);
    const authenticator = makeAuthenticator({ ...DEFAULT_AUTH_OPTIONS, enforcedSchemes: ['badge'] }, own);
    const identities = authenticator.authenticate('badge', new TextEncoder().encode('B7'), remote, null);
    expect(identities).toEqual([{ scheme: 'badge', id: 'B7@10.1.2.3' }]);
    expect(authenticator.isAdmitted(identities ?? [])).toBe(true);
    expect(authenticator.matches('badge', 'B7@10.1.2.3', 'B7')).toBe(true);
    expect(authenticator.isValidAclId('badge', 'B7')).toBe(true);
    expect(authenticator.isValidAclId('badge', '')).toBe(false);
    expect(authenticator.isAuthenticatedScheme('badge')).toBe(true);
    expect(authenticator.userName({ scheme: 'badge', id: 'B7' })).toBe('B7');
    expect(authenticator.refusalOf(new Set(['badge']))).toBeNull();
  });

  test.each(['throw', 'odd', 'late'])('that does "%s" refuses, and the log says so', async (what) => {
    const own = await loadOwnProviders([moduleOf(BADGE)], logger);
    const authenticator = makeAuthenticator(DEFAULT_AUTH_OPTIONS, own);
    lines.length = 0;
    expect(authenticator.authenticate('badge', new TextEncoder().encode(what), remote, null)).toBeNull();
    expect(lines).toEqual([
      expect.stringMatching(/^error .*provider-\d+\.mjs \(authProvider\): authenticate failed: /),
    ]);
  });

  test.each([
    ['that is not there', () => join(directory, 'nowhere.mjs'), /nowhere/],
    ['that does not run', () => moduleOf('throw new Error("broken")'), /broken/],
    ['without an export', () => moduleOf(''), /no object/],
    ['without a scheme', () => moduleOf('export default { authenticate() {} }'), /no text "scheme"/],
    ['without authenticate', () => moduleOf('export default { scheme: "a" }'), /no method "authenticate"/],
    ['for a scheme of ours', () => moduleOf('export default { scheme: "sasl", authenticate() {} }'), /which is taken/],
    [
      'with half a method',
      () => moduleOf('export default { scheme: "a", matches: 1, authenticate() {} }'),
      /"matches"/,
    ],
  ])('%s stops the start', async (_, path, message) => {
    await expect(loadOwnProviders([path()], logger)).rejects.toThrow(message);
  });
});

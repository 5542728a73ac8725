import { cpSync, mkdirSync, mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { kindOfOwner, ttlOfOwner } from '../archive/znode-kind.ts';
import { type DataFeatures, describeFeatures } from './data-features.ts';
import { checkDirectory } from './migration-check.ts';

/** Written by Apache's 3.8.0. */
const APACHE = fileURLToPath(new URL('../../../core/src/storage/fixtures/apache-3.8.0', import.meta.url));
const NEVER = new AbortController().signal;

function copyOfApaches(): string {
  const directory = mkdtempSync(join(tmpdir(), 'migration-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  mkdirSync(join(directory, 'version-2'));
  cpSync(APACHE, join(directory, 'version-2'), { recursive: true });
  return directory;
}

const PLAIN: DataFeatures = {
  znodes: 1500,
  bytes: 3000,
  kinds: { persistent: 1500, ephemeral: 0, container: 0, ttl: 0 },
  schemes: new Map(),
  largest: { path: '/a', bytes: 100 },
  mostChildren: { path: '/', count: 7 },
  sessions: 0,
};

function levels(features: Partial<DataFeatures>): readonly string[] {
  return describeFeatures({ ...PLAIN, ...features }, 'x').map(({ level }) => level);
}

describe('what migrate check tells of the data', () => {
  test('is read from the newest snapshot of Apache’s', async () => {
    const notes = await checkDirectory(copyOfApaches(), NEVER);
    expect(
      notes.filter(({ where }) => where.endsWith('snapshot.a')).map(({ level, text }) => `${level} ${text}`),
    ).toEqual([
      'fact 12 znodes of 21 B, 1 of them ephemeral, 1 session; the largest is /secret (6 B), the widest / (children: 7)',
      "fact 1 container: deleted when empty, as with Apache's",
      expect.stringMatching(/^change 1 znode with a TTL: every server needs extendedTypesEnabled=true/),
      'fact ACLs name the schemes digest (entries: 1)',
    ]);
  });

  test('is that the snapshot is damaged, when it is', async () => {
    const directory = copyOfApaches();
    truncateSync(join(directory, 'version-2', 'snapshot.a'), 300);
    const notes = await checkDirectory(directory, NEVER);
    expect(notes).toContainEqual(
      expect.objectContaining({ level: 'stop', where: expect.stringMatching(/snapshot\.a$/) }),
    );
  });

  test('stops at schemes of ACLs that no server of ours has, and warns of what needs a key of the configuration', () => {
    expect(levels({})).toEqual(['fact']);
    expect(levels({ schemes: new Map([['digest', 3]]) })).toEqual(['fact', 'fact']);
    expect(levels({ schemes: new Map([['kerberos-of-ours', 1]]) })).toEqual(['fact', 'fact', 'stop']);
    expect(levels({ schemes: new Map([['sasl', 1]]) })).toEqual(['fact', 'fact', 'change']);
    expect(levels({ kinds: { persistent: 1, ephemeral: 0, container: 2, ttl: 1 } })).toEqual([
      'fact',
      'fact',
      'change',
    ]);
    expect(levels({ largest: { path: '/big', bytes: 2 << 20 } })).toEqual(['fact', 'change']);
  });
});

// The table of docs, from Apache's EphemeralType.
test.each([
  [0n, 'persistent'],
  [0x1000a2b3c4d0001n, 'ephemeral'],
  [-0x8000000000000000n, 'container'],
  [-0x100000000000000n + 5000n, 'ttl'],
  [0xfe00000000000001n, 'ephemeral'],
] as const)('the owner %s is of a znode that is %s', (owner, kind) => {
  expect(kindOfOwner(owner)).toBe(kind);
  if (kind === 'ttl') expect(ttlOfOwner(owner)).toBe(5000);
});

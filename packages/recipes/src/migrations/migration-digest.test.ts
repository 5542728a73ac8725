import { READ_ONLY } from '@meerkat/client';
import { expect, test } from 'vitest';
import { digestOf, type MigrationOperation } from './migration-digest.ts';

/** What Curator 5.4.0 computes (`ExtractingCuratorOp.addToDigest`) for the same operations. */
const RECORDED: readonly [MigrationOperation, string][] = [
  [
    { kind: 'create', path: '/a/ä', data: "test,'x\n" },
    'c2764b33c415cf2b4097abb62d5f7baf2790db69ced405d79b6bff3004748b06',
  ],
  [{ kind: 'create', path: '/a/b' }, '20541746a6608ac37cb432d701db531dd26bb66b6550649d536eb211a1deda4b'],
  [
    { kind: 'create', path: '/a/s-', data: 'q', sequential: true },
    'b49d47e3f29009d9b5fc20eccb05c68731460fae7e90e27a2140162f85f6b6e3',
  ],
  [
    { kind: 'create', path: '/a/c', data: 'q', mode: 'container' },
    '735914f54ec001d4c483bccdf56578d334bb2635deee6658b7bc18e70961f30b',
  ],
  [
    { kind: 'create', path: '/a/t', data: 'q', ttlMs: 5000 },
    '8d6f446dbc6f032bf46cad50482d9c1e34a9695dfcefdad2ebedff6cef5b3417',
  ],
  [
    { kind: 'create', path: '/a/r', data: 'q', acl: READ_ONLY },
    '8b7f843d59224cceec6f491762aac20b3b09cbd2d66243be9ef8b1b929846724',
  ],
  [
    { kind: 'set', path: '/a/b', data: new Uint8Array([0, 255, 16]) },
    'a105e414405cfa4c8e195a98d3ecb628dd15bd3e962c9470238c05630ba8c841',
  ],
  [
    { kind: 'set', path: '/a/b', data: 'z', version: 3 },
    '61445b79fd13bb4b7bb765249252d33e06981065447a1147fbdde4a4606c6959',
  ],
  [{ kind: 'delete', path: '/a/b' }, '0fde62e5ea6dfac0c946ce532ba9bc1c93c39178d9c76f3264e5fe8ab813fab7'],
  [{ kind: 'delete', path: '/a/b', version: 7 }, '06cfcd655ecee8d153c8de1c8ac806a4ac840a98ec76e9660f99141e0f7cebc2'],
  [{ kind: 'check', path: '/a/b' }, 'c259987c599f0dd6e63bb915898742820f057701bbf9ebf85e720848a63fe946'],
];

test.each(RECORDED)('the hash of %j is that of Curator', (operation, recorded) => {
  expect(Buffer.from(digestOf([operation])).toString('hex')).toBe(recorded);
});

test('the hash of a migration covers its operations and their order', () => {
  const [a, b] = [RECORDED[0]![0], RECORDED[1]![0]];
  const digests = [[a, b], [b, a], [a], []].map((migration) => Buffer.from(digestOf(migration)).toString('hex'));
  expect(new Set(digests).size).toBe(4);
});

import { JuteWriter, OPEN_ACL, writeAclList } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { findSnapshotFault } from './disk-reader.ts';

/** As Apache writes it: header, sessions, lists of permissions, znodes, and "/" behind the last one. */
function snapshotOf(znodes: readonly (readonly [path: string, czxid: number])[]): Uint8Array {
  const writer = new JuteWriter();
  writer.int(0x5a4b534e);
  writer.int(2);
  writer.long(-1);
  writer.int(1);
  writer.long(0x77);
  writer.int(4000);
  writer.int(1);
  writer.long(1);
  writeAclList(writer, OPEN_ACL);
  for (const [path, czxid] of znodes) {
    writer.ustring(path);
    writer.buffer(new Uint8Array(path.length));
    writer.long(1);
    writer.long(czxid);
    writer.raw(new Uint8Array(52));
  }
  writer.ustring('/');
  return writer.toBytes();
}

test.each([
  [
    'each once, behind its parent, and as old as its name',
    [
      ['', 0],
      ['/a', 3],
      ['/b', 4],
      ['/a/b', 9],
    ],
    null,
  ],
  [
    'one twice',
    [
      ['', 0],
      ['/a', 3],
      ['/a', 4],
    ],
    '/a stands in it twice',
  ],
  [
    'one before its parent',
    [
      ['', 0],
      ['/a/b', 3],
      ['/a', 2],
    ],
    '/a/b stands in it before its parent',
  ],
  [
    'one that was created later',
    [
      ['', 0],
      ['/a', 10],
    ],
    '/a was created later, by txn 0xa',
  ],
] as const)('a snapshot has %s', (_what, znodes, fault) => {
  expect(findSnapshotFault(snapshotOf(znodes), 9)).toBe(fault);
});

test('a snapshot whose end is missing cannot be read', () => {
  const whole = snapshotOf([
    ['', 0],
    ['/a', 3],
  ]);
  expect(findSnapshotFault(whole.subarray(0, whole.length - 5), 9)).toBe('what stands behind 2 znodes cannot be read');
});

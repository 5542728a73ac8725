import type { Stat } from '@meerkat/client';
import { expect, test } from 'vitest';
import { statPageColumns } from './stat-page.ts';

const NOW_MS = Date.parse('2024-05-01T12:00:00Z');

function page(changes: Partial<Stat>): Record<string, string> {
  const times = { ctime: NOW_MS - 7_200_000, mtime: NOW_MS - 60_000 };
  const zxids = { czxid: 0x100000001n, mzxid: 0x100000002n, pzxid: 0x100000001n };
  const versions = { version: 1, cversion: 0, aversion: 0 };
  const rest = { ephemeralOwner: 0n, dataLength: 12, numChildren: 0 };
  const stat = { ...times, ...zxids, ...versions, ...rest, ...changes };
  const whole = { ...stat, isEphemeral: stat.ephemeralOwner !== 0n } as Stat;
  return Object.fromEntries(statPageColumns(NOW_MS).map(({ name, text }) => [name, text?.(whole) ?? '']));
}

test('a Stat is reported with what its values mean', () => {
  const { czxid, ctime, mtime, version, ephemeralOwner, dataLength } = page({});
  expect(czxid).toBe('0x100000001');
  expect(ctime).toMatch(/^2024-05-0\d \d\d:\d0:00\.000 {2}\(created 2 h ago\)$/);
  expect(mtime).toMatch(/ {2}\(data changed 1 min ago\)$/);
  expect({ version, ephemeralOwner, dataLength }).toEqual({
    version: '1',
    ephemeralOwner: '0x0  (not ephemeral)',
    dataLength: '12',
  });
  expect(page({ version: 0 })['mtime']).not.toContain('changed');
  expect(page({ dataLength: 150_000 })['dataLength']).toBe('150000  (146 KiB)');
});

test('the owner of an ephemeral znode is reported with the server that opened its session', () => {
  expect(page({ ephemeralOwner: 0x0300abcn })['ephemeralOwner']).toBe('0x300abc  (ephemeral: goes with this session)');
  // The first byte of the id is that of the server; as a signed number, ids from 128 on are negative.
  expect(page({ ephemeralOwner: 0x05_00000000000001n })['ephemeralOwner']).toContain('opened at server 5)');
  expect(page({ ephemeralOwner: BigInt.asIntN(64, 0xc8_00000000000001n) })['ephemeralOwner']).toBe(
    '0xc800000000000001  (ephemeral: goes with this session, opened at server 200)',
  );
});

import type { Stat as ClientStat } from '@meerkat/client';
import type { Stat } from '@meerkat/protocol';

/** The first field in which what a client was told differs from what is due; null when none does. */
export function differenceOfStats(told: ClientStat, due: Stat): string | null {
  const fields: readonly (readonly [string, number | bigint, number | bigint])[] = [
    ['czxid', told.czxid, BigInt(due.czxid)],
    ['mzxid', told.mzxid, BigInt(due.mzxid)],
    ['pzxid', told.pzxid, BigInt(due.pzxid)],
    ['ctime', told.ctime, due.ctime],
    ['mtime', told.mtime, due.mtime],
    ['version', told.version, due.version],
    ['cversion', told.cversion, due.cversion],
    ['aversion', told.aversion, due.aversion],
    ['ephemeralOwner', told.ephemeralOwner, due.ephemeralOwner],
    ['dataLength', told.dataLength, due.dataLength],
    ['numChildren', told.numChildren, due.numChildren],
  ];
  for (const [name, is, should] of fields) if (is !== should) return `${name} is ${is} instead of ${should}`;
  return null;
}

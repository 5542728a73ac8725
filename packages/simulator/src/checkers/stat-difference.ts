import type { Stat as ClientStat } from '@meerkat/client';
import type { Stat } from '@meerkat/protocol';

/** The first field in which what a client was told differs from what is due; null when none does. */
export function differenceOfStats(reported: ClientStat, due: Stat): string | null {
  const fields: readonly (readonly [string, number | bigint, number | bigint])[] = [
    ['czxid', reported.czxid, BigInt(due.czxid)],
    ['mzxid', reported.mzxid, BigInt(due.mzxid)],
    ['pzxid', reported.pzxid, BigInt(due.pzxid)],
    ['ctime', reported.ctime, due.ctime],
    ['mtime', reported.mtime, due.mtime],
    ['version', reported.version, due.version],
    ['cversion', reported.cversion, due.cversion],
    ['aversion', reported.aversion, due.aversion],
    ['ephemeralOwner', reported.ephemeralOwner, due.ephemeralOwner],
    ['dataLength', reported.dataLength, due.dataLength],
    ['numChildren', reported.numChildren, due.numChildren],
  ];
  for (const [name, is, should] of fields) if (is !== should) return `${name} is ${is} instead of ${should}`;
  return null;
}

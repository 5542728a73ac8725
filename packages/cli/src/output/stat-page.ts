import type { Stat } from '@meerkat/client';
import { age } from './age.ts';
import type { Column } from './column.ts';
import { byteCount, STAT_COLUMNS } from './stat-columns.ts';

/**
 * A Stat as a page for people: ZooKeeper's names and values, each with what it means.
 *
 * @param nowMs the clock of this machine, for ages; 1970
 */
export function statPageColumns(nowMs: number): readonly Column<Stat>[] {
  return STAT_COLUMNS.map((column) => ({
    ...column,
    text: (stat) => {
      const value = column.text?.(stat) ?? String(column.value(stat));
      const meaning = meaningOf(column.name, stat, nowMs);
      return meaning === null ? value : `${value}  (${meaning})`;
    },
  }));
}

function meaningOf(name: string, stat: Stat, nowMs: number): string | null {
  switch (name) {
    case 'ctime':
      return `created ${age(stat.ctime, nowMs)}`;
    case 'mtime':
      return stat.version === 0 ? null : `data changed ${age(stat.mtime, nowMs)}`;
    case 'ephemeralOwner':
      return ownerMeaning(stat);
    case 'dataLength':
      return stat.dataLength < 1024 ? null : byteCount(stat.dataLength);
    default:
      return null;
  }
}

/** The highest byte of a session id is the id of the server that opened the session; a lone server has none, or 0. */
function ownerMeaning({ ephemeralOwner, isEphemeral }: Stat): string {
  if (!isEphemeral) return 'not ephemeral';
  const serverId = Number(BigInt.asUintN(64, ephemeralOwner) >> 56n);
  const origin = serverId === 0 ? '' : `, opened at server ${serverId}`;
  return `ephemeral: goes with this session${origin}`;
}

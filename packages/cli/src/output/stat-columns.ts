import type { Stat } from '@meerkat/client';
import type { Column } from './column.ts';

/** A zxid or a session id, as usual: 0x10000004d. */
export function hex(value: bigint): string {
  return `0x${BigInt.asUintN(64, value).toString(16)}`;
}

/** For machines: UTC, ISO 8601. */
export function isoTime(ms: number): string | null {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/** For people: local time, to the millisecond. */
export function localTime(ms: number): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return String(ms);
  const shifted = new Date(ms - date.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 23).replace('T', ' ');
}

/** A count of bytes: 312 B, 1.5 KiB. */
export function byteCount(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ${units[unit]}`;
}

/** A number with its thousands apart. */
export function count(value: number): string {
  return value.toLocaleString('en-US');
}

/** The fields of a Stat under ZooKeeper's names. */
export const STAT_COLUMNS: readonly Column<Stat>[] = [
  { name: 'czxid', value: (stat) => hex(stat.czxid) },
  { name: 'ctime', value: (stat) => isoTime(stat.ctime), text: (stat) => localTime(stat.ctime) },
  { name: 'mzxid', value: (stat) => hex(stat.mzxid) },
  { name: 'mtime', value: (stat) => isoTime(stat.mtime), text: (stat) => localTime(stat.mtime) },
  { name: 'pzxid', value: (stat) => hex(stat.pzxid) },
  { name: 'version', value: (stat) => stat.version },
  { name: 'cversion', value: (stat) => stat.cversion },
  { name: 'aversion', value: (stat) => stat.aversion },
  { name: 'ephemeralOwner', value: (stat) => hex(stat.ephemeralOwner) },
  { name: 'dataLength', value: (stat) => stat.dataLength },
  { name: 'numChildren', value: (stat) => stat.numChildren },
];

/** The same columns for something that has a Stat; null where it has none. */
export function statColumnsOf<T>(statOf: (item: T) => Stat | null): readonly Column<T>[] {
  return STAT_COLUMNS.map(({ name, value, text }) => ({
    name,
    value: (item) => {
      const stat = statOf(item);
      return stat === null ? null : value(stat);
    },
    text: (item) => {
      const stat = statOf(item);
      return stat === null ? '' : (text?.(stat) ?? String(value(stat)));
    },
  }));
}

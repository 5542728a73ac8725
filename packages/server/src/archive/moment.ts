/** A zxid or a time, as people name one, and the zxid that a time means. */
import { hexZxid, parseZxid, type Zxid } from '@meerkat/protocol';
import { ArchiveError } from './archive-error.ts';
import type { ArchiveFiles } from './archive-files.ts';
import { scanLog } from './log-scan.ts';
import { readHistory } from './txn-history.ts';

export type Moment = { readonly kind: 'zxid'; readonly zxid: Zxid } | { readonly kind: 'time'; readonly ms: number };

/**
 * `0x100000004d` is a zxid. Times: ISO 8601 (`2025-03-01T14:05:00Z`; without a zone the local one; `2025-03-01 14:05`), a
 * time of today (`14:05`), milliseconds since 1970, `now`, or an age: `10m ago`.
 *
 * @returns null when it is neither, or a time that does not exist, such as 14:75
 */
export function parseMoment(text: string, nowMs: number): Moment | null {
  const trimmed = text.trim();
  if (/^0x[0-9a-f]{1,16}$/i.test(trimmed)) {
    const zxid = parseZxid(trimmed.slice(2).toLowerCase());
    return zxid === null ? null : { kind: 'zxid', zxid };
  }
  const time = (ms: number): Moment | null => (Number.isNaN(ms) ? null : { kind: 'time', ms });
  if (trimmed === 'now') return time(nowMs);
  if (/^\d{12,14}$/.test(trimmed)) return time(Number(trimmed));
  const [, amount, unit] = /^(\d+(?:\.\d+)?) ?(s|m|h|d)(?: ago)?$/.exec(trimmed) ?? [];
  if (amount !== undefined) return time(nowMs - Number(amount) * UNITS[unit as keyof typeof UNITS]);
  const [, hours, minutes, seconds] = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(trimmed) ?? [];
  if (hours !== undefined) {
    if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds ?? 0) > 59) return null;
    const date = new Date(nowMs);
    return time(date.setHours(Number(hours), Number(minutes), Number(seconds ?? 0), 0));
  }
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})/.exec(trimmed) ?? [];
  // `Date` takes 30 February for 2 March.
  const lastDay = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return Number(day) <= lastDay ? time(new Date(trimmed).getTime()) : null;
}

const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * The last zxid before the first txn that is later than a time. Clocks of different leaders differ, so where one has gone back it
 * is told.
 *
 * @throws ArchiveError when the log begins later
 */
export async function zxidAt(
  files: ArchiveFiles,
  ms: number,
  onWarning: (text: string) => void,
  signal?: AbortSignal,
): Promise<Zxid> {
  const after = await lastFileBegunBefore(files, ms, signal);
  let found: Zxid | null = null;
  let oldestMs: number | null = null;
  let isPast = false;
  await readHistory(
    files,
    { after, upTo: null, isStrict: false },
    {
      onTxn: (entry) => {
        oldestMs ??= entry.timeMs;
        if (entry.timeMs > ms) isPast = true;
        else if (!isPast) found = entry.zxid;
        else {
          onWarning(
            `zxid ${hexZxid(entry.zxid)} was made before ${new Date(ms).toISOString()} by the clock of its leader, and ` +
              `stands behind one that was made later: ${hexZxid(found ?? entry.zxid)} is taken, name a zxid for another`,
          );
          return false;
        }
        return true;
      },
    },
    signal,
  );
  if (found !== null) return found;
  const begin = oldestMs === null ? 'it has no txns' : `its first txn is of ${new Date(oldestMs).toISOString()}`;
  throw new ArchiveError('unusable', `${files.place} has nothing up to ${new Date(ms).toISOString()}: ${begin}`);
}

/** So that not all of a long log is read: a zxid in front of the newest file whose first txn is not later. */
async function lastFileBegunBefore(files: ArchiveFiles, ms: number, signal?: AbortSignal): Promise<Zxid> {
  const { logs } = await files.list();
  for (const { name, zxid } of logs.toReversed()) {
    await using file = await files.open(name);
    let firstMs = Number.POSITIVE_INFINITY;
    const onEntry = ({ timeMs }: { readonly timeMs: number }): boolean => {
      firstMs = timeMs;
      return false;
    };
    await scanLog(file, { onEntry }, 0, signal);
    if (firstMs <= ms) return (zxid - 1) as Zxid;
  }
  return -1 as Zxid;
}

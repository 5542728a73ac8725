/**
 * The text of limits and usage in znodes, as ZooKeeper's servers and tools write it (StatsTrack):
 *
 *     text = "count=" n ",bytes=" n ("=" (";byteHardLimit=" n)? (";countHardLimit=" n)?)?      n = -1: none
 *
 * The lone "=" makes servers that know no hard limits leave the rest alone.
 */
export interface QuotaLimits {
  /** Znodes, the one with the quota included; null: no limit. Soft limits are reported in the log of the server. */
  readonly countSoft: number | null;
  /** What goes beyond is refused, by servers with enforceQuota=true. Stands in for the soft one. */
  readonly countHard: number | null;
  /** Of data only; names count nothing. */
  readonly bytesSoft: number | null;
  readonly bytesHard: number | null;
}

export interface QuotaUsage {
  readonly count: number;
  readonly bytes: number;
}

export const NO_LIMITS: QuotaLimits = { countSoft: null, countHard: null, bytesSoft: null, bytesHard: null };

/** What a new znode of usage holds until the server has counted, which it does at once. */
export const NO_USAGE = 'count=0,bytes=0';

/** Any client may have written it: a value that is not a number counts as no limit, as in the servers. */
export function parseLimits(text: string): QuotaLimits {
  const values = parseTrack(text);
  const limit = (key: string): number | null => {
    const value = values.get(key);
    return value === undefined || value < 0 ? null : value;
  };
  return {
    countSoft: limit('count'),
    countHard: limit('countHardLimit'),
    bytesSoft: limit('bytes'),
    bytesHard: limit('byteHardLimit'),
  };
}

export function formatLimits({ countSoft, countHard, bytesSoft, bytesHard }: QuotaLimits): string {
  const soft = `count=${countSoft ?? -1},bytes=${bytesSoft ?? -1}`;
  if (countHard === null && bytesHard === null) return soft;
  const bytes = bytesHard === null ? '' : `;byteHardLimit=${bytesHard}`;
  const count = countHard === null ? '' : `;countHardLimit=${countHard}`;
  return `${soft}=${bytes}${count}`;
}

/** @returns null when the text is no usage */
export function parseUsage(text: string): QuotaUsage | null {
  const values = parseTrack(text);
  const count = values.get('count');
  const bytes = values.get('bytes');
  return count === undefined || bytes === undefined ? null : { count, bytes };
}

export function hasLimit(limits: QuotaLimits): boolean {
  return Object.values(limits).some((limit) => limit !== null);
}

function parseTrack(text: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  for (const pair of text.split(/[,;]+/)) {
    const match = /^(\w+)=(-?\d{1,15})=?$/.exec(pair);
    if (match !== null) values.set(match[1] ?? '', Number(match[2]));
  }
  return values;
}

const UNITS: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
];

/** How long ago something was, for people: `3 min ago`. A time ahead, by the clock of this machine, is `in 3 min`. */
export function age(ms: number, nowMs: number): string {
  const distanceMs = Math.abs(nowMs - ms);
  const unit = UNITS.find(([unitMs]) => distanceMs >= unitMs);
  if (unit === undefined) return 'now';
  const length = `${Math.floor(distanceMs / unit[0])} ${unit[1]}`;
  return ms <= nowMs ? `${length} ago` : `in ${length}`;
}

import { InvocationFailure } from '../run/command-failure.ts';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Reads a time: `500ms`, `10s`, `1.5m`, `2h`, `1d`. A number alone is refused, since half of the world means seconds by it.
 *
 * @param origin what it belongs to, for the error: `--timeout`
 * @returns milliseconds, at least 1
 */
export function parseDuration(text: string, origin: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|min|h|d)$/.exec(text.trim());
  const ms = match === null ? Number.NaN : Math.round(Number(match[1]) * (UNITS[match[2] ?? ''] ?? Number.NaN));
  if (ms >= 1 && Number.isSafeInteger(ms)) return ms;
  const unit = /^\d+$/.test(text.trim()) ? `; say ${text.trim()}s or ${text.trim()}ms` : '';
  throw new InvocationFailure(`${origin}: expected a time such as 500ms, 10s or 2m, found "${text}"${unit}`);
}

/** The same; a number alone is milliseconds, as zkCli has them. */
export function parseTtl(text: string): number {
  return parseDuration(/^\d+$/.test(text) ? `${text}ms` : text, '--ttl');
}

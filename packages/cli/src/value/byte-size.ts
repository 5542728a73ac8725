import { InvocationFailure } from '../run/command-failure.ts';

const FACTORS: Readonly<Record<string, number>> = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 };

/**
 * Reads a number of bytes: `512`, `10k`, `1.5M`, `1 MiB`; k, M and G are powers of 1024.
 *
 * @param origin what it belongs to, for the error: `--larger`
 */
export function parseByteSize(text: string, origin: string): number {
  const match = /^(\d+(?:\.\d+)?) ?([kmg]?)(?:i?b)?$/i.exec(text.trim());
  const bytes =
    match === null ? Number.NaN : Math.round(Number(match[1]) * (FACTORS[match[2]?.toLowerCase() ?? ''] ?? 1));
  if (Number.isSafeInteger(bytes)) return bytes;
  throw new InvocationFailure(`${origin}: expected a size such as 512, 10k or 1M, found "${text}"`);
}

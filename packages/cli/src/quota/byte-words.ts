import { InvocationFailure } from '../run/command-failure.ts';

const UNITS: Readonly<Record<string, number>> = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 };

/** A limit of znodes: a whole number from 1 on. @returns null for none */
export function parseCountLimit(text: string, origin: string): number | null {
  if (isNone(text)) return null;
  if (/^\d{1,10}$/.test(text) && Number(text) >= 1) return Number(text);
  throw new InvocationFailure(`${origin}: expected a number of znodes from 1 on, or none, found "${text}"`);
}

/** A limit of bytes: 5000, 64K, 10MiB; K, M and G are powers of 1024. @returns null for none */
export function parseBytesLimit(text: string, origin: string): number | null {
  if (isNone(text)) return null;
  const match = /^(\d{1,12})([kmg]?)(?:ib)?$/i.exec(text);
  const bytes = match === null ? 0 : Number(match[1]) * (UNITS[(match[2] ?? '').toLowerCase()] ?? 1);
  if (bytes >= 1 && bytes < 1e15) return bytes;
  throw new InvocationFailure(
    `${origin}: expected a number of bytes such as 5000, 64K or 10M, or none, found "${text}"`,
  );
}

/** zkCli writes −1. */
function isNone(text: string): boolean {
  return text === 'none' || text === '-1';
}

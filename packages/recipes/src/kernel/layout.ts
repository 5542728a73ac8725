import type { Surroundings } from '@meerkat/client';

/** The library whose znode layout a recipe uses, for a fleet that shares them with its users. */
export type Layout = 'curator' | 'kazoo';

/** For layouts from a file or the environment, which no compiler checks. @throws RangeError */
export function checkLayout<Name extends string>(layout: Name, known: readonly Name[]): void {
  if (known.includes(layout)) return;
  const names = known.map((name) => `'${name}'`).join(', ');
  throw new RangeError(`there is no layout '${layout}' here; there are ${names}`);
}

export const LAYOUTS: readonly Layout[] = ['curator', 'kazoo'];

/**
 * The prefix of a znode's name by which its creator finds it again, in the form of each library.
 *
 *     curator   _c_5b2f9d0e-5e3b-4f0a-9a44-0c6f3a9f7d21-lock-0000000007
 *     kazoo     5b2f9d0e5e3b4f0a9a440c6f3a9f7d21__lock__0000000007
 */
export function makeMark(layout: Layout, random: Surroundings['random']): string {
  return layout === 'kazoo' ? makeUuidHex(random) : `_c_${makeUuid(random)}-`;
}

/** A random UUID in its usual form, with hyphens. */
export function makeUuid(random: Surroundings['random']): string {
  const hex = makeUuidHex(random);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** A random UUID (RFC 9562, version 4) as 32 hexadecimal digits. */
export function makeUuidHex(random: Surroundings['random']): string {
  let hex = '';
  for (let i = 0; i < 4; i++) hex += random.uint32().toString(16).padStart(8, '0');
  const variant = '89ab'.charAt(Number.parseInt(hex.charAt(16), 16) & 3);
  return `${hex.slice(0, 12)}4${hex.slice(13, 16)}${variant}${hex.slice(17)}`;
}

import { textBytes } from '@meerkat/protocol';
import type { Identity } from '../base/ports.ts';

/**
 * Maximum number of identities of a connection.
 *
 * Each request is checked against all of them, an `auth` ACL entry stands for all of them, and a learner sends all of
 * them with each write, in a packet that must not be too large for its leader.
 */
export const IDENTITIES_MAX = 100;
const IDENTITY_BYTES_MAX = 64 * 1024;

/**
 * Adds identities to those of a connection.
 *
 * @param frameBytesMax `jute.maxbuffer`: also limits the total length of all schemes and ids
 * @returns null when there are too many or they are too long
 */
export function addIdentities(
  known: readonly Identity[],
  added: readonly Identity[],
  frameBytesMax: number,
): readonly Identity[] | null {
  const fresh = added.filter((a) => !known.some((k) => k.scheme === a.scheme && k.id === a.id));
  if (fresh.length === 0) return known;
  const all = [...known, ...fresh];
  let bytes = 0;
  for (const { scheme, id } of all) bytes += textBytes(scheme) + textBytes(id);
  return all.length > IDENTITIES_MAX || bytes > Math.min(IDENTITY_BYTES_MAX, frameBytesMax) ? null : all;
}

import { textBytes } from '@meerkat/protocol';
import type { Identity } from '../base/ports.ts';

/**
 * As what a connection may be known at most.
 *
 * Each of its requests is checked for all of them, an `auth` entry of an ACL stands for all of them, and a learner sends
 * all of them with each write: a packet that its leader must not refuse.
 */
export const IDENTITIES_MAX = 100;
const IDENTITY_BYTES_MAX = 64 * 1024;

/**
 * What a connection is known as, once it has shown to be some more.
 *
 * @param frameBytesMax `jute.maxbuffer`: all schemes and ids together are not longer either
 * @returns null when that is too many or too long
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

import type { Stat } from '@meerkat/client';
import type { ContenderInfo } from '../api/messages.ts';

/** A znode of a line or a barrier. */
export interface LineZnode {
  readonly name: string;
  readonly data: Uint8Array;
  readonly stat: Stat;
}

/** @param addresses of clients by session, as far as servers report */
export function describeContender(
  { name, data, stat }: LineZnode,
  addresses: ReadonlyMap<string, string>,
  place: Pick<ContenderInfo, 'isHolder' | 'waitsFor'>,
): ContenderInfo {
  const session = ownerOf(stat);
  return {
    name,
    session,
    client: session === null ? null : (addresses.get(session) ?? null),
    sinceMs: stat.ctime,
    token: `0x${stat.czxid.toString(16)}`,
    data: shown(data),
    ...place,
  };
}

function ownerOf({ ephemeralOwner }: Stat): string | null {
  return ephemeralOwner === 0n ? null : `0x${BigInt.asUintN(64, ephemeralOwner).toString(16)}`;
}

/** Contenders mostly write text into their znodes: a host, a process. */
function shown(data: Uint8Array): string {
  return new TextDecoder()
    .decode(data.subarray(0, 240))
    .replace(/\p{Cc}+/gu, ' ')
    .slice(0, 80);
}

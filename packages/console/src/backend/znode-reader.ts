import {
  type AclOfZnode,
  type Client,
  formatPerms,
  NoAuthError,
  NoNodeError,
  nullableBytes,
  parentOf,
  type Stat,
  ZooKeeperError,
} from '@meerkat/client';
import type { AclEntry, QuotaInfo, StatInfo, ZnodeInfo } from '../api/messages.ts';

export interface Call {
  readonly timeoutMs: number;
}

/** The identities of a session at a server; null: it does not tell. */
export type Identities = ZnodeInfo['identities'];

/** Everything that is displayed of a znode. @throws NoNodeError, NoAuthError */
export async function readZnode(
  { client, identities }: { readonly client: Client; readonly identities: Identities },
  path: string,
  call: Call,
): Promise<ZnodeInfo> {
  const [{ data, stat }, acl, quota] = await Promise.all([
    client.get(path, { ...call, codec: nullableBytes }),
    readAcl(client, path, call),
    readQuota(client, path, call),
  ]);
  return {
    path,
    data: data === null ? null : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'),
    stat: statInfo(stat),
    acl,
    identities,
    quota,
  };
}

export function statInfo(stat: Stat): StatInfo {
  return stat.toJSON();
}

async function readAcl(client: Client, path: string, call: Call): Promise<readonly AclEntry[] | null> {
  try {
    return aclEntries((await client.getAcl(path, call)).acl);
  } catch (error) {
    if (error instanceof NoAuthError) return null;
    throw error;
  }
}

export function aclEntries(acl: AclOfZnode['acl']): AclEntry[] {
  return acl.map(({ perms, scheme, id }) => ({ perms: formatPerms(perms), scheme: scheme ?? '', id: id ?? '' }));
}

/** Servers before 3.7 do not tell, and close the connection. */
export async function readIdentities(client: Client, call: Call): Promise<Identities> {
  try {
    const identities = await client.whoAmI(call);
    return identities.map(({ scheme, user }) => ({ scheme, id: user }));
  } catch (error) {
    if (error instanceof ZooKeeperError) return null;
    throw error;
  }
}

/** The quota at the znode or at the nearest ancestor with one; ZooKeeper does not allow nested quotas. */
async function readQuota(client: Client, path: string, call: Call): Promise<QuotaInfo | null> {
  for (let at = path; at !== '/'; at = parentOf(at) || '/') {
    const place = `/zookeeper/quota${at}`;
    try {
      const [limits, stats] = await Promise.all([
        client.get(`${place}/zookeeper_limits`, call),
        client.get(`${place}/zookeeper_stats`, call),
      ]);
      const limit = parseFields(limits.data);
      const stat = parseFields(stats.data);
      return {
        path: at,
        countMax: limit('count'),
        countHardMax: limit('countHardLimit'),
        bytesMax: limit('bytes'),
        bytesHardMax: limit('byteHardLimit'),
        count: stat('count'),
        bytes: stat('bytes'),
      };
    } catch (error) {
      if (error instanceof NoNodeError) continue;
      if (error instanceof NoAuthError) return null;
      throw error;
    }
  }
  return null;
}

/** `count=5,bytes=-1=;byteHardLimit=-1;countHardLimit=9`, as written by Apache's StatsTrack; -1 for missing fields. */
function parseFields(data: Uint8Array): (name: string) => number {
  const text = new TextDecoder().decode(data);
  const fields = new Map(text.split(/[,;]/).map((field) => field.split('=', 2) as [string, string]));
  return (name) => Math.max(-1, Number(fields.get(name) ?? -1));
}

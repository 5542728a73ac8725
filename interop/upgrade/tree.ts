import type { Client } from '@meerkat/client';

/** One znode with all fields visible to clients; 64-bit numbers as text. */
export interface DumpedZnode {
  readonly path: string;
  readonly data: string;
  readonly acl: readonly unknown[];
  readonly stat: Readonly<Record<string, string>>;
}

/** All znodes, sorted by path, except the server list, which each server creates at start. @param client needs READ */
export async function dumpTree(client: Client): Promise<readonly DumpedZnode[]> {
  const znodes: DumpedZnode[] = [];
  const visit = async (path: string): Promise<void> => {
    if (path === '/zookeeper/config') return;
    const { data, stat } = await client.get(path);
    const { acl } = await client.getAcl(path);
    const fields = [
      'czxid',
      'mzxid',
      'pzxid',
      'ctime',
      'mtime',
      'version',
      'cversion',
      'aversion',
      'ephemeralOwner',
    ] as const;
    znodes.push({
      path,
      data: Buffer.from(data ?? []).toString('base64'),
      acl: acl.map((entry) => JSON.parse(JSON.stringify(entry)) as unknown),
      stat: Object.fromEntries(fields.map((field) => [field, String(stat[field])])),
    });
    const { children } = await client.children(path);
    for (const child of children.toSorted()) await visit(path === '/' ? `/${child}` : `${path}/${child}`);
  };
  await visit('/');
  return znodes;
}

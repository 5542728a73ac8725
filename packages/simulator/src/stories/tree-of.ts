import type { Acl, Client, Stat } from '@meerkat/client';
import { expect } from 'vitest';
import type { VirtualServer } from '../virtual-server.ts';
import type { Stage } from './stage.ts';

export interface ZnodeOfTree {
  readonly data: string;
  readonly stat: Stat;
  readonly acl: readonly Acl[];
}

/** Everything that a server shows of its own tree, by path. */
export async function treeOf(client: Client): Promise<Record<string, ZnodeOfTree>> {
  const tree: Record<string, ZnodeOfTree> = {};
  const paths = ['/'];
  for (const path of paths) {
    const { data, stat } = await client.get(path);
    const { acl } = await client.getAcl(path);
    // Ballast is long.
    tree[path] = { data: new TextDecoder().decode(data.subarray(0, 100)), stat, acl };
    const { children } = await client.children(path);
    for (const name of children.toSorted()) paths.push(path === '/' ? `/${name}` : `${path}/${name}`);
  }
  return tree;
}

/** All running servers show the same znodes, including every field of the stat, and know the same sessions and ephemerals. */
export async function expectSameTrees(stage: Stage): Promise<void> {
  const servers = stage.servers.filter(({ isRunning }) => isRunning);
  for (const server of servers) await stage.at(server);
  await stage.whole();
  const [first, ...others] = servers;
  if (first === undefined) return;
  const expected = { ...viewOf(first), tree: comparable(await treeOf(await stage.at(first))) };
  for (const server of others) {
    expect({ ...viewOf(server), tree: comparable(await treeOf(await stage.at(server))) }).toEqual(expected);
  }
}

/** Each server writes the membership into its tree by itself, and says when. */
function comparable(tree: Record<string, ZnodeOfTree>): object {
  const config = tree[CONFIG_PATH];
  if (config === undefined) return tree;
  return { ...tree, [CONFIG_PATH]: { ...config, stat: { ...config.stat, mtime: null } } };
}

const CONFIG_PATH = '/zookeeper/config';

function viewOf({ core }: VirtualServer): object {
  const sessions = (core?.view.sessions() ?? []).map(({ id, timeoutMs }) => `${id} ${timeoutMs}`);
  const ephemerals = (core?.view.sessionsWithEphemerals() ?? []).map(
    (id) => `${id} ${[...(core?.view.ephemeralsOf(id) ?? [])].sort().join(' ')}`,
  );
  return { sessions: sessions.toSorted(), ephemerals: ephemerals.toSorted() };
}

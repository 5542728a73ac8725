import type { ClusterSession } from './cluster-session.ts';

/** The id of the ZooKeeper session of a page, formatted as by servers; null while there is none. */
export function sessionIdOf({ client }: Pick<ClusterSession, 'client'>): string | null {
  const id = client.session?.id;
  return id === undefined ? null : `0x${BigInt.asUintN(64, id).toString(16)}`;
}

import { type Client, joinPath, NoNodeError, retryClassOf, ZooKeeperError } from '@meerkat/client';
import { Attempt } from './attempt.ts';
import { ignoreMissing } from './failures.ts';

/*
 * A cancelled recipe must not leave its znode behind, even if there is no connection at that moment: others would wait
 * for it as long as the session lives. A session that counted as lost here may come back as the same session, with all
 * its ephemeral znodes. So removal continues until the znode is gone, or the session that owns it is over.
 */

/** Why the service refuses to delete a znode, which then stays as long as its session; null when it is gone. */
export type Refusal = ZooKeeperError | null;

/** Others would wait for it, so the call rejects. */
export function throwRefusal(refusal: Refusal): void {
  if (refusal !== null) throw refusal;
}

/**
 * Deletes an ephemeral znode, however often the connection is lost. Never rejects.
 *
 * @param sessionId the session that created it, with which the znode ends anyway
 * @returns once it is gone, or is going to be deleted with its session
 */
export function removeZnode(client: Client, path: string, sessionId: bigint): Promise<Refusal> {
  return persist(client, sessionId, () => client.delete(path));
}

/**
 * The same for a znode whose name others use, too: an earlier attempt whose reply was lost may have deleted ours, and
 * another client may have created one since. So it checks before it deletes.
 *
 * @param czxid of our znode
 */
export function removeIfOurs(client: Client, path: string, sessionId: bigint, czxid: bigint): Promise<Refusal> {
  return persist(client, sessionId, async () => {
    const stat = await client.exists(path, { read: 'linearizable' });
    if (stat?.czxid === czxid) await client.delete(path);
  });
}

/** The same for a znode of which only the name prefix is known, or whose creation is in doubt. */
export function removeMarked(client: Client, parent: string, mark: string, sessionId: bigint): Promise<Refusal> {
  return persist(client, sessionId, async () => {
    const { children } = await client.children(parent, { read: 'linearizable' });
    const names = children.filter((name) => name.startsWith(mark));
    // A missing one says nothing about the others.
    await Promise.all(names.map((name) => client.delete(joinPath(parent, name)).catch(ignoreMissing)));
  });
}

/** Retries until it succeeds, the znode does not exist, or it cannot exist any longer. Never rejects. */
export async function persist(client: Client, sessionId: bigint, remove: () => Promise<void>): Promise<Refusal> {
  const attempt = new Attempt(client, {}, ABOUT, { awaitsQuorum: true });
  try {
    await attempt.through(async () => {
      await client.whenConnected();
      if (client.session?.id === sessionId) await remove();
    });
    return null;
  } catch (error) {
    const isRefusal = error instanceof ZooKeeperError && retryClassOf(error) === 'refused';
    return isRefusal && !(error instanceof NoNodeError) ? error : null;
  }
}

/** Of unreported errors. */
const ABOUT = { operation: 'remove', path: null } as const;

import {
  type CallOptions,
  type Client,
  ClosedError,
  type Data,
  joinPath,
  NoNodeError,
  nameOf,
  parentOf,
  SessionLostError,
  ZooKeeperError,
} from '@meerkat/client';
import { makeMark } from './layout.ts';
import { removeMarked, removeZnode } from './locks/removal.ts';
import { isPassing, type Wait } from './wait.ts';

/** An ephemeral znode that a recipe has made in the session that stands. */
export interface OwnEphemeral {
  readonly path: string;
  readonly sessionId: bigint;
  /** Of its data, as it was created. */
  readonly version: number;
  /** The client's signal of the loss of that session. */
  readonly lost: AbortSignal;
}

/**
 * Creates a protected ephemeral znode, once. Of one that may have come to be although this rejects (`outcome: 'unknown'`)
 * nothing stays behind, also when the session counted as lost and came back.
 *
 * @param mark what its name begins with, and no other
 * @throws what `createProtected` throws; SessionLostError of outcome 'unknown' when the session was lost meanwhile, ClosedError
 *   when the client is being closed
 */
export async function createOwn(
  client: Client,
  path: string,
  data: Data,
  isSequential: boolean,
  wait: Wait,
  mark: string = makeMark('curator', client.surroundings.random),
): Promise<OwnEphemeral> {
  const before = client.session?.id;
  const lost = client.lostSignal;
  try {
    const shape = { mode: 'ephemeral', sequential: isSequential, mark } as const;
    const { path: made, stat } = await client.createProtected(path, data, { ...shape, ...wait.next() });
    const sessionId = stat.ephemeralOwner;
    if (!client.lostSignal.aborted && client.session?.id === sessionId) {
      // The signal of the session that made it, which may have begun after the call.
      const own = lost.aborted ? client.lostSignal : lost;
      return { path: made, sessionId, version: stat.version, lost: own };
    }
    void removeZnode(client, made, sessionId);
    const about = { operation: 'createProtected', path, outcome: 'unknown' } as const;
    if (client.lostSignal.reason instanceof ClosedError) throw new ClosedError(about);
    throw new SessionLostError({ ...about, detail: `the session that made ${nameOf(made)} was lost` });
  } catch (error) {
    if (error instanceof ZooKeeperError && error.outcome === 'unknown') {
      const sessionIds = new Set([before, client.session?.id]);
      for (const id of sessionIds) if (id !== undefined) void removeMarked(client, parentOf(path), mark, id);
    }
    throw error;
  }
}

/** Makes the parent of a znode; it may be there already. */
export type MakeParent = (call: CallOptions) => Promise<void>;

/**
 * The same in a container that is made where it is missing, and again until one stands: for a znode of which nobody minds
 * that there may have been others before.
 */
export async function standOwn(
  client: Client,
  parent: string,
  name: string,
  isSequential: boolean,
  wait: Wait,
  makeParent: MakeParent = (call) => client.ensurePath(parent, { ...call, mode: 'container' }),
): Promise<OwnEphemeral> {
  for (;;) {
    try {
      return await createOwn(client, joinPath(parent, name), '', isSequential, wait);
    } catch (error) {
      if (error instanceof NoNodeError) {
        await wait.through(makeParent);
      } else if (isPassing(error)) await wait.recover();
      else throw error;
    }
  }
}

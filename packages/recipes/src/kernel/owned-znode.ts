import {
  type Acl,
  type CallOptions,
  type Client,
  ClosedError,
  type Data,
  NoNodeError,
  nameOf,
  parentOf,
  SessionLostError,
  type Stat,
  ZooKeeperError,
} from '@meerkat/client';
import type { Attempt } from './attempt.ts';
import { makeMark as makeMarkOf } from './layout.ts';
import { removeMarked, removeZnode } from './removal.ts';

/*
 * A protected ephemeral znode: a place in a line, the ownership of something, a presence.
 *
 *     create   under a unique mark
 *     claim    after a lost reply the mark shows whether it exists (`createProtected`); it counts only in the session
 *              that created it
 *     remove   whenever it may have been created and is not ours, retrying without a limit: also when the session
 *              counted as lost and comes back with it
 */

/** Created by us, in the session of that time. */
export interface OwnedZnode {
  readonly path: string;
  /** As returned by its creation. */
  readonly stat: Stat;
  /** The client's signal for the loss of the session that created it. */
  readonly lost: AbortSignal;
}

export interface OwnedZnodeOptions {
  readonly data?: Data | undefined;
  readonly acl?: readonly Acl[] | undefined;
  readonly sequential?: boolean | undefined;
  /** Generates the prefix of its name, unique to it. Default: in Curator's form. */
  readonly makeMark?: (() => string) | undefined;
}

/**
 * Creates one, once. A znode that may have been created although this rejects is removed.
 *
 * Each call has its own mark: the removal of a znode in doubt may come late, and would delete what a later call has
 * created under the same mark.
 *
 * @param path its last name is prefixed with the mark
 * @throws what `createProtected` throws; SessionLostError of outcome 'unknown' when the session was lost meanwhile,
 *   ClosedError when the client is being closed
 */
export async function createOwned(
  client: Client,
  path: string,
  options: OwnedZnodeOptions,
  call: CallOptions,
): Promise<OwnedZnode> {
  const owned = await createMarked(client, path, options, call);
  const { stat } = owned;
  if (!client.lostSignal.aborted && client.session?.id === stat.ephemeralOwner) return owned;
  void removeZnode(client, owned.path, stat.ephemeralOwner);
  const about = { operation: 'createProtected', path, outcome: 'unknown' } as const;
  if (client.lostSignal.reason instanceof ClosedError) throw new ClosedError(about);
  throw new SessionLostError({ ...about, detail: `the session that made ${nameOf(owned.path)} was lost` });
}

/** The same, whatever has become of the session since: see `lost`. */
export async function createMarked(
  client: Client,
  path: string,
  options: OwnedZnodeOptions,
  call: CallOptions,
): Promise<OwnedZnode> {
  const { data, acl, sequential, makeMark = () => makeMarkOf('curator', client.surroundings.random) } = options;
  const mark = makeMark();
  const before = { sessionId: client.session?.id, lost: client.lostSignal };
  try {
    const shape = { mode: 'ephemeral', acl, sequential, mark } as const;
    const made = await client.createProtected(path, data, { ...shape, ...call });
    // The session may have begun after the call, or have been uncertain and be certain again.
    const isPresent = client.session?.id === made.stat.ephemeralOwner;
    return { ...made, lost: isPresent ? client.lostSignal : before.lost };
  } catch (error) {
    const isDoubtful = error instanceof ZooKeeperError && error.outcome === 'unknown';
    const sessionIds = isDoubtful ? new Set([before.sessionId, client.session?.id]) : [];
    for (const id of sessionIds) if (id !== undefined) void removeMarked(client, parentOf(path), mark, id);
    throw error;
  }
}

/** Retries until one exists. @param makeParent creates the parent where it is missing; it may exist by then */
export async function standOwned(
  attempt: Attempt,
  path: string,
  options: OwnedZnodeOptions,
  makeParent: (call: CallOptions) => Promise<void>,
): Promise<OwnedZnode> {
  const { client } = attempt;
  for (;;) {
    try {
      return await attempt.through((call) => createOwned(client, path, options, call));
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
      await attempt.through(makeParent);
    }
  }
}

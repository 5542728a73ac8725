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
 * A protected ephemeral znode: what a recipe makes to stand in a line, to hold something, to count as present.
 *
 *     create   under a mark that is unique
 *     claim    after a lost reply the mark says whether it is there (`createProtected`); it counts only in the session that
 *              made it
 *     remove   whenever it may have come to be and is not ours, as long as it takes: also when the session counted as lost and
 *              comes back with it
 */

/** Made by us, in the session that stood then. */
export interface OwnedZnode {
  readonly path: string;
  /** As its creation told it. */
  readonly stat: Stat;
  /** The client's signal of the loss of the session that made it. */
  readonly lost: AbortSignal;
}

export interface OwnedZnodeOptions {
  readonly data?: Data | undefined;
  readonly acl?: readonly Acl[] | undefined;
  readonly sequential?: boolean | undefined;
  /** Makes what its name begins with, and no other. Default: in the form of Curator. */
  readonly makeMark?: (() => string) | undefined;
}

/**
 * Creates one, once. Of a znode that may have come to be although this rejects nothing stays behind.
 *
 * Each call has a mark of its own: the removal of a znode that is in doubt may come late, and would take away what a later call
 * has made under the same one.
 *
 * @param path of which the last name gets the mark in front
 * @throws what `createProtected` throws; SessionLostError of outcome 'unknown' when the session was lost meanwhile, ClosedError
 *   when the client is being closed
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

/** The same, whatever has become of the session since: `lost` says so. */
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
    // The session may have begun after the call, or have been doubted and be certain since.
    const isPresent = client.session?.id === made.stat.ephemeralOwner;
    return { ...made, lost: isPresent ? client.lostSignal : before.lost };
  } catch (error) {
    const isDoubtful = error instanceof ZooKeeperError && error.outcome === 'unknown';
    const sessionIds = isDoubtful ? new Set([before.sessionId, client.session?.id]) : [];
    for (const id of sessionIds) if (id !== undefined) void removeMarked(client, parentOf(path), mark, id);
    throw error;
  }
}

/** The same, until one stands. @param makeParent creates the parent where it is missing; it may be there by then */
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

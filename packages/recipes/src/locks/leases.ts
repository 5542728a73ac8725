import {
  type Acl,
  BadArgumentsError,
  type Budget,
  type Client,
  type Data,
  joinPath,
  NodeExistsError,
  NoNodeError,
  text,
  ZooKeeperError,
} from '@meerkat/client';
import { type Layout, makeMark } from '../layout.ts';
import { canBeginAnew, PAUSE_MS } from './contender.ts';
import type { OwnZnode } from './holding.ts';
import { removeMarked, removeZnode } from './removal.ts';

/**
 * Where the leases of a semaphore are.
 *
 *     curator                                   kazoo
 *     /limits/reports                           /limits/reports              data: how many leases there are
 *       locks/_c_<uuid>-lock-<number>             <uuid>                     a lease
 *       leases/_c_<uuid>-lease-<number>         /limits/reports-__lock__
 *                                                 <uuid>__lock__<number>
 */
export interface Leases {
  /** The parent of the leases. */
  readonly path: string;
  readonly lockPath: string;
  /** Curator makes the znode of a lease first, and then waits until there are not too many; kazoo the other way round. */
  readonly countsOwn: boolean;
  /** Makes what must be there before. @throws BadArgumentsError when others say another number of leases */
  prepare(budget: Budget): Promise<void>;
  /** null when it was lost at once. */
  create(budget: Budget): Promise<OwnLease | null>;
}

export interface OwnLease extends OwnZnode {
  /** Aborts when the session that made it may be over. */
  readonly lost: AbortSignal;
}

interface LeaseOptions {
  readonly layout: Layout;
  readonly leasesMax: number;
  readonly data: Data | undefined;
  readonly acl: readonly Acl[] | undefined;
}

export function makeLeases(client: Client, path: string, options: LeaseOptions): Leases {
  const isCurator = options.layout === 'curator';
  const parent = isCurator ? joinPath(path, 'leases') : path;
  return {
    path: parent,
    lockPath: isCurator ? joinPath(path, 'locks') : `${path}-__lock__`,
    countsOwn: isCurator,
    prepare: isCurator ? () => Promise.resolve() : (budget) => prepareKazoo(client, path, options, budget),
    create: (budget) => create(client, parent, options, budget),
  };
}

async function create(client: Client, parent: string, options: LeaseOptions, budget: Budget): Promise<OwnLease | null> {
  const { layout, data, acl } = options;
  const isCurator = layout === 'curator';
  for (;;) {
    // Of each attempt: the removal of one that is in doubt may come late, and would take away what a later one has made.
    const mark = makeMark(layout, client.surroundings.random);
    const sessionId = client.session?.id;
    // kazoo's lease is the mark alone.
    const name = isCurator ? 'lease-' : mark.slice(-KAZOO_REST);
    const shape = {
      mode: 'ephemeral',
      sequential: isCurator,
      acl,
      mark: isCurator ? mark : mark.slice(0, -KAZOO_REST),
    } as const;
    try {
      const own = await client.createProtected(joinPath(parent, name), data, { ...shape, ...budget.next() });
      const lost = client.lostSignal;
      if (!lost.aborted && client.session?.id === own.stat.ephemeralOwner) return { ...own, lost };
      void removeZnode(client, own.path, own.stat.ephemeralOwner);
      return null;
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
      if (error.outcome === 'unknown') {
        for (const id of new Set([sessionId, client.session?.id])) {
          if (id !== undefined) void removeMarked(client, parent, mark, id);
        }
      }
      if (!(error instanceof NoNodeError) || !isCurator) throw error;
      await client.ensurePath(parent, { mode: 'container', acl, ...budget.next() });
    }
  }
}

/** The number of leases stands in the znode; who comes first writes it. Goes through lost connections and sessions. */
async function prepareKazoo(client: Client, path: string, options: LeaseOptions, budget: Budget): Promise<void> {
  const { leasesMax, acl } = options;
  for (;;) {
    try {
      const { data } = await client.get(path, { ...budget.next(), codec: text });
      const stored = /^\s*[+-]?\d+\s*$/.test(data) ? Number(data) : null;
      if (stored === null || stored === leasesMax) return;
      const detail = `the znode says that there are ${stored} leases, not ${leasesMax}`;
      throw new BadArgumentsError({ operation: 'Semaphore', path, detail });
    } catch (error) {
      if (canBeginAnew(error)) {
        await recover(client, budget);
        continue;
      }
      if (!(error instanceof NoNodeError)) throw error;
    }
    try {
      await client.createParents(path, String(leasesMax), { acl, ...budget.next() });
      return;
    } catch (error) {
      // Somebody was quicker, or the answer was lost: the znode tells.
      if (canBeginAnew(error)) await recover(client, budget);
      else if (!(error instanceof NodeExistsError)) throw error;
    }
  }
}

async function recover(client: Client, budget: Budget): Promise<void> {
  await budget.pause(PAUSE_MS);
  await client.whenConnected(budget.next());
}

/** How much of a lease's name is not the mark: a name cannot be empty. */
const KAZOO_REST = 8;

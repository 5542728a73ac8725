import { BadArgumentsError, type CallOptions, joinPath, text } from '@meerkat/client';
import type { Attempt } from '../kernel/attempt.ts';
import { ignoreExisting, nullIfMissing } from '../kernel/failures.ts';
import { makeMark } from '../kernel/layout.ts';
import { type OwnedZnode, standOwned } from '../kernel/owned-znode.ts';
import type { SharedLockSettings } from '../kernel/settings.ts';

/**
 * The layout of a semaphore's leases.
 *
 *     curator                                   kazoo
 *     /limits/reports                           /limits/reports              data: the number of leases
 *       locks/_c_<uuid>-lock-<number>             <uuid>                     a lease
 *       leases/_c_<uuid>-lease-<number>         /limits/reports-__lock__
 *                                                 <uuid>__lock__<number>
 */
export interface Leases {
  /** The parent of the leases. */
  readonly path: string;
  readonly lockPath: string;
  /**
   * Curator creates the znode of a lease first, and then waits until there are not too many; kazoo does the reverse.
   */
  readonly countsOwn: boolean;
  /** Creates what is required before. @throws BadArgumentsError when others use another number of leases */
  prepare(attempt: Attempt): Promise<void>;
  create(attempt: Attempt): Promise<OwnedZnode>;
}

interface LeaseOptions extends SharedLockSettings {
  readonly leasesMax: number;
}

export function makeLeases(path: string, options: LeaseOptions): Leases {
  const isCurator = options.layout === 'curator';
  const parent = isCurator ? joinPath(path, 'leases') : path;
  return {
    path: parent,
    lockPath: isCurator ? joinPath(path, 'locks') : `${path}-__lock__`,
    countsOwn: isCurator,
    prepare: isCurator ? () => Promise.resolve() : (attempt) => prepareKazoo(path, options, attempt),
    create: (attempt) => (isCurator ? createCurator(parent, options, attempt) : createKazoo(parent, options, attempt)),
  };
}

function createCurator(parent: string, { data, acl }: LeaseOptions, attempt: Attempt): Promise<OwnedZnode> {
  return standOwned(attempt, joinPath(parent, 'lease-'), { data, acl, sequential: true }, (call) =>
    attempt.client.ensurePath(parent, { mode: 'container', acl, ...call }),
  );
}

/** kazoo's lease is named by the mark alone. A part of it is not used as the mark, as a name cannot be empty. */
function createKazoo(parent: string, options: LeaseOptions, attempt: Attempt): Promise<OwnedZnode> {
  const { data, acl } = options;
  const { random } = attempt.client.surroundings;
  const makeShortMark = (): string => makeMark('kazoo', random).slice(0, -KAZOO_REST);
  const path = joinPath(parent, makeMark('kazoo', random).slice(-KAZOO_REST));
  return standOwned(attempt, path, { data, acl, makeMark: makeShortMark }, () =>
    prepareKazoo(parent, options, attempt),
  );
}

/** The number of leases is in the znode; the first client writes it. */
async function prepareKazoo(path: string, { leasesMax, acl }: LeaseOptions, attempt: Attempt): Promise<void> {
  const { client } = attempt;
  for (;;) {
    const found = await attempt.through((call) => client.get(path, { ...call, codec: text }).catch(nullIfMissing));
    if (found === null) {
      // Another client may be faster: the znode shows it.
      const create = (call: CallOptions): Promise<unknown> =>
        client.createParents(path, String(leasesMax), { acl, ...call }).catch(ignoreExisting);
      await attempt.through(create);
      continue;
    }
    const stored = /^\s*[+-]?\d+\s*$/.test(found.data) ? Number(found.data) : null;
    if (stored === null || stored === leasesMax) return;
    const detail = `the znode says that there are ${stored} leases, not ${leasesMax}`;
    throw new BadArgumentsError({ operation: 'Semaphore', path, detail });
  }
}

/** The length of a lease's name without the mark. */
const KAZOO_REST = 8;

import type { CoreOptions, EnsembleOptions } from '@meerkat/core';
import type { SeededRandom } from './seeded-random.ts';
import { OBSERVER_MASTER_PORT } from './virtual-ensemble.ts';
import type { WorkloadOptions } from './workload-options.ts';

/** What can be different about a world besides its faults: how its servers are configured, and what clients do. */
export const TRAITS = [
  /** The transaction log is in a directory of its own. */
  'log-directory',
  /** Log files end after some kilobytes. */
  'small-logs',
  /** Snapshots are taken often, and old files purged. */
  'purge',
  /** A leader keeps the last five txns for learners that are late; the others need its log or a snapshot. */
  'short-memory',
  /** Observers log nothing. */
  'lazy-observers',
  /** Clients have identities, and permissions are set and withdrawn. */
  'acls',
  /**
   * Servers take short txns only. Clients make so many ephemerals that the end of their session is a long one, and ask for
   * what is longer.
   */
  'short-txns',
  /** Every server has two addresses for the others. */
  'two-addresses',
  /** Containers and TTL znodes, which the service collects when nobody needs them. */
  'collectables',
  /** Values up to 900 kB; then snapshots are written and read in several slices, and logs are long. */
  'large-values',
  /** Some znodes have quotas, which are soon exceeded. */
  'quotas',
  /** Some sessions have thousands of ephemerals. */
  'huge-sessions',
  /** Clients ask four times as often, so that many writes to the same znodes are under way together. */
  'busy',
  /** Sessions are ended by hand, at any server, while their clients work. */
  'ended-by-hand',
  /** New sessions are their server's alone, until they have an ephemeral. */
  'local-sessions',
  /** A server that finds no leader answers reads, and half of the clients take such answers. */
  'read-only',
  /** Observers hang on followers. */
  'observer-masters',
  /** Connections of clients are in I/O threads. */
  'io-threads',
] as const;
export type Trait = (typeof TRAITS)[number];

/** A third of the worlds are plain; the others have some of the traits. */
export function drawTraits(random: SeededRandom): readonly Trait[] {
  if (random.chance(1 / 3)) return [];
  return TRAITS.filter(() => random.chance(0.4));
}

export interface Configuration {
  readonly core: Partial<CoreOptions>;
  readonly ensemble: Partial<Omit<EnsembleOptions, 'membership'>>;
  readonly workload: Partial<WorkloadOptions>;
  readonly addresses: number;
  readonly clientThreads: number;
}

/** How servers with these traits are configured, and their clients. */
export function configurationOf(traits: readonly Trait[]): Configuration {
  const has = (trait: Trait): boolean => traits.includes(trait);
  return {
    core: {
      snapCount: has('purge') ? 60 : 300,
      ...(has('log-directory') ? { logDirectory: '/log/version-2' } : {}),
      ...(has('small-logs') ? { logBytesMax: 4096, preallocateBytes: 4096 } : {}),
      ...(has('purge') ? { purgeIntervalMs: 3000, purgeRetainCount: 3 } : {}),
      ...(has('short-txns') ? { frameBytesMax: 1500 } : {}),
      ...(has('collectables')
        ? { extendedTypesEnabled: true, containerCheckIntervalMs: 500, containerDeletesPerMinuteMax: 600 }
        : {}),
      ...(has('quotas') ? { enforceQuota: true } : {}),
    },
    ensemble: {
      ...(has('short-memory') ? { commitLogCount: 5 } : {}),
      ...(has('lazy-observers') ? { syncEnabled: false } : {}),
      ...(has('read-only') ? { readOnlyEnabled: true } : {}),
      ...(has('observer-masters') ? { observerMasterPort: OBSERVER_MASTER_PORT } : {}),
      ...(has('local-sessions') ? { localSessionsEnabled: true, localSessionsUpgradingEnabled: true } : {}),
      // As short as the ticks of a simulated ensemble.
      ...(has('two-addresses') ? { addressTimeoutMs: 200 } : {}),
    },
    workload: {
      hasAcls: has('acls'),
      crowdChance: has('short-txns') ? 0.01 : 0,
      overlongChance: has('short-txns') ? 0.002 : 0,
      hasCollectables: has('collectables'),
      // They are no short txns.
      valueBytesMax: has('large-values') && !has('short-txns') ? 900_000 : 0,
      ...(has('busy') ? { operationsPerSecond: 25, outstandingMax: 12 } : {}),
      hasQuotas: has('quotas'),
      readOnlyChance: has('read-only') ? 0.5 : 0,
      hugeSessionSize: has('huge-sessions') && !has('short-txns') ? 2500 : 0,
    },
    addresses: has('two-addresses') ? 2 : 1,
    clientThreads: has('io-threads') ? 2 : 0,
  };
}

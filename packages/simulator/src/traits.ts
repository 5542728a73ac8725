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
  /** A leader keeps the last five txns for lagging learners; the others need its log or a snapshot. */
  'short-memory',
  /** Observers log nothing. */
  'lazy-observers',
  /** Clients have identities, and permissions are set and removed. */
  'acls',
  /**
   * Servers accept only short txns. Clients create so many ephemerals that the closeSession txn is a long one, and send
   * requests that are too long.
   */
  'short-txns',
  /** Every server has two addresses for the others. */
  'two-addresses',
  /** Containers and TTL znodes, which the service deletes when they are unused. */
  'collectables',
  /** Values up to 900 kB; then snapshots are written and read in several slices, and logs are long. */
  'large-values',
  /** Some znodes have quotas, which are soon exceeded. */
  'quotas',
  /** Some sessions have thousands of ephemerals. */
  'huge-sessions',
  /** Clients send four times as many requests, so that many writes to the same znodes are in flight together. */
  'busy',
  /** Sessions are ended by hand, at any server, while their clients work. */
  'ended-by-hand',
  /** New sessions are local until they create an ephemeral. */
  'local-sessions',
  /** A server without a leader answers reads, and half of the clients accept such answers. */
  'read-only',
  /** Observers follow followers. */
  'observer-masters',
  /** Client connections are handled by I/O threads. */
  'io-threads',
  /** Servers do little in a turn, which takes its time: requests arrive while a committed txn is half applied. */
  'slow-servers',
  /** Multis delete znodes, create them again and set them, and may fail after that. */
  'rewrites',
  /** Clients leave sessions behind, some at a time, without closing them. */
  'abandoned-sessions',
  /**
   * Kernels buffer little: what a server writes waits in its memory until its peer has read what came before. Not of
   * elections: E10 knows a server's vote from what it has sent.
   */
  'small-windows',
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
  readonly isSlow: boolean;
  /** Of streams to ports other than that of elections; null: as `VirtualNetwork` has it. */
  readonly windowBytes: number | null;
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
      // Large values need long txns.
      valueBytesMax: has('large-values') && !has('short-txns') ? 900_000 : 0,
      ...(has('busy') ? { operationsPerSecond: 25, outstandingMax: 12 } : {}),
      hasQuotas: has('quotas'),
      readOnlyChance: has('read-only') ? 0.5 : 0,
      rewriteChance: has('rewrites') ? 0.1 : 0,
      abandonChance: has('abandoned-sessions') ? 0.01 : 0,
      hugeSessionSize: has('huge-sessions') && !has('short-txns') ? 2500 : 0,
    },
    addresses: has('two-addresses') ? 2 : 1,
    clientThreads: has('io-threads') ? 2 : 0,
    isSlow: has('slow-servers'),
    windowBytes: has('small-windows') ? 2048 : null,
  };
}

export interface WorkloadOptions {
  /** Default 4. */
  readonly clients: number;
  /** Of one client, on average, while its requests are answered. Default 6. */
  readonly operationsPerSecond: number;
  /** Requests of one client that wait for answers. Default 4. */
  readonly outstandingMax: number;
  /** Znodes that the clients compete for. Default 6. */
  readonly keys: number;
  /** Milliseconds; each session has one between. Default 1000 to 6000. */
  readonly sessionTimeoutMinMs: number;
  readonly sessionTimeoutMaxMs: number;
  /** Clients have identities (`users.ts`) and set permissions; only for servers that accept them. Default false. */
  readonly hasAcls: boolean;
  /**
   * How often, of all that a client does, it makes so many ephemerals of such long names that the end of its session is a
   * large txn. Default 0.
   */
  readonly crowdChance: number;
  /** Some znodes are containers, or have a time to live; the servers must allow that. Default false. */
  readonly hasCollectables: boolean;
  /** Some values are so long, in bytes at most. Default 0: all are short. */
  readonly valueBytesMax: number;
  /** How often a client asks for a path that is longer than its servers take. Default 0. */
  readonly overlongChance: number;
  /** Some of the contended znodes have quotas. Default false. */
  readonly hasQuotas: boolean;
  /** Ephemerals that one client in a while makes for its session, with multis. Default 0: some only. */
  readonly hugeSessionSize: number;
  /** How often a client sends a multi that deletes and creates a znode. Default 0. */
  readonly rewriteChance: number;
  /** How often a client leaves some sessions behind, each with an ephemeral, without closing them. Default 0. */
  readonly abandonChance: number;
  /** How many of the sessions, from 0 to 1, take answers of servers that are read-only. Default 0. */
  readonly readOnlyChance: number;
}

/** Servers of short txns close the connection instead of reading a request with it. */
export const OVERLONG_PATH: string = `/w/${'overlong'.repeat(200)}`;

export const DEFAULT_WORKLOAD: WorkloadOptions = {
  clients: 4,
  operationsPerSecond: 6,
  outstandingMax: 4,
  keys: 6,
  sessionTimeoutMinMs: 1000,
  sessionTimeoutMaxMs: 6000,
  hasAcls: false,
  crowdChance: 0,
  hasCollectables: false,
  valueBytesMax: 0,
  overlongChance: 0,
  hasQuotas: false,
  hugeSessionSize: 0,
  readOnlyChance: 0,
  rewriteChance: 0,
  abandonChance: 0,
};

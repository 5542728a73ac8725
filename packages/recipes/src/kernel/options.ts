import type { Acl, Data } from '@meerkat/client';
import type { Layout } from './layout.ts';

/*
 * Options common to the recipes. Calls take the client's `CallOptions`: `signal` and `timeoutMs`.
 */

/** Options of recipes that create znodes. */
export interface ZnodeOptions {
  /** The ACL of created znodes. Default: all permissions for anyone. */
  readonly acl?: readonly Acl[] | undefined;
}

/** Options of recipes with ownership. */
export interface HeldOptions extends ZnodeOptions {
  /**
   * Safety margin: how long before the client's deadline ownership ends, in milliseconds; see docs/recipes/README.md.
   * Default 0.
   */
  readonly marginMs?: number | undefined;
}

/** Options of recipes that are shared with programs that use another library. */
export interface SharedHeldOptions extends HeldOptions {
  /** The library that it is shared with: Curator (the default) or kazoo. */
  readonly layout?: Layout | undefined;
}

/** Options of all locks and leases. */
export interface LockOptions extends HeldOptions {
  /** The data of our znodes, for clients that list the contenders. Default: empty. */
  readonly data?: Data | undefined;
}

/** Options of locks that are shared with programs that use another library. */
export interface SharedLockOptions extends LockOptions, SharedHeldOptions {}

import type { Acl, Data } from '@meerkat/client';
import type { Layout } from './layout.ts';

/*
 * What recipes can be given alike. Calls take the client's `CallOptions`: `signal` and `timeoutMs`.
 */

/** Of a recipe that makes znodes. */
export interface ZnodeOptions {
  /** Of the znodes that are made. Default: all permissions for anyone. */
  readonly acl?: readonly Acl[] | undefined;
}

/** Of a recipe by which something is held. */
export interface HeldOptions extends ZnodeOptions {
  /**
   * How long before the client's deadline what is held ends by itself, milliseconds; see docs/recipes/README.md. Default 0.
   */
  readonly marginMs?: number | undefined;
}

/** Of one that programs with another library use, too. */
export interface SharedHeldOptions extends HeldOptions {
  /** With whom it is shared: Curator (the default) or kazoo. */
  readonly layout?: Layout | undefined;
}

/** Of all locks and leases. */
export interface LockOptions extends HeldOptions {
  /** What our znodes report about us, to clients that look at the line. Default: nothing. */
  readonly data?: Data | undefined;
}

/** Of locks that programs with another library use, too. */
export interface SharedLockOptions extends LockOptions, SharedHeldOptions {}

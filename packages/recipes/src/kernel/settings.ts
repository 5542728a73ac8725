import { checkMs } from './bounds.ts';
import { checkLayout, LAYOUTS } from './layout.ts';
import type { HeldOptions, LockOptions, SharedLockOptions } from './options.ts';

/*
 * Validated common options with their defaults. A recipe passes its settings on as a whole, for instance as a part of
 * its `Line`, without naming options that are not its own, so it cannot forget one. A new option does not compile until
 * it is handled below.
 */

/** Milliseconds, validated: the only type accepted where ownership is timed. */
export type Margin = number & { readonly isMargin: true };

export const NO_MARGIN: Margin = 0 as Margin;

/** Each option has its value: `undefined` where the service, or a layout, decides. */
type Settled<Options> = {
  readonly [Name in keyof Options]-?: Name extends 'marginMs' ? Margin : Setting<Options, Name>;
};
type Setting<Options, Name extends keyof Options> = Name extends 'layout' ? NonNullable<Options[Name]> : Options[Name];

export type HeldSettings = Settled<HeldOptions>;
export type LockSettings = Settled<LockOptions>;
export type SharedLockSettings = Settled<SharedLockOptions>;

/** @throws RangeError */
export function heldSettings({ acl, marginMs = 0 }: HeldOptions): HeldSettings {
  checkMs('marginMs', marginMs);
  return { acl, marginMs: marginMs as Margin };
}

/** @throws RangeError */
export function lockSettings(options: LockOptions): LockSettings {
  return { ...heldSettings(options), data: options.data };
}

/** @throws RangeError */
export function sharedLockSettings(options: SharedLockOptions): SharedLockSettings {
  const { layout = 'curator' } = options;
  checkLayout(layout, LAYOUTS);
  return { ...lockSettings(options), layout };
}

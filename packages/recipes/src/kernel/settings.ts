import { checkMs } from './bounds.ts';
import { checkLayout, LAYOUTS } from './layout.ts';
import type { HeldOptions, LockOptions, SharedLockOptions } from './options.ts';

/*
 * What recipes make of the options that they have in common: checked, and with their defaults. A recipe hands its settings on
 * whole, as a part of its `Line` say, and names no option that is not its own: so it cannot forget one. An option that is new
 * does not compile until it has its place below.
 */

/** Milliseconds, and checked: what counts down to the end of something that is held takes no other number. */
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

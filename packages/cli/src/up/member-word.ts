/** A single executable starts itself again for each server of `meerkat up`; this first word says so. */
export const MEMBER_WORD = 'up-member';

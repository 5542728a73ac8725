/** Znodes, entries or watches that are looked at in one slice. */
export const SLICE_STEPS = 1024;

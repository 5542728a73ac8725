/** Znodes, entries or watches processed in one slice. */
export const SLICE_STEPS = 1024;

import type { Clock } from '@meerkat/core';

/** The clocks of this process. */
export const NODE_CLOCK: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
};

import type { Network } from '../base/ports.ts';

/** The network of a standalone server, which must not use it. */
export const NO_NETWORK: Network = {
  listen() {
    throw new Error('a standalone server does not listen for others');
  },
  connect() {
    throw new Error('a standalone server does not connect to others');
  },
};

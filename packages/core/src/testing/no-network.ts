import type { Network } from '../base/ports.ts';

/** The network of a server of its own, which asks nothing of it. */
export const NO_NETWORK: Network = {
  listen() {
    throw new Error('a server of its own listens to no others');
  },
  connect() {
    throw new Error('a server of its own connects to no others');
  },
};

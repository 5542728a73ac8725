import type { Client } from '@meerkat/client';
import { Fleet } from './fleet.ts';

/** Runs a program with some clients of one virtual server. */
export function inWorld(
  program: (fleet: Fleet, clients: Client[]) => Promise<void>,
  clientCount = 3,
): () => Promise<void> {
  return async () => {
    const fleet = new Fleet(1, 1);
    await fleet.run(async () => program(fleet, await fleet.connectAll(clientCount)));
  };
}

/** Tells whether a promise has settled by now. */
export function watched(promise: Promise<unknown>): { isSettled: boolean } {
  const state = { isSettled: false };
  const settle = (): void => {
    state.isSettled = true;
  };
  promise.then(settle, settle);
  return state;
}

import { type Client, ZooKeeperError } from '@meerkat/client';
import { waitFor } from './locks/wait-for.ts';
import type { Wait } from './wait.ts';

/**
 * Waits for what comes after a call has had its effect, such as the removal of what is old: as long as the caller likes, and
 * what the service says of it is not the caller's trouble.
 */
export async function untilTired(client: Client, work: Promise<unknown>, wait: Wait): Promise<void> {
  work.catch(() => {});
  try {
    await waitFor(client, work, wait.next(), ABOUT);
  } catch (error) {
    if (!(error instanceof ZooKeeperError)) throw error;
  }
}

/**
 * Resolves, with nothing, when both have settled. In a row of these, each made of the one before, nothing is kept of what is
 * over: the result of `Promise.allSettled` would hold those of all before.
 */
export async function whenBothSettled(before: Promise<unknown>, work: Promise<unknown>): Promise<void> {
  await Promise.allSettled([before, work]);
}

/** Of errors that nobody sees. */
const ABOUT = { operation: 'tidy', path: '/' } as const;

import { type CallOptions, type Client, NoNodeError } from '@meerkat/client';
import { inspect, type Line } from '../kernel/line.ts';

/*
 * A lock is revoked by writing a word into the znode of its holder (Curator's Revoker). The holder decides what to do;
 * nothing is taken from it.
 */

export const REVOKE = '__REVOKE__';

export function isRevocation(data: Uint8Array): boolean {
  return data.length === REVOKE.length && REVOKE.split('').every((letter, i) => data[i] === letter.charCodeAt(0));
}

/** Notifies the first of the line; false when the line is empty. */
export async function requestRevocation(client: Client, line: Line, options: CallOptions): Promise<boolean> {
  const holders = (await inspect(client, line, options)).filter(({ isFirst }) => isFirst);
  const asked = await Promise.all(
    holders.map(async ({ path }) => {
      try {
        await client.set(path, REVOKE, options);
        return true;
      } catch (error) {
        // It has been released.
        if (error instanceof NoNodeError) return false;
        throw error;
      }
    }),
  );
  return asked.includes(true);
}

import { type Client, NoNodeError, parentOf } from '@meerkat/client';

/**
 * Changes znodes in each way that a watch may wait for: whatever is watched there, and however, fires.
 *
 * @param paths parents first
 */
export async function stir(client: Client, paths: readonly string[], timeoutMs: number): Promise<void> {
  for (const path of paths) {
    for (let attempt = 1; ; attempt++) {
      try {
        await stirOne(client, path, timeoutMs);
        break;
      } catch (error) {
        // Containers and TTL znodes go by themselves, and parents with them.
        if (!(error instanceof NoNodeError) || attempt === ATTEMPTS_MAX) throw error;
        await client.ensurePath(parentOf(path));
      }
    }
  }
}

async function stirOne(client: Client, path: string, timeoutMs: number): Promise<void> {
  const options = { timeoutMs };
  let stat = await client.exists(path, options);
  // It may have no children, and those that it may have had are waited for.
  if (stat !== null && stat.ephemeralOwner !== 0n) {
    await client.delete(path, options);
    stat = null;
  }
  if (stat === null) await client.create(path, STIRRED, options);
  else await client.set(path, STIRRED, options);
  await client.create(`${path}/${CHILD}`, STIRRED, options);
  await client.delete(`${path}/${CHILD}`, options);
}

const STIRRED = 'stirred';
const CHILD = 'stirred';
const ATTEMPTS_MAX = 5;

import { type Client, NoNodeError, parentOf } from '@meerkat/client';

/**
 * Changes znodes in every way that a watch can wait for, so that all watches on them fire.
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
        // The service deletes containers and TTL znodes, and parents with them.
        if (!(error instanceof NoNodeError) || attempt === ATTEMPTS_MAX) throw error;
        await client.ensurePath(parentOf(path));
      }
    }
  }
}

async function stirOne(client: Client, path: string, timeoutMs: number): Promise<void> {
  const options = { timeoutMs };
  let stat = await client.exists(path, options);
  // An ephemeral cannot have children, and watches may wait for those that the znode had before.
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

import { type Client, connect } from '@meerkat/client';
import { expect } from 'vitest';
import type { ServerKind } from '../harness/server-process.ts';
import type { Member } from './ensemble.ts';

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** A client of one member only. */
export function connectTo({ server }: Member): Promise<Client> {
  return connect(`127.0.0.1:${server.port}`, { sessionTimeoutMs: 30_000, connectTimeoutMs: 60_000 });
}

/** A client of one member, which reads there what is written through others. */
export interface Reader {
  readonly client: Client;
  readonly kind: ServerKind;
}

/**
 * Makes a reader see all writes acknowledged up to a zxid: with a single sync, except for Apache's servers. An Apache
 * leader treats the sync of its own client as a read (CommitProcessor, `matchSyncs`), and may answer it before it has
 * applied txns that its learners already know to be committed.
 */
async function catchUp({ client, kind }: Reader, zxid: bigint): Promise<void> {
  await client.sync();
  while (kind === 'apache' && client.lastZxid < zxid) await client.sync();
}

/**
 * Runs every kind of write and read through one member, and checks each through another one after a sync.
 *
 * @param root a znode that does not exist yet
 */
export async function exercise(writer: Client, site: Reader, root: string): Promise<void> {
  const reader = site.client;
  await catchUp(site, writer.lastZxid);
  const absent = await reader.exists(root, { watch: true });
  expect(absent.stat).toBeNull();
  const { stat } = await writer.create(root, 'first');
  expect(await absent.changed).toMatchObject({ type: 'created', path: root });

  const read = await reader.get(root, { watch: true });
  expect(text(read.data)).toBe('first');
  expect({ ...read.stat }).toEqual({ ...stat });
  const set = await writer.set(root, 'second', { version: 0 });
  expect(await read.changed).toMatchObject({ type: 'changed', path: root });
  expect({ ...(await reader.get(root)).stat }).toEqual({ ...set });
  await expect(writer.set(root, 'third', { version: 0 })).rejects.toMatchObject({ code: 'BADVERSION' });

  const listed = await reader.children(root, { watch: true });
  const made = await Promise.all(
    Array.from({ length: 10 }, (_, i) => writer.create(`${root}/n-`, String(i), { sequential: true })),
  );
  expect(made.map(({ path }) => path)).toEqual(made.map((_, i) => `${root}/n-${String(i).padStart(10, '0')}`));
  expect(await listed.changed).toMatchObject({ type: 'children', path: root });
  await catchUp(site, writer.lastZxid);
  expect([...(await reader.children(root)).children].sort()).toEqual(
    made.map(({ path }) => path.slice(root.length + 1)),
  );

  await writer
    .transaction()
    .check(root, { version: 1 })
    .create(`${root}/multi`, 'a')
    .set(`${root}/n-0000000000`, 'b')
    .delete(`${root}/n-0000000001`)
    .commit();
  await expect(
    writer.transaction().create(`${root}/never`).check(root, { version: 77 }).commit(),
  ).rejects.toMatchObject({ code: 'TRANSACTIONFAILED' });
  await catchUp(site, writer.lastZxid);
  expect(await reader.exists(`${root}/never`)).toBeNull();
  expect(text((await reader.get(`${root}/multi`)).data)).toBe('a');

  await writer.create(`${root}/big`, new Uint8Array(300_000).fill(7));
  await catchUp(site, writer.lastZxid);
  expect((await reader.get(`${root}/big`)).data).toHaveLength(300_000);
  await writer.delete(`${root}/n-0000000002`);
}

/** Checks that closing a session at one member deletes its ephemeral, as seen by a watch at another member. */
export async function exerciseEphemerals(owner: Member, site: Reader, path: string): Promise<void> {
  const client = await connectTo(owner);
  const { stat } = await client.create(path, 'mine', { mode: 'ephemeral' });
  expect(stat.ephemeralOwner).toBe(client.session?.id);
  // The top byte of a session id is the id of the server that created it.
  expect(BigInt.asUintN(64, stat.ephemeralOwner) >> 56n).toBe(BigInt(owner.id));
  await catchUp(site, stat.czxid);
  const seen = await site.client.exists(path, { watch: true });
  expect(seen.stat).not.toBeNull();
  await client.close();
  expect(await seen.changed).toMatchObject({ type: 'deleted', path });
}

/** Retries a write on connection loss until it is known to be applied. */
export async function writeUntilDone(client: Client, path: string, data: string): Promise<void> {
  for (;;) {
    try {
      await client.set(path, data);
      return;
    } catch (error) {
      const { code } = error as { code?: string };
      if (code !== 'CONNECTIONLOSS') throw error;
    }
  }
}

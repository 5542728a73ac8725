import { type Client, connect, nullableBytes } from '@meerkat/client';
import { DirectoryFiles, readTxnEffects, type TxnEffects, type Zxid } from '@meerkat/server/archive';
import { TestServer } from '@meerkat/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { undoSteps, writeUndo } from './undo-steps.ts';

let server: TestServer;
let client: Client;
const notes: string[] = [];

beforeAll(async () => {
  server = await TestServer.start({ storage: 'directory', extendedTypesEnabled: true });
  client = await connect(server.connectString);
});
afterAll(async () => {
  await client.close();
  await server[Symbol.asyncDispose]();
});

async function effectsOf(zxid: bigint): Promise<TxnEffects> {
  return await readTxnEffects(await DirectoryFiles.open(server.directory!, null), {
    zxid: Number(zxid) as Zxid,
    onWarning: () => {},
    onProgress: () => {},
    signal: new AbortController().signal,
  });
}

async function undo(zxid: bigint): Promise<void> {
  const steps = undoSteps(await effectsOf(zxid), undefined, (text) => notes.push(text));
  await writeUndo(client, steps, Number(zxid), {});
}

/** Not visible to clients: whether a znode is a container, or has a TTL. */
async function lastOwner(): Promise<bigint | undefined> {
  const { znodes } = await effectsOf(client.lastZxid);
  const owner = znodes[0]?.after?.ephemeralOwner;
  return owner === undefined ? undefined : BigInt.asUintN(64, owner);
}

/** @returns the zxid of the deletion */
async function deletionOf(path: string): Promise<bigint> {
  await client.delete(path);
  return client.lastZxid;
}

describe('undo', () => {
  test('of a deletion makes the same kind of znode again', async () => {
    await client.create('/container', 'c', { mode: 'container' });
    await client.create('/ttl', 't', { ttlMs: 3_600_000 });
    const { path: sequential } = await client.create('/sequential-', 's', { sequential: true });
    await client.create('/ephemeral', 'e', { mode: 'ephemeral' });
    const owners = { '/container': 1n << 63n, '/ttl': (0xffn << 56n) | 3_600_000n, [sequential]: 0n };
    for (const [path, owner] of Object.entries(owners)) {
      await undo(await deletionOf(path));
      expect(await lastOwner(), path).toBe(owner);
      expect(await client.exists(path)).not.toBe(null);
    }
    await undo(await deletionOf('/ephemeral'));
    // It belonged to a session, which alone may make it again.
    expect(await client.exists('/ephemeral')).toBe(null);
    expect(notes.join()).toMatch(/\/ephemeral was an ephemeral of session 0x[0-9a-f]+: it stays away/);
  });

  test('of an ACL gives the one before, unless there is a newer one', async () => {
    await client.create('/acl', '');
    await client.setAcl('/acl', [{ scheme: 'world', id: 'anyone', perms: 0b10011 }]);
    const first = client.lastZxid;
    await client.set('/acl', 'other data do not matter');
    await undo(first);
    expect((await client.getAcl('/acl')).acl).toEqual([{ scheme: 'world', id: 'anyone', perms: 31 }]);
    await expect(undo(first)).rejects.toThrow('/acl was changed since: its ACL was changed. Nothing was written');
  });

  test('of a creation does not take a znode whose ACL or data are others by now', async () => {
    await client.create('/created', '');
    const created = client.lastZxid;
    await client.setAcl('/created', [{ scheme: 'world', id: 'anyone', perms: 1 }]);
    await expect(undo(created)).rejects.toThrow('its ACL was changed');
    expect(await client.exists('/created')).not.toBe(null);
  });

  test('says what stands in the way, with the path', async () => {
    await client.create('/parent', '');
    const parent = client.lastZxid;
    await client.create('/parent/child', '');
    await expect(undo(parent)).rejects.toThrow('/parent was changed since: it has children. Nothing was written');
    const child = await deletionOf('/parent/child');
    await client.delete('/parent');
    await expect(undo(child)).rejects.toThrow('/parent/child was changed since: it, or its parent, was deleted');
  });

  test('gives null again where there were no data', async () => {
    await client.create('/null', null);
    await client.set('/null', 'something');
    await undo(client.lastZxid);
    expect((await client.get('/null', { codec: nullableBytes })).data).toBe(null);
  });
});

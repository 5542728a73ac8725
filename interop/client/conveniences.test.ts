import {
  acl,
  type Client,
  connect,
  digestAuth,
  json,
  NodeExistsError,
  type TransactionError,
  withoutProtection,
} from '@meerkat/client';
import { TcpProxy } from '@meerkat/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';

/** Ways in which a connection can break around a request. */
const CUTS = [
  ['the request', 'toServer'],
  ['the reply', 'toClient'],
] as const;

for (const kind of SERVER_KINDS) {
  describeWith(kind === 'apache' ? ['apache'] : [], `the client's conveniences (${kind})`, () => {
    let server: ServerProcess;
    let proxy: TcpProxy;
    let client: Client;
    /** Bypasses the proxy. */
    let other: Client;

    beforeAll(async () => {
      server = await ServerProcess.start(kind);
      proxy = await TcpProxy.start({ target: server.port });
    });
    afterAll(async () => {
      await proxy.stop();
      await server.dispose();
    });
    beforeEach(async () => {
      client = await connect({ servers: proxy.connectString, backOff: { minMs: 1, maxMs: 5 } });
      other = await connect(`127.0.0.1:${server.port}`);
    });
    afterEach(async () => {
      await deleteAll(other);
      await client.close();
      await other.close();
    });

    /** Cuts the connection before the next byte in that direction. */
    const cutNext = (direction: 'toServer' | 'toClient') => {
      for (const connection of proxy.connections) void connection.cutAfter({ direction, bytes: 0 }).catch(() => {});
    };
    const names = async (path: string) => (await other.children(path, LINEARIZABLE)).children.toSorted();
    const textOf = async (path: string) => text((await other.get(path, LINEARIZABLE)).data);

    describe.each(CUTS)('when a cut takes %s', (_, direction) => {
      test('a protected create creates exactly one znode', async () => {
        await client.create('/locks');
        cutNext(direction);
        const options = { mode: 'ephemeral', sequential: true } as const;
        const { path, stat } = await client.createProtected('/locks/lock-', 'me', options);
        expect(withoutProtection(path.slice('/locks/'.length))).toMatch(/^lock-\d{10}$/);
        expect(await names('/locks')).toEqual([path.slice('/locks/'.length)]);
        expect(stat.ephemeralOwner).toBe(client.session?.id);
      });

      test('an idempotent set changes the znode exactly once', async () => {
        await client.create('/a', 'old');
        cutNext(direction);
        expect(await client.setIdempotent('/a', 'new', { version: 0 })).toMatchObject({ version: 1 });
        expect(await textOf('/a')).toBe('new');
      });

      test('an idempotent delete succeeds', async () => {
        await client.create('/a', 'old');
        cutNext(direction);
        await client.deleteIdempotent('/a', { version: 0 });
        expect(await other.exists('/a', LINEARIZABLE)).toBeNull();
      });

      test('ensurePath creates every znode', async () => {
        await client.sync('/');
        cutNext(direction);
        await client.ensurePath('/a/b/c');
        expect(await names('/a/b')).toEqual(['c']);
      });

      test('a recursive delete counts each znode once', async () => {
        await plant(client);
        const onProgress = ({ deleted }: { deleted: number }) => {
          if (deleted === 5) cutNext(direction);
        };
        expect(await client.deleteRecursive('/tree', { onProgress })).toBe(111);
        expect(await other.exists('/tree', LINEARIZABLE)).toBeNull();
      });

      test('an update is applied once, or its outcome is reported as unknown', async () => {
        await client.create('/n', '5');
        const addOne = (data: Uint8Array | null) => {
          cutNext(direction);
          return `${Number(text(data)) + 1}`;
        };
        const outcome = await client.update('/n', once(addOne, plusOne)).catch((error: unknown) => error);
        expect(await textOf('/n')).toBe('6');
        if (direction === 'toServer') expect(outcome).toMatchObject({ stat: { version: 1 } });
        else expect(outcome).toMatchObject({ code: 'CONNECTIONLOSS', outcome: 'unknown' });
      });
    });

    test('concurrent updates are all applied', async () => {
      await client.create('/n', '0');
      const rounds = Array.from({ length: 25 }, (_, i) => {
        return (i % 2 === 0 ? client : other).update('/n', plusOne);
      });
      await Promise.all(rounds);
      expect(await textOf('/n')).toBe('25');
    });

    test('concurrent updates create a missing znode once', async () => {
      const results = await Promise.all(
        [client, other, client, other].map((each) => each.update('/n', plusOne, { create: true })),
      );
      expect(await textOf('/n')).toBe('4');
      expect(results.map((result) => result?.stat.version).toSorted()).toEqual([0, 1, 2, 3]);
    });

    test('an update uses its codec, and rejects when the codec fails to decode', async () => {
      const counts = json<{ n: number }>();
      await client.create('/n', { n: 1 }, { codec: counts });
      const { data, stat } = await client.update('/n', ({ n }) => ({ n: n + 1 }), { codec: counts });
      expect(data).toEqual({ n: 2 });
      expect(stat.version).toBe(1);
      await client.set('/n', 'no json');
      const result = client.update('/n', ({ n }) => ({ n: n + 1 }), { codec: counts });
      await expect(result).rejects.toMatchObject({ code: 'DECODEFAILED', operation: 'update', path: '/n' });
    });

    test('an aborted protected create leaves nothing behind', async () => {
      await client.create('/locks');
      const controller = new AbortController();
      const options = { mode: 'ephemeral', sequential: true, signal: controller.signal } as const;
      proxy.freeze('toClient');
      const result = client.createProtected('/locks/lock-', 'me', options);
      // The znode exists on the server; the reply is still on its way.
      await expect.poll(() => names('/locks')).toHaveLength(1);
      controller.abort('not needed');
      await expect(result).rejects.toMatchObject({ name: 'AbortError', outcome: 'unknown', cause: 'not needed' });
      proxy.thaw('toClient');
      await expect.poll(() => names('/locks')).toHaveLength(0);
    });

    test('createParents creates the chroot too, with containers and a custom ACL', async () => {
      const inner = await connect(`127.0.0.1:${server.port}/apps/shop`);
      const { scheme, auth } = digestAuth('ann', 'secret');
      await inner.addAuth(scheme, auth);
      const onlyAnn = [acl.digest('ann', 'secret'), acl.world('r')];
      const { path } = await inner.createParents('/queues/q/job-', 'x', {
        sequential: true,
        parentMode: 'container',
        acl: onlyAnn,
        parentAcl: [acl.world('cdrwa')],
      });
      expect(path).toBe('/queues/q/job-0000000000');
      expect((await inner.getAcl(path)).acl).toEqual(onlyAnn);
      await expect(other.set(`/apps/shop${path}`, 'y')).rejects.toMatchObject({ code: 'NOAUTH' });
      await inner.set(path, 'y');
      await inner.deleteRecursive('/queues');
      await inner.close();
    });

    test('a transaction applies all or nothing, and reports why it failed', async () => {
      const [created, child, stat, gone] = await client
        .transaction()
        .create('/t', 'one')
        .create('/t/job-', null, { sequential: true, mode: 'ephemeral' })
        .set('/t', 'two', { version: 0 })
        .delete('/t/job-0000000000')
        .commit();
      expect(created.path).toBe('/t');
      expect(child.path).toBe('/t/job-0000000000');
      expect(stat.version).toBe(1);
      expect(gone).toBeNull();

      const refused = client
        .transaction()
        .check('/t', { version: 1 })
        .set('/t', 'three')
        .create('/t')
        .delete('/t')
        .commit();
      const error = (await refused.catch((caught: unknown) => caught)) as TransactionError;
      expect(error).toMatchObject({ code: 'TRANSACTIONFAILED', index: 2, path: '/t', errorCode: -110 });
      expect(error.cause).toBeInstanceOf(NodeExistsError);
      expect(text((await client.get('/t')).data)).toBe('two');
      expect(await client.transaction().commit()).toEqual([]);
    });

    test('a transaction creates containers as well', async () => {
      const [container] = await client.transaction().create('/c', '', { mode: 'container' }).commit();
      expect(container).toMatchObject({ path: '/c', stat: { numChildren: 0 } });
    });

    test('a multi-read returns each result separately, and sees the latest writes when linearizable', async () => {
      await other.create('/m', 'data');
      await other.create('/m/x', null);
      const [znode, missing, children, nothing] = await client
        .multiRead()
        .get('/m')
        .get('/missing')
        .children('/m')
        .get('/m/x')
        .run(LINEARIZABLE);
      expect(znode.ok && text(znode.value.data)).toBe('data');
      expect(missing).toMatchObject({ ok: false, error: { code: 'NONODE', path: '/missing' } });
      expect(children).toEqual({ ok: true, value: ['x'] });
      expect(nothing.ok && nothing.value.data).toHaveLength(0);
    });
  });
}

const LINEARIZABLE = { read: 'linearizable' } as const;

/** Creates /tree with 10 children of 10 children each: 111 znodes. */
async function plant(client: Client): Promise<void> {
  const paths = ['/tree'];
  for (let i = 0; i < 10; i++) {
    paths.push(`/tree/${i}`);
    for (let j = 0; j < 10; j++) paths.push(`/tree/${i}/${j}`);
  }
  await Promise.all(paths.map((path) => client.create(path)));
}

async function deleteAll(client: Client): Promise<void> {
  for (const name of (await client.children('/', LINEARIZABLE)).children) {
    if (name !== 'zookeeper') await client.deleteRecursive(`/${name}`);
  }
}

function text(data: Uint8Array | null): string {
  return new TextDecoder().decode(data ?? undefined);
}

function plusOne(data: Uint8Array | null): string {
  return `${Number(text(data)) + 1}`;
}

/** The first call goes to `first`, every other one to `then`. */
function once<A, R>(first: (argument: A) => R, then: (argument: A) => R): (argument: A) => R {
  let isFirst = true;
  return (argument) => {
    const run = isFirst ? first : then;
    isFirst = false;
    return run(argument);
  };
}

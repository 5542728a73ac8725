import { type Client, connect, isZooKeeperError } from '@meerkat/client';
import { TreeCache } from '@meerkat/recipes';
import { TcpProxy } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';

/** Every znode below a path, read one by one. */
async function readTree(client: Client, path: string): Promise<Record<string, string>> {
  const { data, stat } = await client.get(path);
  const { children } = await client.children(path);
  const below = await Promise.all(children.map((name) => readTree(client, `${path}/${name}`)));
  return Object.assign({ [path]: `${stat.mzxid} ${new TextDecoder().decode(data)}` }, ...below);
}

function imageOf(cache: TreeCache): Record<string, string> {
  const znodes = [...cache.znodes()];
  return Object.fromEntries(
    znodes.map(({ path, stat, data }) => [path, `${stat.mzxid} ${new TextDecoder().decode(data ?? undefined)}`]),
  );
}

for (const kind of SERVER_KINDS) {
  // Apache 3.8 omits the zxid in events, so this covers the other way of determining it.
  describeWith(kind === 'apache' ? ['apache'] : [], `caches (${kind})`, () => {
    test('a cache shows transactions atomically, and finally the current tree, across a lost connection', async () => {
      await using server = await ServerProcess.start(kind);
      const proxy = await TcpProxy.start({ target: `127.0.0.1:${server.port}` });
      const writer = await connect(`127.0.0.1:${server.port}`);
      const reader = await connect(`127.0.0.1:${proxy.port}`);
      try {
        await writer.create('/t', '0');
        for (const name of ['a', 'b']) await writer.create(`/t/${name}`, '0');
        const cache = new TreeCache(reader, '/t');
        await cache.ready;
        const pairs: string[] = [];
        const zxids: Set<bigint> = new Set();
        const following = (async () => {
          for await (const { zxid } of cache.changes()) {
            zxids.add(zxid);
            const { '/t/a': a = '', '/t/b': b = '' } = imageOf(cache);
            pairs.push(a === b ? '' : `${a} | ${b}`);
          }
        })();
        for (let round = 0; round < 3; round++) {
          const writes = Array.from({ length: 200 }, (_, i) => {
            const data = `${round}.${i}`;
            const path = `/t/${i % 7}`;
            if (i % 3 === 0) return writer.transaction().set('/t/a', data).set('/t/b', data).commit();
            return i % 3 === 1 ? writer.create(path, data) : writer.delete(path);
          });
          await Promise.all(writes.map((write) => write.catch(ignoreService)));
          if (round === 1) await proxy.cut();
          else await cache.waitFor((await writer.set('/t', `${round}`)).mzxid);
        }
        const { mzxid } = await writer.set('/t', 'the end');
        await cache.waitFor(mzxid);
        expect(cache.stale).toBe(false);
        expect(imageOf(cache)).toEqual(await readTree(writer, '/t'));
        await cache.close();
        await following;
        // Both are always written by one transaction, so they have the same mzxid and value.
        expect(pairs.filter((pair) => pair !== '')).toEqual([]);
        expect(zxids.size).toBeGreaterThan(1);
      } finally {
        await Promise.all([writer.close(), reader.close()]);
        await proxy.stop();
      }
    });
  });
}

function ignoreService(error: unknown): void {
  if (!isZooKeeperError(error)) throw error;
}

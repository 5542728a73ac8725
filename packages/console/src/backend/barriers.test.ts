import { connect } from '@meerkat/client';
import { DoubleBarrier, Rendezvous } from '@meerkat/recipes';
import { TestServer } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { findBarriers } from './barriers.ts';
import { readLines } from './lines.ts';

const UUID = '0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f';

test('candidates for barriers have members named by UUIDs, or the word in their name', () => {
  const paths = [
    '/',
    `/a/${UUID}`,
    `/a/${UUID.replaceAll('-', '')}`,
    '/a/ready',
    '/migration-barrier',
    '/Barriers/one',
  ];
  const others = ['/barrier/ready', '/barrier/x-0000000001', '/barrier/a/b', `/a/${UUID}x`, '/zookeeper/barrier'];
  const { doubles, singles } = findBarriers([...paths, ...others]);
  expect([...doubles]).toEqual([['/a', [UUID, UUID.replaceAll('-', '')]]]);
  expect(singles).toEqual(['/migration-barrier', '/Barriers/one']);
});

test('a rendezvous lists its waiting parties, and a znode that is only named like a barrier is ignored', async () => {
  await using server = await TestServer.start();
  await using client = await connect(server.connectString);
  const show = async () => {
    const paths: string[] = [];
    for (const path of ['/meet', '/barriers', '/barriers/double', '/services']) {
      const found = await client.exists(path);
      if (found === null) continue;
      paths.push(path, ...(await client.children(path)).children.map((name) => `${path}/${name}`));
    }
    const index = { znodes: 0, bytes: 0, isComplete: true, isLive: true, missing: null };
    const { lines } = await readLines(client, paths, [], index, { timeoutMs: 20_000 });
    return lines.map(({ path, kind, total, contenders }) => [path, kind, total, contenders[0]?.isHolder ?? null]);
  };
  // A container of barriers, a double barrier that all have left, and instances of a service.
  const inside = await new DoubleBarrier(client, '/barriers/double', 1).enter();
  expect(await show()).toEqual([['/barriers/double', 'double barrier', 1, true]]);
  await inside.leave();
  await client.createParents(`/services/${UUID}`, '{"port":1}', { mode: 'ephemeral' });
  await client.create('/barriers/standing');
  expect(await show()).toEqual([['/barriers/standing', 'barrier', 0, null]]);

  const rendezvous = new Rendezvous(client, '/meet', 2);
  const first = rendezvous.meet(new Uint8Array());
  while (((await client.exists('/meet'))?.numChildren ?? 0) < 1) await client.sync('/');
  expect(await show()).toContainEqual(['/meet', 'rendezvous', 1, false]);
  await Promise.all([first, rendezvous.meet(new Uint8Array())]);
});

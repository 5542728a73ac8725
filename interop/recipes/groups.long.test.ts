import { type Data, text } from '@meerkat/client';
import {
  buildUri,
  Group,
  type GroupLayout,
  PersistentEphemeral,
  PersistentTtl,
  ServiceDiscovery,
  SetPartitioner,
} from '@meerkat/recipes';
import { expect, test } from 'vitest';
import { describeShared } from './shared.ts';

/** Polls until the answer is the expected one; returns the last answer after a timeout. */
async function settle<T>(expected: T, ask: () => Promise<T>): Promise<T> {
  const endMs = Date.now() + 60_000;
  for (;;) {
    const answer = await ask();
    if (JSON.stringify(answer) === JSON.stringify(expected) || Date.now() > endMs) return answer;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const decode = (data: Data): string => (typeof data === 'string' ? data : new TextDecoder().decode(data ?? undefined));
const idsOf = async (group: Group): Promise<string> =>
  (await group.members())
    .map(({ id }) => id)
    .sort()
    .join(',');

describeShared({ library: 'kazoo', program: 'groups', what: 'groups' }, (shared) => {
  test.each<[GroupLayout, string, string, string]>([
    ['kazoo', 'join', 'leave', 'members'],
    ['kazoo-shallow', 'shallowJoin', 'shallowLeave', 'shallowMembers'],
  ])('a party has members of both, each seen by the other (%s)', async (layout, join, leave, members) => {
    const { client, foreign: kazoo } = shared;
    const path = `/shared/${layout}`;
    const group = new Group(client, path, { layout });
    await kazoo.ask(join, path, 'theirs-1');
    await using ours = group.join('ours-1');
    await ours.whenJoined();
    expect(await settle('ours-1,theirs-1', () => kazoo.ask(members, path))).toBe('ours-1,theirs-1');
    expect(await settle('ours-1,theirs-1', () => idsOf(group))).toBe('ours-1,theirs-1');
    await kazoo.ask(leave, path, 'theirs-1');
    expect(await settle('ours-1', () => idsOf(group))).toBe('ours-1');
    await ours.close();
    expect(await settle('', () => kazoo.ask(members, path))).toBe('');
  });

  test('a set is partitioned between both, and one acquires what the other releases', async () => {
    const { client, foreign: kazoo } = shared;
    const path = '/shared/partition';
    await kazoo.ask('partition', path, 'a,b,c,d,e', 'theirs', 1);
    expect(await kazoo.waitForEvent(`share ${path}`)).toBe(`share ${path} a,b,c,d,e`);
    const partitioner = new SetPartitioner(client, path, ['e', 'd', 'c', 'b', 'a'], {
      identifier: 'ours',
      quietMs: 1000,
    });
    const serving = (async () => {
      for await (const { recall } of partitioner) {
        await new Promise<void>((resolve) => {
          if (recall.aborted) resolve();
          else recall.addEventListener('abort', () => resolve(), { once: true });
        });
      }
    })();
    const share = async (): Promise<string> => partitioner.share?.items.join(',') ?? '';
    expect(await settle('a,c,e', share)).toBe('a,c,e');
    expect(await kazoo.waitForEvent(`share ${path}`)).toBe(`share ${path} b,d`);
    await kazoo.ask('stop', path);
    await kazoo.waitForEvent(`finished ${path}`);
    expect(await settle('a,b,c,d,e', share)).toBe('a,b,c,d,e');
    await partitioner.close();
    await serving;
  });
});

describeShared({ library: 'curator', program: 'groups', what: 'groups' }, (shared) => {
  test('a group has members of both, with their data', async () => {
    const { client, foreign: curator } = shared;
    const group = new Group(client, '/shared/group');
    await curator.ask('join', '/shared/group', 'theirs', 'hello');
    await using ours = group.join('ours', { data: 'one' });
    await ours.whenJoined();
    const both = 'ours=one,theirs=hello';
    expect(await settle(both, () => curator.ask('members', 'theirs'))).toBe(both);
    const seen = async (): Promise<string> => {
      const members = await group.members();
      return members
        .map(({ id, data }) => `${id}=${decode(data)}`)
        .sort()
        .join(',');
    };
    expect(await settle(both, seen)).toBe(both);
    await ours.set('two');
    const changed = 'ours=two,theirs=hello';
    expect(await settle(changed, () => curator.ask('members', 'theirs'))).toBe(changed);
    await ours.close();
    expect(await settle('theirs=hello', () => curator.ask('members', 'theirs'))).toBe('theirs=hello');
    await curator.ask('leave', 'theirs');
    expect(await settle('', seen)).toBe('');
  });

  test('a persistent node waits for that of the other, and takes over at once', async () => {
    const { client, foreign: curator } = shared;
    const path = '/shared/node';
    await curator.ask('node', path, 'theirs');
    await using ours = new PersistentEphemeral(client, path, { data: 'ours', owner: 'us' });
    const reason = async (): Promise<string> => (ours.presence.isPresent ? 'present' : ours.presence.reason);
    expect(await settle('taken', reason)).toBe('taken');
    expect((await client.get(path, { codec: text })).data).toBe('theirs');
    await curator.ask('closeNode', path);
    await ours.whenPresent();
    const { data, stat } = await client.get(path, { codec: text });
    expect(data).toBe('ours');
    expect(stat.ephemeralOwner).toBe(client.session?.id);
  });

  test('a TTL node is kept alive by either', async () => {
    const { client, foreign: curator } = shared;
    const path = '/shared/ttl';
    await curator.ask('ttlNode', path, 60_000, 'theirs');
    await using ours = new PersistentTtl(client, path, { ttlMs: 60_000, data: 'ours' });
    await ours.whenPresent();
    expect((await client.get(path, { codec: text })).data).toBe('theirs');
    expect((await client.children(path)).children).toEqual(['touch']);
    await curator.ask('closeTtlNode', path);
  });

  test('instances of services are found by both, with addresses and payloads', async () => {
    const { client, foreign: curator } = shared;
    const base = '/shared/services';
    await curator.ask('discovery', base);
    const discovery = new ServiceDiscovery(client, base);
    await curator.ask('register', base, 'search', 'theirs', '10.0.0.1', 80, 'north');
    await curator.ask('follow', base, 'search');
    await using ours = discovery.register({
      name: 'search',
      id: 'ours',
      address: '10.0.0.2',
      port: 81,
      payload: { zone: 'south' },
      uriSpec: '{scheme}://{address}:{port}/{name}',
    });
    await ours.whenRegistered();
    const both = 'ours|http://10.0.0.2:81/search|{zone=south},theirs|http://10.0.0.1:80/search|{zone=north}';
    expect(await settle(both, () => curator.ask('instances', base, 'search'))).toBe(both);
    expect(await settle(both, () => curator.ask('followed', 'search'))).toBe(both);
    expect(await curator.ask('names', base)).toBe('search');
    const seen = async (): Promise<string[]> =>
      (await discovery.instances<{ zone: string }>('search')).map(
        (instance) => `${instance.id} ${buildUri(instance)} ${instance.payload?.zone}`,
      );
    const expected = ['ours http://10.0.0.2:81/search south', 'theirs http://10.0.0.1:80/search north'];
    expect(await settle(expected, seen)).toEqual(expected);
    await ours.update({ payload: null });
    const updated = 'ours|http://10.0.0.2:81/search|null,theirs|http://10.0.0.1:80/search|{zone=north}';
    expect(await settle(updated, () => curator.ask('followed', 'search'))).toBe(updated);
    await curator.ask('unregister', base, 'theirs');
    expect(await settle(expected.length - 1, async () => (await seen()).length)).toBe(1);
    await ours.close();
    expect(await settle('', () => curator.ask('followed', 'search'))).toBe('');
  });
});

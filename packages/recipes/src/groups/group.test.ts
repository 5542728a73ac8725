import { text } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { runSolo } from '../testing/fleet.ts';
import { Group, type GroupLayout, type GroupView } from './group.ts';

const ids = (members: GroupView['members']): string[] => members.map(({ id }) => id).sort();
const decoder = new TextDecoder();

describe('a group', () => {
  test('lists its members with their data, and reports each change', () =>
    runSolo(1, async (fleet) => {
      const observer = await fleet.connectAs('observer');
      const [ann, bob] = [await fleet.connectAs('ann'), await fleet.connectAs('bob')];
      const received: string[] = [];
      const observation = new Group(observer, '/groups/shop').observe();
      const watching = (async () => {
        for await (const { joined, left, changed, members } of observation) {
          const data = (list: GroupView['members']): string =>
            list.map((member) => `${member.id}=${decoder.decode(member.data)}`).join(' ');
          received.push(`${members.length} joined ${data(joined)}; left ${data(left)}; changed ${data(changed)}`);
        }
      })();
      await observation.ready();
      await fleet.world.sleep(100);
      const first = new Group(ann, '/groups/shop').join('ann', { data: 'a1' });
      await first.whenJoined();
      await fleet.world.sleep(100);
      const second = new Group(bob, '/groups/shop').join('bob', { data: 'b1' });
      await second.whenJoined();
      await fleet.world.sleep(100);
      await first.set('a2');
      await fleet.world.sleep(100);
      await second.close();
      await fleet.world.sleep(100);
      expect(ids(await new Group(bob, '/groups/shop').members())).toEqual(['ann']);
      await observation.close();
      await watching;
      expect(received).toEqual([
        '0 joined ; left ; changed ',
        '1 joined ann=a1; left ; changed ',
        '2 joined bob=b1; left ; changed ',
        '2 joined ; left ; changed ann=a2',
        '1 joined ; left bob=b1; changed ',
      ]);
      await first.close();
      await Promise.all([observer, ann, bob].map((client) => client.close()));
    }));

  test.each<[GroupLayout, RegExp, string]>([
    ['curator', /^ann$/, 'hello'],
    ['kazoo', /^[0-9a-f]{32}__party__$/, 'ann'],
    ['kazoo-shallow', /^[0-9a-f]{32}-ann$/, ''],
  ])('has the znodes of the layout %s', (layout, name, data) =>
    runSolo(2, async (fleet) => {
      const client = await fleet.connectAs('app');
      const group = new Group(client, '/g', { layout });
      const options = layout === 'curator' ? { data: 'hello' } : {};
      await using membership = group.join('ann', options);
      await membership.whenJoined();
      const { children } = await client.children('/g');
      expect(children).toEqual([expect.stringMatching(name)]);
      const znode = await client.get(`/g/${children[0]}`, { codec: text });
      expect(znode.data).toBe(data);
      expect(znode.stat.ephemeralOwner).toBe(client.session?.id);
      expect(ids(await group.members())).toEqual(['ann']);
      await membership.close();
      expect(await group.members()).toEqual([]);
      await client.close();
    }),
  );

  test.each<GroupLayout>(['kazoo', 'kazoo-shallow'])(
    'does not change the identity of a member with its data (%s)',
    (layout) =>
      runSolo(5, async (fleet) => {
        const client = await fleet.connectAs('app');
        const group = new Group(client, '/g', { layout });
        await using membership = group.join('ann');
        await membership.whenJoined();
        await expect(membership.set('busy')).rejects.toThrow(TypeError);
        expect(ids(await group.members())).toEqual(['ann']);
        const { children } = await client.children('/g');
        expect((await client.exists(`/g/${children[0]}`))?.version).toBe(0);
        await membership.close();
        await client.close();
      }),
  );

  test('distinguishes members whose owner and id are equal when concatenated', () =>
    runSolo(7, async (fleet) => {
      const client = await fleet.connectAs('app');
      const group = new Group(client, '/g', { layout: 'kazoo' });
      const [one, two] = [group.join('b c', { owner: 'a' }), group.join('c', { owner: 'a b' })];
      expect(one.path).not.toBe(two.path);
      await Promise.all([one, two].map((membership) => membership.whenJoined()));
      expect(ids(await group.members())).toEqual(['b c', 'c']);
      await Promise.all([one, two].map((membership) => membership.close()));
      await client.close();
    }));

  test('refuses an id with a character that is invalid in znode names', () =>
    runSolo(6, async (fleet) => {
      const client = await fleet.connectAs('app');
      for (const id of ['a\u0000', 'a\u001f', 'smile \u{1f600}', 'half \ud83d', 'a/b', '..']) {
        expect(() => new Group(client, '/g').join(id), id).toThrow(RangeError);
      }
      await client.close();
    }));

  test.each<GroupLayout>(['curator', 'kazoo', 'kazoo-shallow'])(
    'lists a member that was restarted quickly once, and not its stale znode (%s)',
    (layout) =>
      runSolo(3, async (fleet) => {
        const before = await fleet.connectAs('ann', { sessionTimeoutMs: 30_000 });
        await new Group(before, '/g', { layout }).join('ann', { owner: 'host1' }).whenJoined();
        await fleet.kill(before);
        const after = await fleet.connectAs('ann');
        const group = new Group(after, '/g', { layout });
        await using membership = group.join('ann', { owner: 'host1' });
        await membership.whenJoined();
        expect(ids(await group.members())).toEqual(['ann']);
        const { children } = await after.children('/g');
        const stat = await after.exists(`/g/${children[0]}`);
        expect(stat?.ephemeralOwner).toBe(after.session?.id);
        await membership.close();
        await after.close();
      }),
  );

  test('a member whose session is lost leaves, and joins again in its next session', () =>
    runSolo(4, async (fleet) => {
      const observer = await fleet.connectAs('observer');
      const ann = await fleet.connectAs('ann');
      const membership = new Group(ann, '/g').join('ann');
      await membership.whenJoined();
      const received: string[] = [];
      const observation = new Group(observer, '/g').observe();
      const watching = (async () => {
        for await (const { joined, left } of observation) received.push(`+${ids(joined)} -${ids(left)}`);
      })();
      await observation.ready();
      fleet.world.network.partition(['ann'], ['zk1']);
      await fleet.world.until(() => observation.current?.length === 0, 20_000);
      expect(membership.isMember).toBe(false);
      fleet.world.network.heal();
      await membership.whenJoined();
      await fleet.world.until(() => observation.current?.length === 1, 20_000);
      await fleet.world.sleep(100);
      await observation.close();
      await watching;
      expect(received).toEqual(['+ann -', '+ -ann', '+ann -']);
      await membership.close();
      await Promise.all([observer, ann].map((client) => client.close()));
    }));
});

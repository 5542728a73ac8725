import { Perm } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { runSolo } from '../testing/fleet.ts';
import { Roster, type RosterEntries } from './roster.ts';

const say = (entries: RosterEntries | null): string =>
  [...(entries?.values() ?? [])]
    .map(({ name, data }) => `${name}=${new TextDecoder().decode(data)}`)
    .sort()
    .join(' ');

describe('a roster', () => {
  test('follows a znode that does not exist yet, is deleted and recreated', () =>
    runSolo(1, async (fleet) => {
      const client = await fleet.connectAs('app');
      const roster = new Roster(client, '/r');
      const becomes = async (expected: string): Promise<void> => {
        await fleet.world.until(() => say(roster.entries.current) === expected, 5000);
        expect(say(roster.entries.current)).toBe(expected);
      };
      expect(say(await roster.ready())).toBe('');
      await client.create('/r');
      await client.create('/r/a', '1');
      await becomes('a=1');
      await client.create('/r/a/deeper', 'not ours');
      await client.set('/r/a', '2');
      await client.create('/r/b', '3');
      await becomes('a=2 b=3');
      await client.deleteRecursive('/r');
      await becomes('');
      await client.createParents('/r/c', '4');
      await becomes('c=4');
      roster.close();
      await client.close();
    }));

  test('is correct again after a lost connection, whatever happened meanwhile, and reports it once', () =>
    runSolo(2, async (fleet) => {
      const client = await fleet.connectAs('app');
      const other = await fleet.connectAs('other');
      await other.create('/r');
      for (const name of ['a', 'b', 'c']) await other.create(`/r/${name}`, '1');
      const roster = new Roster(client, '/r');
      const received: string[] = [];
      const watching = (async () => {
        for await (const entries of roster.entries) received.push(say(entries));
      })();
      const first = await roster.ready();
      fleet.world.network.partition(['app'], ['zk1']);
      await fleet.world.until(() => client.state === 'lost', 20_000);
      await other.delete('/r/a');
      await other.set('/r/b', '2');
      await other.create('/r/d', '1');
      await fleet.world.sleep(5000);
      expect(say(roster.entries.current)).toBe('a=1 b=1 c=1');
      fleet.world.network.heal();
      await fleet.world.until(() => say(roster.entries.current) === 'b=2 c=1 d=1', 20_000);
      await fleet.world.sleep(1000);
      expect(roster.entries.current?.get('c')).toBe(first.get('c'));
      roster.close();
      await watching;
      expect(received).toEqual(['a=1 b=1 c=1', 'b=2 c=1 d=1']);
      await other.close();
      await client.close();
    }));

  test('has the data of a child that was deleted and created again, although it has the version of before', () =>
    runSolo(6, async (fleet) => {
      const client = await fleet.connectAs('app');
      await client.create('/r');
      await client.create('/r/a', '1');
      const { stat: first } = await client.get('/r/a');
      const roster = new Roster(client, '/r');
      expect(say(await roster.ready())).toBe('a=1');
      await client.transaction().delete('/r/a').create('/r/a', '2').commit();
      await fleet.world.until(() => say(roster.entries.current) === 'a=2', 5000);
      expect(say(roster.entries.current)).toBe('a=2');
      expect(roster.entries.current?.get('a')?.stat?.czxid).toBeGreaterThan(first.czxid);
      // The same while it has no connection.
      const other = await fleet.connectAs('other');
      fleet.world.network.partition(['app'], ['zk1']);
      await fleet.world.until(() => client.state !== 'connected', 20_000);
      await other.delete('/r/a');
      await other.create('/r/a', '3');
      fleet.world.network.heal();
      await fleet.world.until(() => say(roster.entries.current) === 'a=3', 20_000);
      expect(say(roster.entries.current)).toBe('a=3');
      roster.close();
      await other.close();
      await client.close();
    }));

  test('continues when all watches of the znode are removed', () =>
    runSolo(5, async (fleet) => {
      const client = await fleet.connectAs('app');
      await client.create('/r');
      const roster = new Roster(client, '/r');
      await roster.ready();
      await client.removeWatches('/r', 'any');
      await fleet.world.sleep(100);
      await client.create('/r/a', '1');
      await fleet.world.until(() => say(roster.entries.current) === 'a=1', 5000);
      expect(say(roster.entries.current)).toBe('a=1');
      await client.close();
      await expect(roster.entries.changed()).rejects.toThrow();
      expect(roster.entries.failure).toBeNull();
    }));

  test('leaves out a child that may not be read, and continues', () =>
    runSolo(4, async (fleet) => {
      const client = await fleet.connectAs('app');
      const acl = [{ scheme: 'digest', id: 'somebody:else', perms: Perm.all }];
      await client.create('/r');
      await client.create('/r/a', '1');
      await client.create('/r/secret', 'x', { acl });
      const roster = new Roster(client, '/r');
      expect(say(await roster.ready())).toBe('a=1');
      await client.create('/r/b', '2');
      await client.create('/r/secret2', 'x', { acl });
      await client.create('/r/c', '3');
      await fleet.world.until(() => say(roster.entries.current) === 'a=1 b=2 c=3', 5000);
      expect(say(roster.entries.current)).toBe('a=1 b=2 c=3');
      roster.close();
      await client.close();
    }));

  test('lists without reading if names are enough, and leaves out what it does not accept', () =>
    runSolo(3, async (fleet) => {
      const client = await fleet.connectAs('app');
      await client.create('/r');
      const roster = new Roster(client, '/r', { withData: false, accepts: (name) => name !== 'other' });
      await roster.ready();
      for (const name of ['a', 'other', 'b']) await client.create(`/r/${name}`, 'unread');
      await fleet.world.until(() => roster.entries.current?.size === 2, 5000);
      expect(say(roster.entries.current)).toBe('a= b=');
      await client.close();
      await expect(roster.entries.changed()).rejects.toThrow();
    }));
});

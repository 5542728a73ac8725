import type { Client } from '@meerkat/client';
import { expect, test } from 'vitest';
import { Group } from '../groups/group.ts';
import { Messenger } from '../groups/messenger.ts';
import { NameService } from '../groups/name-service.ts';
import { ServiceDiscovery } from '../groups/service-discovery.ts';
import { SetPartitioner } from '../groups/set-partitioner.ts';
import { runSolo } from '../testing/fleet.ts';

/** Invalid names of a child znode. */
const NAMES = ['', '.', '..', 'a/b', '/a', 'a/'];

/** Refused synchronously, by an exception. */
const AT_ONCE: Readonly<Record<string, (client: Client, name: string) => unknown>> = {
  'an id of a member': (client, name) => new Group(client, '/g').join(name),
  'a name of a service': (client, name) => new ServiceDiscovery(client, '/s').register({ name, id: 'a' }),
  'an id of an instance': (client, name) => new ServiceDiscovery(client, '/s').register({ name: 'search', id: name }),
  'a service that is followed': (client, name) => new ServiceDiscovery(client, '/s').observe(name),
  'a service to choose from': (client, name) => new ServiceDiscovery(client, '/s').provider(name),
};

/** Refused by a rejection. */
const REJECTED: Readonly<Record<string, (client: Client, name: string) => Promise<unknown>>> = {
  'a service that is looked for': (client, name) => new ServiceDiscovery(client, '/s').instances(name),
  'a mailbox of our own': (client, name) => new Messenger(client, '/m', name).open(),
  'messages to a mailbox of our own': (client, name) => new Messenger(client, '/m', name).receive().next(),
  'a receiver': (client, name) => new Messenger(client, '/m', 'ann').send(name, 'x'),
  'a name that is bound': (client, name) => new NameService(client, '/n').bind(`db/${name}/x`, 'h:1'),
  'a name that is changed': (client, name) => new NameService(client, '/n').rebind(`${name}//x`, 'h:1', { version: 0 }),
  'a name that is freed': (client, name) => new NameService(client, '/n').unbind(`${name}//x`, { version: 0 }),
};

test('an invalid znode name is refused at once, with a message', () =>
  runSolo(1, async (fleet) => {
    const client = await fleet.connectAs('app');
    const refusal = /becomes the name of a znode/;
    for (const name of NAMES) {
      for (const [what, ask] of Object.entries(AT_ONCE)) {
        expect(() => ask(client, name), `${what}: "${name}"`).toThrow(refusal);
      }
      for (const [what, ask] of Object.entries(REJECTED)) {
        // In a path of several names a slash separates them.
        if (what.startsWith('a name that is bound') && name === 'a/b') continue;
        await expect(ask(client, name), `${what}: "${name}"`).rejects.toThrow(refusal);
      }
    }
    const partitioner = (): unknown => new SetPartitioner(client, '/p', ['x'], { identifier: 'rack1/host1' });
    expect(partitioner).toThrow(refusal);
    for (const sequence of ['', '..', 'a//b']) {
      await expect(new NameService(client, '/n').nextId(sequence)).rejects.toThrow(refusal);
    }
    expect((await client.children('/')).children.filter((name) => name !== 'zookeeper')).toEqual([]);
    await client.close();
  }));

test('a member of a kazoo group may have any id, as it is not a znode name', () =>
  runSolo(2, async (fleet) => {
    const client = await fleet.connectAs('app');
    const group = new Group(client, '/party', { layout: 'kazoo' });
    const membership = group.join('rack1/host1');
    await membership.whenJoined();
    expect((await group.members()).map(({ id }) => id)).toEqual(['rack1/host1']);
    await membership.close();
    await client.close();
  }));

/** Repeated calls that are cancelled while they wait leave nothing behind: what they wait for may take a long time. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type CallOptions, type Client, TimeoutError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { runSolo } from '../testing/fleet.ts';
import { Group } from './group.ts';
import { PersistentEphemeral } from './persistent-ephemeral.ts';
import { PersistentTtl } from './persistent-ttl.ts';
import { ServiceDiscovery } from './service-discovery.ts';

/** `--expose-gc`, without a separate process. */
const collectGarbage = ((): (() => void) => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
})();

type Wait = (options: CallOptions) => Promise<unknown>;

/** Each waits until the service answers. */
const CASES: Readonly<Record<string, (client: Client) => Wait>> = {
  'PersistentEphemeral.whenPresent': (client) => {
    const presence = new PersistentEphemeral(client, '/it/a');
    return (options) => presence.whenPresent(options);
  },
  'PersistentEphemeral.set': (client) => {
    const presence = new PersistentEphemeral(client, '/it/a');
    return (options) => presence.set('x', options);
  },
  'Membership.whenJoined': (client) => {
    const membership = new Group(client, '/it').join('a', { owner: 'somebody' });
    return (options) => membership.whenJoined(options);
  },
  'Registration.whenRegistered': (client) => {
    const registration = new ServiceDiscovery(client, '/').register({ name: 'it', id: 'a' });
    return (options) => registration.whenRegistered(options);
  },
  'PersistentTtl.whenPresent': (client) => {
    const lease = new PersistentTtl(client, '/it/a', { ttlMs: 60_000 });
    return (options) => lease.whenPresent(options);
  },
  'GroupObservation.ready': (client) => {
    const observation = new Group(client, '/it').observe();
    return (options) => observation.ready(options);
  },
};

describe.each(Object.keys(CASES))('%s', (title) => {
  test('keeps nothing of a cancelled call', () =>
    runSolo(1, async (fleet) => {
      const client = await fleet.connectAs('app');
      fleet.world.network.block('zk1', 'app');
      const wait = CASES[title]!(client);
      const errors: WeakRef<TimeoutError>[] = [];
      for (let i = 0; i < 20; i++) {
        const error = await wait({ timeoutMs: 50 }).catch((reason: unknown) => reason);
        expect(error instanceof TimeoutError).toBe(true);
        errors.push(new WeakRef(error as TimeoutError));
      }
      // A dereferenced WeakRef keeps its target alive until the end of the turn.
      await new Promise(setImmediate);
      collectGarbage();
      expect(errors.filter((error) => error.deref() !== undefined).length).toBeLessThan(3);
      fleet.world.network.heal();
      await wait({});
      await client.close();
    }));
});

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { NoAuthError, Perm, RequestTooLargeError } from '@meerkat/client';
import { describe, expect, test, vi } from 'vitest';
import { runSolo } from '../testing/fleet.ts';
import { ServiceDiscovery } from './service-discovery.ts';
import { buildUri, formatInstance, parseInstance, type ServiceInstance } from './service-instance.ts';
import { anyOf, roundRobin, sticky } from './service-strategies.ts';

/** `--expose-gc`, without a separate process. */
const collectGarbage = ((): (() => void) => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
})();

/** As written by Curator 5.4.0 (Jackson 2.14). */
const RECORDED = {
  text: '{"name":"n","id":"id1","address":"h","port":80,"sslPort":null,"payload":"hello","registrationTimeUTC":1234,"serviceType":"DYNAMIC","uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://x","variable":false}]}}',
  map: '{"name":"n","id":"id1","address":"h","port":80,"sslPort":null,"payload":{"@class":"java.util.LinkedHashMap","a":1},"registrationTimeUTC":1234,"serviceType":"DYNAMIC","uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://x","variable":false}]}}',
  list: '{"name":"n","id":"id1","address":"h","port":80,"sslPort":null,"payload":["java.util.ArrayList",["a","b"]],"registrationTimeUTC":1234,"serviceType":"DYNAMIC","uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://x","variable":false}]}}',
  number:
    '{"name":"n","id":"id1","address":"h","port":80,"sslPort":null,"payload":7,"registrationTimeUTC":1234,"serviceType":"DYNAMIC","uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://x","variable":false}]}}',
  nothing:
    '{"name":"n","id":"id1","address":"h","port":80,"sslPort":null,"payload":null,"registrationTimeUTC":1234,"serviceType":"DYNAMIC","uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://x","variable":false}]}}',
};

const INSTANCE: ServiceInstance = {
  name: 'n',
  id: 'id1',
  address: 'h',
  port: 80,
  sslPort: null,
  payload: null,
  payloadClass: null,
  registrationTimeMs: 1234,
  serviceType: 'DYNAMIC',
  uriSpec: '{scheme}://x',
  isEnabled: true,
};

const PAYLOADS: readonly [keyof typeof RECORDED, unknown, string | null][] = [
  ['text', 'hello', null],
  ['map', { a: 1 }, 'java.util.LinkedHashMap'],
  ['list', ['a', 'b'], 'java.util.ArrayList'],
  ['number', 7, null],
  ['nothing', null, null],
];

describe('the record of an instance', () => {
  test.each(PAYLOADS)('is written and read as Curator does, with %s as payload', (kind, payload, payloadClass) => {
    const instance = { ...INSTANCE, payload, payloadClass };
    expect(formatInstance(instance)).toBe(RECORDED[kind]);
    expect(parseInstance(new TextEncoder().encode(RECORDED[kind]))).toEqual(instance);
  });

  test('has "enabled" only for a disabled instance, for old readers', () => {
    expect(formatInstance({ ...INSTANCE, isEnabled: false })).toMatch(/,"enabled":false\}$/);
    const off = new TextEncoder().encode(formatInstance({ ...INSTANCE, isEnabled: false }));
    expect(parseInstance(off)?.isEnabled).toBe(false);
  });

  test.each(['', '{', '[]', 'null', '{"name":"n"}', '{"name":1,"id":"x"}'])('is not %j', (text) => {
    expect(parseInstance(new TextEncoder().encode(text))).toBeNull();
  });

  test('has a URI with variables', () => {
    const instance = { ...INSTANCE, uriSpec: '{scheme}://{address}:{ssl-port}/{ q }?a={[}b{]}{unknown}', sslPort: 443 };
    expect(buildUri(instance, { q: 'find' })).toBe('https://h:443/find?a={b}');
    expect(buildUri({ ...INSTANCE, uriSpec: null })).toBe('');
    expect(buildUri({ ...INSTANCE, uriSpec: 'x{constructor}{toString}' })).toBe('x');
  });
});

describe('service discovery', () => {
  test("finds registered instances, at Curator's paths, and is notified of changes and removals", () =>
    runSolo(1, async (fleet) => {
      const server = await fleet.connectAs('server');
      const client = await fleet.connectAs('client');
      const theirs = new ServiceDiscovery(server, '/services');
      const ours = new ServiceDiscovery(client, '/services');
      expect(await ours.names()).toEqual([]);
      expect(await ours.instances('search')).toEqual([]);
      const observation = ours.observe<string>('search');
      await observation.ready();
      const registration = theirs.register({ name: 'search', id: 'a1', address: '10.0.0.1', port: 80, payload: 'x' });
      await registration.whenRegistered();
      expect((await client.exists('/services/search/a1'))?.ephemeralOwner).toBe(server.session?.id);
      await fleet.world.until(() => observation.current?.length === 1, 5000);
      expect(observation.current).toMatchObject([{ id: 'a1', address: '10.0.0.1', port: 80, payload: 'x' }]);
      await registration.update({ payload: 'y' });
      await fleet.world.until(() => observation.current?.[0]?.payload === 'y', 5000);
      expect(observation.current).toMatchObject([{ id: 'a1', payload: 'y' }]);
      expect(await ours.names()).toEqual(['search']);
      await registration.close();
      await fleet.world.until(() => observation.current?.length === 0, 5000);
      expect(observation.current).toEqual([]);
      await observation.close();
      await Promise.all([server, client].map((each) => each.close()));
    }));

  test('accepts the next update of a permanent instance after a refused one', () =>
    runSolo(9, async (fleet) => {
      const client = await fleet.connectAs('server');
      const discovery = new ServiceDiscovery(client, '/services');
      const description = { name: 'db', id: 'a', address: 'h', serviceType: 'PERMANENT' } as const;
      const registration = discovery.register<string>(description);
      await registration.whenRegistered();
      await expect(registration.update({ payload: 'x'.repeat(2_000_000) })).rejects.toThrow(RequestTooLargeError);
      await registration.update({ payload: 'small' });
      expect(await discovery.instances('db')).toMatchObject([{ id: 'a', payload: 'small' }]);
      await registration.close();
      await client.close();
    }));

  test.each(['PERMANENT', 'DYNAMIC'] as const)('discards a refused update of a %s instance', (serviceType) =>
    runSolo(11, async (fleet) => {
      const client = await fleet.connectAs('server');
      const discovery = new ServiceDiscovery(client, '/services');
      const registration = discovery.register<string>({ name: 'db', id: 'a', address: 'h', serviceType });
      await registration.whenRegistered();
      await registration.update({ port: 80 });
      const payload = 'x'.repeat(2_000_000);
      await expect(registration.update({ payload, sslPort: 443 })).rejects.toThrow(RequestTooLargeError);
      expect(registration.instance).toMatchObject({ port: 80, sslPort: null, payload: null });
      expect(registration.isRegistered).toBe(true);
      await registration.whenRegistered();
      await registration.update({ port: 81 });
      expect(registration.instance).toMatchObject({ port: 81, sslPort: null, payload: null });
      expect(await discovery.instances('db')).toMatchObject([{ id: 'a', port: 81, payload: null }]);
      await registration.close();
      await client.close();
    }),
  );

  test.each(['PERMANENT', 'DYNAMIC'] as const)(
    'accepts the next update of a %s instance after one that is not JSON',
    (serviceType) =>
      runSolo(12, async (fleet) => {
        const client = await fleet.connectAs('server');
        const discovery = new ServiceDiscovery(client, '/services');
        const registration = discovery.register<unknown>({ name: 'db', id: 'a', address: 'h', serviceType });
        await registration.whenRegistered();
        await expect(registration.update({ payload: 1n })).rejects.toThrow(TypeError);
        expect(registration.instance).toMatchObject({ address: 'h', payload: null });
        await registration.update({ address: 'h2' });
        expect(await discovery.instances('db')).toMatchObject([{ id: 'a', address: 'h2', payload: null }]);
        expect(() => discovery.register({ name: 'db', id: 'b', payload: 1n })).toThrow(TypeError);
        await registration.close();
        await client.close();
      }),
  );

  test.each(['PERMANENT', 'DYNAMIC'] as const)('keeps no memory of refused updates of a %s instance', (serviceType) =>
    runSolo(13, async (fleet) => {
      const client = await fleet.connectAs('server');
      const discovery = new ServiceDiscovery(client, '/services');
      const registration = discovery.register<object>({ name: 'db', id: 'a', serviceType });
      await registration.whenRegistered();
      const refused: WeakRef<object>[] = [];
      for (let i = 0; i < 10; i++) {
        const payload = { i, text: 'x'.repeat(1_100_000) };
        refused.push(new WeakRef(payload));
        await registration.update({ payload }).catch(() => {});
      }
      // A dereferenced WeakRef keeps its target alive until the end of the turn.
      await new Promise(setImmediate);
      collectGarbage();
      expect(refused.filter((reference) => reference.deref() !== undefined).length).toBeLessThan(3);
      expect(registration.instance.payload).toBeNull();
      await registration.close();
      await client.close();
    }),
  );

  test('fails once it no longer follows a service, instead of choosing among old instances', () =>
    runSolo(10, async (fleet) => {
      const server = await fleet.connectAs('server');
      const client = await fleet.connectAs('client');
      const discovery = new ServiceDiscovery(server, '/services');
      const registration = discovery.register({ name: 'search', id: 'a', address: 'h' });
      await registration.whenRegistered();
      const provider = new ServiceDiscovery(client, '/services').provider('search');
      expect(await provider.choose()).toMatchObject({ id: 'a' });
      // The administrator excludes others, which shows when all instances are listed again.
      await server.addAuth('digest', 'admin:x');
      await server.setAcl('/services/search', [{ scheme: 'auth', id: '', perms: Perm.all }]);
      for (const end of fleet.world.network.openEnds) end.breakStream();
      await fleet.world.until(() => client.state !== 'connected', 5000);
      await client.whenConnected();
      await fleet.world.sleep(1000);
      await expect(provider.choose()).rejects.toThrow(NoAuthError);
      await provider.close();
      await registration.close();
      await Promise.all([server, client].map((each) => each.close()));
    }));

  test('keeps a permanent instance when its process dies', () =>
    runSolo(2, async (fleet) => {
      const server = await fleet.connectAs('server');
      const client = await fleet.connectAs('client');
      const theirs = new ServiceDiscovery(server, '/services');
      const registration = theirs.register({ name: 'db', id: 'a', address: 'h', serviceType: 'PERMANENT' });
      await registration.whenRegistered();
      await registration.update({ address: 'h2' });
      await fleet.kill(server);
      await fleet.world.sleep(20_000);
      const ours = new ServiceDiscovery(client, '/services');
      expect(await ours.instances('db')).toMatchObject([{ id: 'a', address: 'h2', serviceType: 'PERMANENT' }]);
      const again = ours.register({ name: 'db', id: 'a', address: 'h3', serviceType: 'PERMANENT' });
      await again.whenRegistered();
      expect(await ours.instances('db')).toMatchObject([{ address: 'h3' }]);
      await again.close();
      expect(await ours.instances('db')).toEqual([]);
      await client.close();
    }));

  test('chooses among what is enabled, accepted and not down', () =>
    runSolo(3, async (fleet) => {
      const client = await fleet.connectAs('client');
      const discovery = new ServiceDiscovery(client, '/services');
      const registrations = ['a', 'b', 'c', 'd', 'e'].map((id, i) =>
        discovery.register({ name: 's', id, port: i, isEnabled: id !== 'e' }),
      );
      await Promise.all(registrations.map((registration) => registration.whenRegistered()));
      const filters = [({ port }: ServiceInstance) => port !== 3];
      await using provider = discovery.provider('s', { filters, down: { errorsMax: 2, timeoutMs: 5000 } });
      const choose = async (count: number): Promise<string> => {
        let chosen = '';
        for (let i = 0; i < count; i++) chosen += (await provider.choose())?.id ?? '-';
        return chosen;
      };
      await fleet.world.until(() => false, 200);
      expect(await choose(6)).toBe('abcabc');
      provider.noteError({ id: 'b' });
      expect(await choose(3)).toBe('abc');
      provider.noteError({ id: 'b' });
      expect(await choose(4)).toBe('acac');
      await fleet.world.sleep(6000);
      expect(await choose(3)).toBe('abc');
      await registrations[0]?.close();
      await fleet.world.sleep(200);
      expect(await choose(2)).toBe('bc');
      await using empty = discovery.provider('nobody');
      expect(await empty.choose()).toBeNull();
      await Promise.all(registrations.map((registration) => registration.close()));
      await client.close();
    }));

  test('a sticky strategy keeps its choice as long as possible, a random one reaches all instances', () => {
    const instances = ['a', 'b', 'c'].map((id) => ({ ...INSTANCE, id }));
    const random = { uint32: () => 0xf0000000 };
    const stick = sticky(roundRobin());
    expect([stick(instances, random).id, stick(instances, random).id]).toEqual(['a', 'a']);
    expect(stick(instances.slice(1), random).id).toBe('b');
    expect(stick(instances, random).id).toBe('b');
    let next = 0;
    const counting = { uint32: () => (next = (next + 0x55555555) % 2 ** 32) };
    const chosen = new Set(Array.from({ length: 9 }, () => anyOf()(instances, counting).id));
    expect([...chosen].sort()).toEqual(['a', 'b', 'c']);
  });

  test('is not followed by a provider whose constructor throws', () =>
    runSolo(30, async (fleet) => {
      const client = await fleet.connectAs('client');
      const watch = vi.spyOn(client, 'watch');
      const discovery = new ServiceDiscovery(client, '/services');
      expect(() => discovery.provider('search', { down: { timeoutMs: Number.NaN } })).toThrow(RangeError);
      expect(watch).not.toHaveBeenCalled();
      await client.close();
    }));
});

import {
  type Acl,
  AuthFailedError,
  BadVersionError,
  InvalidAclError,
  NoAuthError,
  NoNodeError,
  Perm,
} from '@meerkat/client';
import { TcpProxy } from '@meerkat/testing';
import { describe, expect, test } from 'vitest';
import { SUPER_CREDENTIALS } from '../../harness/server-process.ts';
import { errorOf, errorsOf } from '../outcome.ts';
import { StateLog } from '../state-log.ts';
import type { Site } from './site.ts';

const ANYONE: Acl = { perms: Perm.all, scheme: 'world', id: 'anyone' };
const CREATOR: Acl = { perms: Perm.all, scheme: 'auth', id: '' };
/** `ann:secret`, hashed by `printf 'ann:secret' | openssl dgst -binary -sha1 | base64`. */
const ANN: Acl = { perms: Perm.all, scheme: 'digest', id: 'ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=' };

/** ACLs and credentials. */
export function testPermissions(site: Site): void {
  describe('permissions', () => {
    test('without an ACL anyone may do everything', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      await client.create(path);
      const { acl, stat } = await client.getAcl(path);
      expect(acl).toEqual([ANYONE]);
      expect(stat.aversion).toBe(0);
      expect(await errorOf(client.getAcl(`${path}/none`))).toBeInstanceOf(NoNodeError);
    });

    test('setAcl replaces the list and counts its changes', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      await client.create(path);
      const readable: Acl = { perms: Perm.read | Perm.admin, scheme: 'world', id: 'anyone' };
      expect((await client.setAcl(path, [readable], { version: 0 })).aversion).toBe(1);
      expect((await client.getAcl(path)).acl).toEqual([readable]);
      expect(await errorOf(client.setAcl(path, [ANYONE], { version: 0 }))).toBeInstanceOf(BadVersionError);
      const refused = await errorOf(client.set(path, 'x'));
      expect(refused).toBeInstanceOf(NoAuthError);
      expect(refused).toMatchObject({ operation: 'set', path, outcome: 'not-applied' });
      expect((await client.setAcl(path, [ANYONE])).aversion).toBe(2);
      expect((await client.set(path, 'x')).version).toBe(1);
    });

    test('an invalid list is refused', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      for (const acl of [[], [CREATOR], [{ perms: 31, scheme: 'nonsense', id: 'x' }]]) {
        expect(await errorOf(client.create(path, '', { acl }))).toBeInstanceOf(InvalidAclError);
      }
      expect(await client.exists(path)).toBeNull();
    });

    test("credentials give access to their owner's znodes, to no other client except the super user", async () => {
      await using stranger = await site.connect();
      await using ann = await site.connect();
      await using root = await site.connect({ auth: [{ scheme: 'digest', auth: SUPER_CREDENTIALS }] });
      const path = site.freshPath();
      await ann.addAuth('digest', 'ann:secret');
      await ann.create(path, 'mine', { acl: [CREATOR] });
      expect((await ann.getAcl(path)).acl).toEqual([ANN]);
      expect((await ann.set(path, 'still mine')).version).toBe(1);
      for (const error of await errorsOf([
        stranger.get(path),
        stranger.set(path, ''),
        stranger.children(path),
        stranger.create(`${path}/child`),
        stranger.getAcl(path),
        stranger.setAcl(path, [ANYONE]),
      ])) {
        expect(error).toBeInstanceOf(NoAuthError);
      }
      expect((await root.set(path, 'not any more')).version).toBe(2);
      await stranger.addAuth('digest', new TextEncoder().encode('ann:secret'));
      expect((await stranger.set(path, 'shared')).version).toBe(3);
    });

    test('whoAmI returns the address and every identity', async () => {
      await using client = await site.connect();
      expect(await client.whoAmI()).toEqual([{ scheme: 'ip', user: '127.0.0.1' }]);
      await client.addAuth('digest', 'ann:secret');
      await client.addAuth('digest', SUPER_CREDENTIALS);
      const who = await client.whoAmI();
      expect([...who].sort((a, b) => `${a.scheme}${a.user}`.localeCompare(`${b.scheme}${b.user}`))).toEqual([
        { scheme: 'digest', user: 'ann' },
        { scheme: 'digest', user: 'super' },
        { scheme: 'ip', user: '127.0.0.1' },
        { scheme: 'super', user: '' },
      ]);
    });

    test('credentials are sent again on every new connection, before the requests that need them', async () => {
      await using proxy = await TcpProxy.start({ target: site.server.port });
      await using client = await site.connectThrough(proxy, { auth: [{ scheme: 'digest', auth: 'ann:secret' }] });
      await client.addAuth('digest', 'bob:hidden');
      const path = site.freshPath();
      await client.create(path, '', { acl: [CREATOR] });
      const states = new StateLog(client);
      for (let round = 1; round <= 3; round++) {
        await proxy.cut();
        await states.until('suspended');
        expect((await client.set(path, '')).version).toBe(round);
        expect((await client.whoAmI()).map(({ user }) => user).sort()).toEqual(['127.0.0.1', 'ann', 'bob']);
      }
    });

    test('credentials added while disconnected are sent on reconnect', async () => {
      await using proxy = await TcpProxy.start({ target: site.server.port });
      await using client = await site.connectThrough(proxy);
      const states = new StateLog(client);
      await proxy.refuse();
      await proxy.cut();
      await states.until('suspended');
      const proved = client.addAuth('digest', 'ann:secret');
      const created = client.create(site.freshPath(), '', { acl: [CREATOR] });
      await proxy.accept();
      await proved;
      await created;
    });

    test('refused credentials end the client, and all waiting requests reject', async () => {
      const client = await site.connect();
      const states = new StateLog(client);
      const { lostSignal } = client;
      const refused = errorOf(client.addAuth('nonsense', 'x'));
      const read = errorOf(client.get('/'));
      const error = await refused;
      expect(error).toBeInstanceOf(AuthFailedError);
      expect(error).toMatchObject({ operation: 'addAuth', code: 'AUTHFAILED', server: site.address });
      // A request after the credentials was not answered, or only before the server closed.
      expect((await read).code).toBe('AUTHFAILED');
      await states.until('auth-failed');
      expect(client.state).toBe('auth-failed');
      expect(lostSignal.aborted).toBe(true);
      for (const later of await errorsOf([
        client.get('/'),
        client.addAuth('digest', 'a:b'),
        client.ping(),
        client.whenConnected(),
        client.moveTo(),
      ])) {
        expect(later).toBeInstanceOf(AuthFailedError);
      }
      await client.close();
      expect(client.state).toBe('auth-failed');
    });

    test('connect rejects when the credentials are refused', async () => {
      const auth = [{ scheme: 'nonsense', auth: 'x' }];
      const outcome = site.connect({ auth }).then(
        // The session is created before the credentials are checked; then the refusal ends it.
        (client) => new StateLog(client).until('auth-failed').then(() => client.state),
        (error: AuthFailedError) => error,
      );
      const ended = await outcome;
      if (typeof ended === 'string') expect(ended).toBe('auth-failed');
      else expect(ended).toBeInstanceOf(AuthFailedError);
    });
  });
}

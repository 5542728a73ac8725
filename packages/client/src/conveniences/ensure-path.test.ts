import { OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { NodeExistsError } from '../errors.ts';
import { makeError } from '../make-error.ts';
import { FakeService } from '../testing/fake-service.ts';
import { VirtualSurroundings } from '../testing/virtual-surroundings.ts';
import { createParents, ensurePath } from './ensure-path.ts';

const surroundings = new VirtualSurroundings();

describe('ensurePath', () => {
  test('creates missing znodes and leaves existing ones', async () => {
    const service = new FakeService();
    service.put('/a', 'kept');
    await ensurePath(service, surroundings, '/a/b/c');
    expect(service.paths).toEqual(['/a', '/a/b', '/a/b/c']);
    expect(service.text('/a')).toBe('kept');
    await ensurePath(service, surroundings, '/');
    await ensurePath(service, surroundings, '/a/b/c');
    expect(service.paths).toHaveLength(3);
  });

  test('creates the znodes of the chroot too', async () => {
    const service = new FakeService('/apps/shop');
    await ensurePath(service, surroundings, '/');
    expect(service.paths).toEqual(['/apps', '/apps/shop']);
    await ensurePath(service, surroundings, '/a');
    expect(service.paths).toEqual(['/apps', '/apps/shop', '/apps/shop/a']);
  });

  test('creates containers with a given ACL', async () => {
    const service = new FakeService();
    const acl = [{ perms: 31, scheme: 'auth', id: '' }];
    await ensurePath(service, surroundings, '/a/b', { mode: 'container', acl });
    const creates = service.requests.filter(({ op }) => op === OpCode.createContainer);
    expect(creates).toMatchObject([
      { path: '/a', acl },
      { path: '/a/b', acl },
    ]);
  });

  test('accepts znodes that another client creates at the same time', async () => {
    const service = new FakeService();
    service.meanwhile = ({ op }) => {
      if (op === OpCode.create2) for (const path of ['/a', '/a/b']) if (!service.znodes.has(path)) service.put(path);
    };
    await ensurePath(service, surroundings, '/a/b/c');
    expect(service.paths).toEqual(['/a', '/a/b', '/a/b/c']);
  });

  test('recreates a parent that is deleted meanwhile', async () => {
    const service = new FakeService();
    service.put('/a');
    let isGone = false;
    service.meanwhile = ({ op }) => {
      if (op !== OpCode.create2 || isGone) return;
      isGone = true;
      service.znodes.delete('/a');
    };
    await ensurePath(service, surroundings, '/a/b');
    expect(service.paths).toEqual(['/a', '/a/b']);
  });

  test.each(['not-sent', 'not-applied', 'reply-lost'] as const)('survives a lost connection: %s', async (fault) => {
    const service = new FakeService();
    let creates = 0;
    service.fault = ({ op }) => (op === OpCode.create2 && ++creates === 2 ? fault : null);
    await ensurePath(service, surroundings, '/a/b/c');
    expect(service.paths).toEqual(['/a', '/a/b', '/a/b/c']);
  });

  test('is not stopped by an ancestor that it may not read', async () => {
    const service = new FakeService();
    service.put('/secret');
    const request = service.request.bind(service);
    service.request = async (made, options, about) => {
      if (made.op === OpCode.exists && made.path === '/secret') {
        throw makeError({ kind: 'refused', code: -102, server: null }, about);
      }
      return await request(made, options, about);
    };
    await ensurePath(service, surroundings, '/secret/a');
    expect(service.paths).toEqual(['/secret', '/secret/a']);
  });

  test('reports which znode it may not create', async () => {
    const service = new FakeService();
    const request = service.request.bind(service);
    service.request = async (made, options, about) => {
      if (made.op === OpCode.create2 && made.path === '/a/b') {
        throw makeError({ kind: 'refused', code: -102, server: null }, about);
      }
      return await request(made, options, about);
    };
    await expect(ensurePath(service, surroundings, '/a/b/c')).rejects.toMatchObject({ code: 'NOAUTH', path: '/a/b' });
  });

  test('rejects an illegal path', async () => {
    await expect(ensurePath(new FakeService(), surroundings, 'a')).rejects.toMatchObject({ code: 'BADARGUMENTS' });
  });
});

describe('createParents', () => {
  test('is one request when the parent exists', async () => {
    const service = new FakeService();
    await createParents(service, surroundings, '/a', 'x');
    expect(service.requests).toHaveLength(1);
    expect(service.text('/a')).toBe('x');
  });

  test('creates missing parents with the given mode and ACL', async () => {
    const service = new FakeService('/app');
    const acl = [{ perms: 31, scheme: 'auth', id: '' }];
    const { path, stat } = await createParents(service, surroundings, '/a/b/c-', 'x', {
      mode: 'ephemeral',
      sequential: true,
      parentMode: 'container',
      acl,
    });
    expect(path).toBe('/a/b/c-0000000000');
    expect(stat.ephemeralOwner).toBe(service.sessionId);
    expect(service.requests.filter(({ op }) => op === OpCode.createContainer)).toMatchObject([
      { path: '/app', acl },
      { path: '/app/a', acl },
      { path: '/app/a/b', acl },
    ]);
  });

  test('supports a separate ACL for the parents', async () => {
    const service = new FakeService();
    const acl = [{ perms: 31, scheme: 'auth', id: '' }];
    const parentAcl = [{ perms: 31, scheme: 'world', id: 'anyone' }];
    await createParents(service, surroundings, '/a/b', '', { acl, parentAcl });
    expect(service.requests.filter(({ op }) => op === OpCode.create2)).toMatchObject([
      { path: '/a/b', acl },
      { path: '/a', acl: parentAcl },
      { path: '/a/b', acl },
    ]);
  });

  test('accepts names that are the number alone', async () => {
    const service = new FakeService();
    expect(await createParents(service, surroundings, '/queue/', '', { sequential: true })).toMatchObject({
      path: '/queue/0000000000',
    });
  });

  test('is refused when the znode exists', async () => {
    const service = new FakeService();
    service.put('/a');
    await expect(createParents(service, surroundings, '/a')).rejects.toBeInstanceOf(NodeExistsError);
  });
});

import { OpCode, type Request } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { NoNodeError, SessionLostError } from '../errors.ts';
import { FakeService } from '../testing/fake-service.ts';
import { drainMicrotasks, VirtualSurroundings } from '../testing/virtual-surroundings.ts';
import { createProtected, withoutProtection } from './create-protected.ts';

const MARKED = /^\/locks\/_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-lock-\d{10}$/;
const isCreate = (request: Request) => request.op === OpCode.create2;

function setUp() {
  const service = new FakeService();
  service.put('/locks');
  service.requests.length = 0;
  const surroundings = new VirtualSurroundings();
  const create = (options: Parameters<typeof createProtected>[4] = {}, path = '/locks/lock-') =>
    createProtected(service.operations(), surroundings, path, 'me', options);
  return { service, surroundings, create };
}

const ephemeralSequential = { mode: 'ephemeral', sequential: true } as const;

describe('a protected create', () => {
  test("marks the name in the form of Curator's protection mode", async () => {
    const { service, create } = setUp();
    const { path, stat } = await create(ephemeralSequential);
    expect(path).toMatch(MARKED);
    expect(stat.ephemeralOwner).toBe(service.sessionId);
    expect(withoutProtection(path.slice('/locks/'.length))).toBe('lock-0000000000');
    expect(withoutProtection('lock-0000000000')).toBe('lock-0000000000');
    expect(withoutProtection('_c_me-lock-0000000000')).toBe('_c_me-lock-0000000000');
  });

  test('accepts a name that is the number alone, and a znode directly below the root', async () => {
    const { create } = setUp();
    expect((await create({ sequential: true }, '/locks/')).path).toMatch(/^\/locks\/_c_[0-9a-f-]{36}-\d{10}$/);
    expect((await create({}, '/a')).path).toMatch(/^\/_c_[0-9a-f-]{36}-a$/);
  });

  test('accepts another mark, and finds its znode by that', async () => {
    const { service, create } = setUp();
    service.fault = (request) => (isCreate(request) && service.requests.length === 1 ? 'reply-lost' : null);
    const { path } = await create({ ...ephemeralSequential, mark: '5b2f9d0e__' });
    expect(path).toBe('/locks/5b2f9d0e__lock-0000000000');
    expect(service.requests.filter(isCreate)).toHaveLength(1);
  });

  test.each([ephemeralSequential, { mode: 'ephemeral' }, { sequential: true }, {}] as const)(
    'of %j finds its own znode when the reply was lost',
    async (options) => {
      const { service, create } = setUp();
      service.fault = (request) => (isCreate(request) && service.requests.length === 1 ? 'reply-lost' : null);
      const { path } = await create(options);
      expect(service.paths).toEqual(['/locks', path]);
      expect(service.requests.filter(isCreate)).toHaveLength(1);
    },
  );

  test('creates it again when the request was lost', async () => {
    const { service, create } = setUp();
    service.fault = (request) => (isCreate(request) && service.requests.length === 1 ? 'not-applied' : null);
    const { path } = await create(ephemeralSequential);
    expect(service.paths).toEqual(['/locks', path]);
    expect(service.requests.filter(isCreate)).toHaveLength(2);
  });

  test('creates it again without a lookup when nothing was sent', async () => {
    const { service, create } = setUp();
    service.fault = () => (service.requests.length === 1 ? 'not-sent' : null);
    await create(ephemeralSequential);
    expect(service.requests.map(({ op }) => op)).toEqual([OpCode.create2, OpCode.create2]);
  });

  test('does not take an ephemeral of a session that was replaced for its own', async () => {
    const { service, create } = setUp();
    service.fault = (request) => (isCreate(request) && service.requests.length === 1 ? 'reply-lost' : null);
    // A service that loses the session without removing its znodes at once.
    service.meanwhile = (request) => {
      if (request.op === OpCode.getChildren2) service.sessionId = 2n;
    };
    const { path, stat } = await create(ephemeralSequential);
    expect(stat.ephemeralOwner).toBe(2n);
    expect(service.paths).toHaveLength(3);
    expect(path).toBe(service.paths[2]);
  });

  test('stops retrying when the connection is lost each time, and deletes its znode', async () => {
    const { service, create } = setUp();
    service.fault = (request) => (isCreate(request) ? 'reply-lost' : null);
    service.meanwhile = (request) => {
      // Another client deletes it each time, so that it is never found.
      if (request.op !== OpCode.getChildren2) return;
      if (service.requests.filter(isCreate).length < 10) {
        for (const path of service.paths.slice(1)) service.znodes.delete(path);
      }
    };
    await expect(create(ephemeralSequential)).rejects.toMatchObject({ code: 'CONNECTIONLOSS', outcome: 'unknown' });
    await drainMicrotasks();
    expect(service.paths).toEqual(['/locks']);
  });

  test('rejects at once with what the server refuses', async () => {
    const { service, create } = setUp();
    await expect(create({}, '/missing/a')).rejects.toBeInstanceOf(NoNodeError);
    await expect(create({}, 'relative')).rejects.toMatchObject({ code: 'BADARGUMENTS' });
    expect(service.requests).toHaveLength(1);
  });

  test('leaves nothing behind when its caller cancels while the outcome is unknown', async () => {
    const { service, create } = setUp();
    const controller = new AbortController();
    service.fault = (request) => (isCreate(request) ? 'reply-lost' : null);
    service.meanwhile = () => controller.abort('not needed any more');
    const result = create({ ...ephemeralSequential, signal: controller.signal });
    await expect(result).rejects.toMatchObject({
      name: 'AbortError',
      outcome: 'unknown',
      cause: 'not needed any more',
      operation: 'createProtected',
    });
    await drainMicrotasks();
    expect(service.paths).toEqual(['/locks']);
  });

  test('rejects with outcome unknown when the session is lost while the outcome is', async () => {
    const { service, create } = setUp();
    const operations = service.operations();
    service.fault = (request) => (isCreate(request) ? 'reply-lost' : null);
    const lost = {
      ...operations,
      session: operations.session,
      children: (path: string) => Promise.reject(new SessionLostError({ operation: 'children', path })),
    };
    const result = createProtected(lost, new VirtualSurroundings(), '/locks/lock-', '', ephemeralSequential);
    await expect(result).rejects.toMatchObject({ code: 'SESSIONLOST', outcome: 'unknown', path: '/locks/lock-' });
    await expect(create({ ...ephemeralSequential, timeoutMs: 0 })).rejects.toMatchObject({
      code: 'TIMEOUT',
      outcome: 'not-applied',
    });
  });

  test('applies its timeout to all its requests together', async () => {
    const { service, surroundings, create } = setUp();
    service.fault = (request) => (isCreate(request) ? 'not-applied' : null);
    service.meanwhile = () => {
      surroundings.nowMs += 40;
    };
    await expect(create({ ...ephemeralSequential, timeoutMs: 100 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    await drainMicrotasks();
    expect(service.paths).toEqual(['/locks']);
  });
});

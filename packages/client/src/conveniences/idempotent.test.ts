import { OpCode, type Request } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { BadArgumentsError, BadVersionError, NoNodeError } from '../errors.ts';
import { FakeService, type Fault } from '../testing/fake-service.ts';
import { VirtualSurroundings } from '../testing/virtual-surroundings.ts';
import { deleteIdempotent, isNextVersion, setIdempotent } from './idempotent.ts';

function setUp(fault: Fault | null, meanwhile: (service: FakeService, count: number) => void = () => {}) {
  const service = new FakeService();
  service.put('/a', 'old');
  let writes = 0;
  const isWrite = (request: Request) => request.op === OpCode.setData || request.op === OpCode.delete;
  service.meanwhile = (request) => {
    if (isWrite(request)) meanwhile(service, ++writes);
  };
  service.fault = (request) => (isWrite(request) && writes <= 1 ? fault : null);
  const surroundings = new VirtualSurroundings();
  return {
    service,
    set: (version = 0) => setIdempotent(service.operations(), surroundings, '/a', 'new', { version }),
    remove: (version = 0) => deleteIdempotent(service.operations(), surroundings, '/a', { version }),
    writes: () => writes,
  };
}

describe('an idempotent set', () => {
  test.each([null, 'not-sent', 'not-applied', 'reply-lost'] as const)(
    'changes the znode exactly once when the fault is %s',
    async (fault) => {
      const { service, set } = setUp(fault);
      expect(await set()).toMatchObject({ version: 1 });
      expect(service.text('/a')).toBe('new');
    },
  );

  test('is refused when another client was faster', async () => {
    const { service, set } = setUp(null, ({ put }, count) => count === 1 && put.call(service, '/a', 'theirs'));
    await expect(set()).rejects.toMatchObject({ code: 'BADVERSION', outcome: 'not-applied' });
  });

  test('does not take the data of another client for its own', async () => {
    const { set } = setUp('not-applied', (service, count) => count === 2 && service.put('/a', 'theirs'));
    await expect(set()).rejects.toBeInstanceOf(BadVersionError);
  });

  test('says that the outcome is unknown when a later change hides it', async () => {
    const { set } = setUp('reply-lost', (service, count) => count === 2 && service.put('/a', 'later'));
    await expect(set()).rejects.toMatchObject({ code: 'BADVERSION', outcome: 'unknown' });
  });

  test('needs a version', async () => {
    const { set, writes } = setUp(null);
    await expect(set(-1)).rejects.toBeInstanceOf(BadArgumentsError);
    await expect(set(Number.NaN)).rejects.toBeInstanceOf(BadArgumentsError);
    expect(writes()).toBe(0);
  });
});

describe('an idempotent delete', () => {
  test.each([null, 'not-sent', 'not-applied', 'reply-lost'] as const)('is done when the fault is %s', async (fault) => {
    const { service, remove } = setUp(fault);
    await remove();
    expect(service.paths).toEqual([]);
  });

  test('of a znode that never existed is refused', async () => {
    const { service, remove } = setUp(null);
    service.znodes.delete('/a');
    await expect(remove()).rejects.toBeInstanceOf(NoNodeError);
  });

  test('is refused when the version differs, also after a lost connection', async () => {
    const { service, remove } = setUp('not-applied', (it, count) => count === 2 && it.put('/a', 'theirs'));
    await expect(remove()).rejects.toMatchObject({ code: 'BADVERSION', outcome: 'unknown' });
    expect(service.paths).toEqual(['/a']);
  });
});

test('versions wrap around, and the newest servers skip -1, which means any', () => {
  expect(isNextVersion(0, 1)).toBe(true);
  expect(isNextVersion(0, 2)).toBe(false);
  expect(isNextVersion(2 ** 31 - 1, -(2 ** 31))).toBe(true);
  expect(isNextVersion(-2, -1)).toBe(true);
  expect(isNextVersion(-2, 0)).toBe(true);
});

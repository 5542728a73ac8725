import { OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { NoNodeError, NotEmptyError } from '../errors.ts';
import { FakeService, type Fault } from '../testing/fake-service.ts';
import { VirtualSurroundings } from '../testing/virtual-surroundings.ts';
import { type DeleteProgress, type DeleteRecursiveOptions, deleteRecursive } from './delete-recursive.ts';

function setUp(chroot = '') {
  const service = new FakeService(chroot);
  const remove = (path: string, options: DeleteRecursiveOptions = {}) =>
    deleteRecursive(
      service.operations(),
      new VirtualSurroundings(),
      path,
      service.absolute(path, 'deleteRecursive'),
      options,
    );
  return { service, remove };
}

/** /a with 3 children of 3 children each: 13 znodes. */
function plant(service: FakeService) {
  service.put('/a');
  for (const i of [1, 2, 3]) {
    service.put(`/a/${i}`);
    for (const j of [1, 2, 3]) service.put(`/a/${i}/${j}`);
  }
}

describe('a recursive delete', () => {
  test('deletes children before their parents and says how many', async () => {
    const { service, remove } = setUp();
    plant(service);
    service.put('/b');
    const progress: DeleteProgress[] = [];
    expect(await remove('/a', { onProgress: (countSoFar) => progress.push(countSoFar) })).toBe(13);
    expect(service.paths).toEqual(['/b']);
    expect(progress).toHaveLength(14);
    expect(progress.at(0)).toEqual({ deleted: 0, found: 13 });
    expect(progress.at(-1)).toEqual({ deleted: 13, found: 13 });
  });

  test('of a missing znode is refused', async () => {
    await expect(setUp().remove('/a')).rejects.toBeInstanceOf(NoNodeError);
  });

  test.each(['/', '/zookeeper', '/zookeeper/config', '/zookeeper/quota'])('never deletes %s', async (path) => {
    await expect(setUp().remove(path)).rejects.toMatchObject({ code: 'BADARGUMENTS', path });
  });

  test('never deletes the root of a chroot, nor a system znode hidden by a chroot', async () => {
    await expect(setUp('/app').remove('/')).rejects.toMatchObject({ code: 'BADARGUMENTS' });
    await expect(setUp('/zookeeper').remove('/quota')).rejects.toMatchObject({ code: 'BADARGUMENTS' });
  });

  test('also deletes children that are created meanwhile', async () => {
    const { service, remove } = setUp();
    plant(service);
    let isPut = false;
    service.meanwhile = (request) => {
      if (request.op !== OpCode.delete || isPut) return;
      isPut = true;
      service.put('/a/2/late');
    };
    expect(await remove('/a')).toBe(14);
    expect(service.paths).toEqual([]);
  });

  test('rejects when another client keeps creating children', async () => {
    const { service, remove } = setUp();
    service.put('/a');
    let count = 0;
    service.meanwhile = (request) => {
      if (request.op === OpCode.delete && request.path === '/a') service.put(`/a/${count++}`);
    };
    await expect(remove('/a')).rejects.toBeInstanceOf(NotEmptyError);
    expect(count).toBe(10);
  });

  test('accepts deletions by other clients, and does not count them', async () => {
    const { service, remove } = setUp();
    plant(service);
    let isDone = false;
    service.meanwhile = (request) => {
      if (request.op !== OpCode.delete || isDone) return;
      isDone = true;
      for (const path of ['/a/1/1', '/a/1/2', '/a/1/3', '/a/1']) service.znodes.delete(path);
    };
    expect(await remove('/a')).toBe(9);
    expect(service.paths).toEqual([]);
  });

  test('accepts that another client deletes znodes before it has listed their children', async () => {
    const { service, remove } = setUp();
    plant(service);
    service.meanwhile = (request) => {
      if (request.op !== OpCode.getChildren2 || request.path !== '/a/1') return;
      for (const path of ['/a/1/1', '/a/1/2', '/a/1/3', '/a/1']) service.znodes.delete(path);
    };
    expect(await remove('/a')).toBe(9);
    expect(service.paths).toEqual([]);
  });

  test.each(['not-sent', 'not-applied', 'reply-lost'] as const)(
    'counts each znode once when connections are lost: %s',
    async (fault) => {
      const { service, remove } = setUp();
      plant(service);
      let deletes = 0;
      service.fault = (request) => (request.op === OpCode.delete && ++deletes % 3 === 0 ? fault : null);
      expect(await remove('/a')).toBe(13);
      expect(service.paths).toEqual([]);
    },
  );

  test('counts a znode whose deletion was lost, also when the next attempt was not sent', async () => {
    const { service, remove } = setUp();
    service.put('/a');
    const faults: Fault[] = ['reply-lost', 'not-sent'];
    service.fault = (request) => (request.op === OpCode.delete ? (faults.shift() ?? null) : null);
    const progress: DeleteProgress[] = [];
    expect(await remove('/a', { onProgress: (countSoFar) => progress.push(countSoFar) })).toBe(1);
    expect(progress.at(-1)).toEqual({ deleted: 1, found: 1 });
    expect(faults).toEqual([]);
  });

  test('stops when it is aborted, and says that a part may be gone', async () => {
    const { service, remove } = setUp();
    service.put('/a');
    for (let i = 0; i < 1000; i++) service.put(`/a/${i}`);
    const controller = new AbortController();
    const onProgress = ({ deleted }: DeleteProgress) => {
      if (deleted === 10) controller.abort('enough');
    };
    const result = remove('/a', { signal: controller.signal, onProgress });
    await expect(result).rejects.toMatchObject({ code: 'ABORTED', outcome: 'unknown', cause: 'enough' });
    // What was in flight is gone, the rest has not been requested.
    expect(service.paths.length).toBeGreaterThan(800);
  });

  test('says that a part may be gone when it is aborted before the first answer', async () => {
    const { service, remove } = setUp();
    plant(service);
    const controller = new AbortController();
    service.meanwhile = (request) => {
      if (request.op === OpCode.delete) controller.abort('enough');
    };
    service.fault = (request) => (request.op === OpCode.delete ? 'reply-lost' : null);
    await expect(remove('/a', { signal: controller.signal })).rejects.toMatchObject({
      code: 'ABORTED',
      outcome: 'unknown',
    });
  });

  test('has deleted nothing when it is aborted while it looks for znodes', async () => {
    const { service, remove } = setUp();
    plant(service);
    const controller = new AbortController();
    const onProgress = () => controller.abort('enough');
    await expect(remove('/a', { signal: controller.signal, onProgress })).rejects.toMatchObject({
      code: 'ABORTED',
      outcome: 'not-applied',
    });
    expect(service.paths).toHaveLength(13);
  });

  test.each([0, 1, 13])('ends with what the listener throws when it is told %i', async (count) => {
    const { service, remove } = setUp();
    plant(service);
    const error = new RangeError('no');
    await expect(
      remove('/a', {
        onProgress: ({ deleted }) => {
          if (deleted === count) throw error;
        },
      }),
    ).rejects.toBe(error);
  });
});

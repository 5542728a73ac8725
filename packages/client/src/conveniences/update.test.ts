import { OpCode, type Request } from '@meerkat/protocol';
import { describe, expect, test, vi } from 'vitest';
import type { Data } from '../data.ts';
import { NoNodeError } from '../errors.ts';
import { FakeService, type Fault } from '../testing/fake-service.ts';
import { VirtualSurroundings } from '../testing/virtual-surroundings.ts';
import { DATA_CODEC, type UpdateOptions, type UpdateOrCreateOptions, update } from './update.ts';

const isWrite = (request: Request) => request.op === OpCode.setData || request.op === OpCode.create2;
const text = (data: Uint8Array | null) => new TextDecoder().decode(data ?? undefined);
const addOne = (data: Uint8Array | null) => `${Number(text(data)) + 1}`;

/** @param faults of the first write, the second … */
function setUp(faults: readonly (Fault | null)[] = []) {
  const service = new FakeService();
  service.put('/n', '5');
  let writes = 0;
  const others: ((count: number) => void)[] = [];
  service.meanwhile = (request) => {
    if (isWrite(request)) writes++;
    for (const other of others) other(isWrite(request) ? writes : 0);
  };
  service.fault = (request) => (isWrite(request) ? (faults[writes - 1] ?? null) : null);
  const surroundings = new VirtualSurroundings();
  const run = async (
    change: Parameters<typeof update<Uint8Array, Data>>[3],
    options: UpdateOptions | UpdateOrCreateOptions = {},
    path = '/n',
  ) => {
    const result = update(service.operations(), surroundings, path, change, DATA_CODEC, options);
    result.catch(() => {});
    await surroundings.runTimers();
    return await result;
  };
  return { service, surroundings, others, run, writes: () => writes };
}

describe('an update', () => {
  test("writes the function's result for the current value, and returns the znode", async () => {
    const { service, run } = setUp();
    const result = await run(addOne);
    expect(service.text('/n')).toBe('6');
    expect(text(result!.data)).toBe('6');
    expect(result!.stat.version).toBe(1);
  });

  test('starts over when another client was faster, and loses no change', async () => {
    const { service, surroundings, others, run } = setUp();
    others.push((count) => {
      if (count > 0 && count <= 4) service.put('/n', `${Number(service.text('/n')) + 10}`);
    });
    surroundings.uint32 = 2 ** 31;
    const change = vi.fn(addOne);
    await run(change);
    expect(service.text('/n')).toBe('46');
    expect(change).toHaveBeenCalledTimes(5);
    // The third and the fourth race wait half of 8 and 16 ms: the random factor is one half.
    expect(surroundings.delaysMs).toEqual([4, 8]);
  });

  test('leaves the znode unchanged when the function returns undefined', async () => {
    const { service, run, writes } = setUp();
    expect(text((await run(() => undefined))!.data)).toBe('5');
    expect(writes()).toBe(0);
    expect(service.znodes.get('/n')?.version).toBe(0);
  });

  test('rejects with what the function throws', async () => {
    const { run } = setUp();
    const error = new RangeError('no');
    await expect(
      run(() => {
        throw error;
      }),
    ).rejects.toBe(error);
  });

  test.each(['not-sent', 'not-applied'] as const)('is applied once when the fault is %s', async (fault) => {
    const { service, run } = setUp([fault, fault]);
    await run(addOne);
    expect(service.text('/n')).toBe('6');
  });

  test('counts no change twice, nor another client’s as its own: the outcome is unknown', async () => {
    const ours = setUp(['reply-lost']);
    await expect(ours.run(addOne)).rejects.toMatchObject({ code: 'CONNECTIONLOSS', outcome: 'unknown' });
    expect(ours.service.text('/n')).toBe('6');

    const theirs = setUp(['not-applied']);
    theirs.others.push((count) => count === 0 && theirs.writes() === 1 && once(() => theirs.service.put('/n', '6')));
    const once = makeOnce();
    await expect(theirs.run(addOne)).rejects.toMatchObject({ code: 'CONNECTIONLOSS', outcome: 'unknown' });
    expect(theirs.service.text('/n')).toBe('6');
  });

  test('continues when the current state cannot be its own write', async () => {
    const { service, others, run, writes } = setUp(['not-applied']);
    const once = makeOnce();
    others.push((count) => count === 0 && writes() === 1 && once(() => service.put('/n', '100')));
    await run(addOne);
    expect(service.text('/n')).toBe('101');
  });

  test('does not know its outcome when the znode was deleted and created again', async () => {
    const { service, others, run, writes } = setUp(['reply-lost']);
    const once = makeOnce();
    others.push((count) => {
      if (count === 0 && writes() === 1) {
        once(() => {
          service.znodes.delete('/n');
          service.put('/n', '5');
        });
      }
    });
    await expect(run(addOne)).rejects.toMatchObject({ outcome: 'unknown' });
  });

  test('with idempotent: true takes the wanted value for its own', async () => {
    const { service, run } = setUp(['reply-lost']);
    expect((await run(() => 'on', { idempotent: true }))!.stat.version).toBe(1);
    expect(service.text('/n')).toBe('on');
  });

  test('with idempotent: true continues when later changes hide its outcome', async () => {
    const { service, others, run, writes } = setUp(['reply-lost']);
    const once = makeOnce();
    others.push((count) => count === 0 && writes() === 1 && once(() => service.put('/n', 'off')));
    await run(() => 'on', { idempotent: true });
    expect(service.text('/n')).toBe('on');
  });

  test('stops retrying when the connection is lost repeatedly', async () => {
    const { run, writes } = setUp(Array.from({ length: 100 }, () => 'not-applied' as const));
    await expect(run(addOne)).rejects.toMatchObject({ code: 'CONNECTIONLOSS' });
    expect(writes()).toBe(10);
  });
});

describe('an update of a missing znode', () => {
  test('is refused', async () => {
    await expect(setUp().run(addOne, {}, '/missing')).rejects.toBeInstanceOf(NoNodeError);
  });

  test('creates it with create: true, and passes null to the function', async () => {
    const { service, run } = setUp();
    const change = vi.fn(() => 'new');
    const result = await run(change, { create: true, mode: 'ephemeral' }, '/m');
    expect(change).toHaveBeenCalledWith(null, null);
    expect(result!.stat.ephemeralOwner).toBe(service.sessionId);
    expect(service.text('/m')).toBe('new');
  });

  test('leaves it missing when the function returns undefined', async () => {
    const { service, run } = setUp();
    expect(await run(() => undefined, { create: true }, '/m')).toBeNull();
    expect(service.paths).toEqual(['/n']);
  });

  test('sees a znode that another client has created meanwhile', async () => {
    const { service, others, run } = setUp();
    others.push((count) => count === 1 && service.put('/m', '7'));
    await run(addOne, { create: true }, '/m');
    expect(service.text('/m')).toBe('8');
  });

  test.each([
    ['not-applied', '1'],
    ['not-sent', '1'],
  ] as const)('creates it once when the fault is %s', async (fault, expected) => {
    const { service, run } = setUp([fault]);
    await run(addOne, { create: true }, '/m');
    expect(service.text('/m')).toBe(expected);
  });

  test('reports an unknown outcome when it may be its own write', async () => {
    const { service, run } = setUp(['reply-lost']);
    await expect(run(addOne, { create: true }, '/m')).rejects.toMatchObject({ outcome: 'unknown' });
    expect(service.text('/m')).toBe('1');
  });
});

function makeOnce(): (run: () => void) => void {
  let isDone = false;
  return (run) => {
    if (isDone) return;
    isDone = true;
    run();
  };
}

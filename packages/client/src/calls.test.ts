import { OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { type CallPlan, callRead } from './calls.ts';
import type { ClientSession } from './client-session.ts';
import type { Call } from './machine/call.ts';
import { drainMicrotasks } from './testing/virtual-surroundings.ts';

const PLAN: CallPlan = {
  request: { op: OpCode.getData, path: '/a', watch: false },
  about: { operation: 'get', path: '/a' },
  listener: null,
};

/** Begins a linearizable read. @returns its promise, and the requests that it has sent so far */
function beginRead(): { result: Promise<unknown>; calls: Call[] } {
  const calls: Call[] = [];
  const session = {
    clock: { monotonicMs: () => 0 },
    session: { calls: { submit: (call: Call) => calls.push(call) } },
  } as unknown as ClientSession;
  return { result: callRead(session, PLAN, '/a', { read: 'linearizable' }), calls };
}

const answer = (call: Call | undefined, result: unknown): void => call?.resolve(result as never);
const lose = (call: Call | undefined, _result?: unknown): void => call?.fail('connection-lost', 'zoo1:2181', 'reset');
const opsOf = (calls: readonly Call[]): number[] => calls.map(({ request }) => request.op);

describe('a linearizable read', () => {
  test('is a sync and the read, neither of which is sent again alone', async () => {
    const { result, calls } = beginRead();
    expect(opsOf(calls)).toEqual([OpCode.sync, OpCode.getData]);
    expect(calls.map(({ isRepeatable }) => isRepeatable)).toEqual([false, false]);
    answer(calls[0], '/a');
    answer(calls[1], 'data');
    expect(await result).toBe('data');
  });

  test.each([
    ['is lost, although the sync is answered', [answer, lose]],
    ['and the sync are lost', [lose, lose]],
  ])('is sent again with its sync when its reply %s', async (_, [onSync, onRead]) => {
    const { result, calls } = beginRead();
    onSync?.(calls[0], '/a');
    onRead?.(calls[1], 'stale');
    await drainMicrotasks();
    expect(opsOf(calls)).toEqual([OpCode.sync, OpCode.getData, OpCode.sync, OpCode.getData]);
    answer(calls[2], '/a');
    answer(calls[3], 'fresh');
    expect(await result).toBe('fresh');
  });

  test('fails after five lost connections', async () => {
    const { result, calls } = beginRead();
    const failure = expect(result).rejects.toMatchObject({ code: 'CONNECTIONLOSS', operation: 'get' });
    for (let i = 0; i < calls.length; i += 2) {
      lose(calls[i]);
      lose(calls[i + 1]);
      await drainMicrotasks();
    }
    await failure;
    expect(calls).toHaveLength(2 * 5);
  });

  test('that is refused is not sent again', async () => {
    const { result, calls } = beginRead();
    const failure = expect(result).rejects.toMatchObject({ code: 'NONODE' });
    answer(calls[0], '/a');
    calls[1]?.reject({ kind: 'refused', code: -101, server: 'zoo1:2181' });
    await failure;
    expect(calls).toHaveLength(2);
  });
});

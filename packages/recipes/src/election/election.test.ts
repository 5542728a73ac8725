import { describe, expect, test } from 'vitest';
import { Mutex } from '../locks/mutex.ts';
import { inWorld, names } from '../testing/in-world.ts';
import { leftAt } from '../testing/left-at.ts';
import { type Candidate, Election, type ElectionOptions } from './election.ts';

const SHAPES: readonly ElectionOptions[] = [
  { layout: 'curator', style: 'latch' },
  { layout: 'curator', style: 'selector' },
  { layout: 'kazoo' },
];

describe.each(SHAPES)('an election with %o', (shape) => {
  test('is won in the order of candidature, and reports the leader', () =>
    inWorld(3, async ([one, two, three], { sleep }) => {
      const election = new Election(one.client, '/leader', { ...shape, id: 'one' });
      expect(await election.leader()).toBeNull();
      const first = await election.campaign();
      const second = new Election(two.client, '/leader', { ...shape, id: 'two' }).campaign();
      await sleep(50);
      const seen = new Election(three.client, '/leader', shape);
      expect((await seen.candidates()).map(({ id, isLeader }) => [id, isLeader])).toEqual([
        ['one', true],
        ['two', false],
      ]);
      expect(await seen.leader()).toMatchObject({ id: 'one', token: first.token, sessionId: first.sessionId });
      await first.guarded.create('/plan', 'one');
      await first.release();
      expect((await second).token).toBeGreaterThan(first.token);
      expect((await seen.leader())?.id).toBe('two');
    }));

  test('notifies its observers of each leader once', () =>
    inWorld(3, async ([one, two, three], { sleep, cut, heal }) => {
      const leaders: (string | null)[] = [];
      const controller = new AbortController();
      const observing = (async () => {
        const { signal } = controller;
        for await (const leader of new Election(three.client, '/leader', shape).observe({ signal })) {
          leaders.push(leader?.id ?? null);
        }
      })();
      await sleep(100);
      const first = await new Election(one.client, '/leader', { ...shape, id: 'one' }).campaign();
      const second = new Election(two.client, '/leader', { ...shape, id: 'two' }).campaign();
      await sleep(100);
      cut('host1');
      await second;
      await sleep(100);
      heal();
      expect(first.isHeld).toBe(false);
      await (await second).release();
      await sleep(100);
      controller.abort();
      await observing;
      expect(leaders).toEqual([null, 'one', 'two', null]);
    }));
});

test('a leader whose data is not text is reported, and so is the next one', () =>
  inWorld(2, async ([one, two]) => {
    const binary = new Mutex(one.client, '/leader', { data: Uint8Array.of(0x6f, 0xff, 0x6b) });
    const lock = await binary.acquire();
    const election = new Election(two.client, '/leader', { style: 'selector', id: 'two' });
    expect(await election.leader()).toMatchObject({ id: 'o\uFFFDk', token: lock.token });
    const leaders = election.observe();
    expect((await leaders.next()).value?.token).toBe(lock.token);
    await lock.release();
    const [{ value: next }, leadership] = await Promise.all([leaders.next(), election.campaign()]);
    expect(next?.token ?? leadership.token).toBe(leadership.token);
    await leaders.return?.();
  }));

describe('an observer of the leader without a session', () => {
  test.each(['its signal', 'the client'])('ends with %s, and does not fail', (end) =>
    inWorld(1, async ([one], { sleep, cut }) => {
      const { client } = one;
      const controller = new AbortController();
      const leaders = new Election(client, '/leader').observe({ signal: controller.signal });
      cut('host1');
      const next = leaders.next();
      next.catch(() => {});
      while (client.state !== 'lost') await sleep(100);
      await sleep(100);
      if (end === 'the client') await client.close();
      else controller.abort();
      expect(await next).toEqual({ done: true, value: undefined });
    }),
  );
});

describe('run()', () => {
  test('leads until its work ends, and resigns', () =>
    inWorld(2, async ([one, two]) => {
      const result = await new Election(one.client, '/leader').run(async ({ token, signal }) => {
        expect(signal.aborted).toBe(false);
        expect(await new Election(two.client, '/leader').leader()).toMatchObject({ token });
        return 'done';
      });
      expect(result).toBe('done');
      expect(await names(two, '/leader')).toEqual([]);
      const failing = new Election(one.client, '/leader').run(() => Promise.reject(new Error('no')));
      await expect(failing).rejects.toThrow('no');
      expect(await names(two, '/leader')).toEqual([]);
    }));

  test('campaigns again after losing leadership, until it is aborted', () =>
    inWorld(2, async ([one, two], { sleep, cut, heal }) => {
      const terms: bigint[] = [];
      const controller = new AbortController();
      const running = new Election(one.client, '/leader').run(
        ({ token, signal }) => {
          terms.push(token);
          return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        },
        { signal: controller.signal, repeats: true },
      );
      await sleep(100);
      cut('host1');
      await sleep(8000);
      heal();
      await sleep(8000);
      expect(terms).toHaveLength(2);
      const [leader] = await new Election(two.client, '/leader').candidates();
      expect((leader as Candidate).token).toBe(terms[1]);
      controller.abort();
      await running;
      expect(await names(two, '/leader')).toEqual([]);
    }));

  test('leaves no listeners on the signal of a caller that leads repeatedly', () =>
    inWorld(1, async ([one]) => {
      const { signal } = new AbortController();
      const election = new Election(one.client, '/leader');
      for (let i = 0; i < 3; i++) await election.run(async () => i, { signal });
      expect(leftAt(signal)).toBe(0);
    }));

  test('returns null when it is aborted before it leads', () =>
    inWorld(2, async ([one, two]) => {
      await new Election(one.client, '/leader').campaign();
      const signal = AbortSignal.abort();
      expect(await new Election(two.client, '/leader').run(async () => 'led', { signal })).toBeNull();
    }));
});

import {
  AbortedError,
  type Client,
  ClosedError,
  ConnectionLossError,
  NoNodeError,
  NotReadOnlyError,
  onAbort,
  SessionExpiredError,
  ThrottledError,
  TimeoutError,
} from '@meerkat/client';
import { makeClientClock, type VirtualWorld } from '@meerkat/simulator';
import { describe, expect, test } from 'vitest';
import { Fleet } from '../testing/fleet.ts';
import { leftAt } from '../testing/left-at.ts';
import { Attempt } from './attempt.ts';

const ABOUT = { operation: 'Recipe.call', path: '/it' };
const LOST = new ConnectionLossError({ operation: 'set', path: '/it', outcome: 'unknown' });

/** A client that has nothing but a clock, a state and a connection, which may be down. */
function inTime(program: (client: Client, world: VirtualWorld) => Promise<void>): () => Promise<void> {
  const { world } = new Fleet(1, { servers: 1 });
  const clock = makeClientClock(world.timeline, world.clockOf('one'));
  const client: unknown = { surroundings: { clock }, state: 'connected', whenConnected: () => Promise.resolve() };
  return () => world.run(() => program(client as Client, world));
}

/** Fails with these errors, one after the other, and then returns the number of calls. */
function failing(...errors: readonly Error[]): () => Promise<number> {
  let count = 0;
  return () => {
    const error = errors[count++];
    return error === undefined ? Promise.resolve(count) : Promise.reject(error);
  };
}

describe('an attempt', () => {
  test(
    'survives a lost connection, a busy service, and session loss unless it depends on the session',
    inTime(async (client) => {
      const attempt = new Attempt(client, {}, ABOUT);
      const errors = [LOST, new ThrottledError(ABOUT), new SessionExpiredError(ABOUT)];
      expect(await attempt.through(failing(...errors))).toBe(4);
      const bound = new Attempt(client, {}, ABOUT, { acrossSessions: false });
      await expect(bound.through(failing(...errors))).rejects.toBe(errors[2]);
    }),
  );

  test(
    'survives a server without a quorum if it awaits one',
    inTime(async (client) => {
      const refusal = new NotReadOnlyError(ABOUT);
      await expect(new Attempt(client, {}, ABOUT).through(failing(refusal))).rejects.toBe(refusal);
      expect(await new Attempt(client, {}, ABOUT, { awaitsQuorum: true }).through(failing(refusal))).toBe(2);
    }),
  );

  test(
    'does not retry after a refusal, the end of the client, or a bug',
    inTime(async (client) => {
      for (const error of [new NoNodeError(ABOUT), new ClosedError(ABOUT), new Error('a bug')]) {
        await expect(new Attempt(client, {}, ABOUT).through(failing(error))).rejects.toBe(error);
      }
    }),
  );

  test(
    'retries less often the longer there is no reply',
    inTime(async (client, world) => {
      const attempt = new Attempt(client, {}, ABOUT);
      await attempt.through(failing(LOST, LOST, LOST));
      expect(world.nowMs).toBe(20 + 40 + 80);
      await attempt.through(failing(LOST));
      expect(world.nowMs).toBe(140 + 20);
      await attempt.through(failing(...Array<Error>(10).fill(LOST)));
      expect(world.nowMs).toBe(160 + 20 + 40 + 80 + 160 + 320 + 5 * 500);
    }),
  );
});

describe('the time limit of an attempt', () => {
  test(
    'covers all requests and pauses together',
    inTime(async (client, world) => {
      const attempt = new Attempt(client, { timeoutMs: 1000 }, ABOUT);
      expect(attempt.next()).toMatchObject({ timeoutMs: 1000 });
      await world.sleep(400);
      expect(attempt.next()).toMatchObject({ timeoutMs: 600 });
      await expect(attempt.pause(5000)).rejects.toMatchObject({ ...ABOUT, code: 'TIMEOUT', outcome: 'not-applied' });
      expect(world.nowMs).toBe(1000);
      expect(() => attempt.next()).toThrow(TimeoutError);
    }),
  );

  test(
    'is reported with the obstacle, as long as there is a connection',
    inTime(async (client) => {
      const message = async (state: string): Promise<unknown> => {
        Object.assign(client, { state });
        const attempt = new Attempt(client, { timeoutMs: 1 }, ABOUT);
        attempt.obstacle = 'the barrier stands';
        return attempt.any([]).catch((error: Error) => error.message);
      };
      expect(await message('connected')).toBe('Recipe.call /it: timeoutMs has passed: the barrier stands (TIMEOUT)');
      expect(await message('suspended')).toContain('the client is suspended');
    }),
  );
});

describe('the error that ends an attempt', () => {
  test(
    'has an unknown outcome once something may have been applied, whatever ended it',
    inTime(async (client) => {
      for (const end of [new ClosedError(ABOUT), new NoNodeError(ABOUT), new TimeoutError(ABOUT)]) {
        const attempt = new Attempt(client, { timeoutMs: 5000 }, ABOUT);
        const ended = attempt.run(() => attempt.apply(failing(LOST, end)));
        await expect(ended).rejects.toMatchObject({ ...ABOUT, code: end.code, outcome: 'unknown' });
      }
    }),
  );

  test(
    'has outcome not-applied when only reads were lost, or the doubt is settled',
    inTime(async (client) => {
      const attempt = new Attempt(client, { timeoutMs: 5000 }, ABOUT);
      const end = new TimeoutError({ operation: 'get', path: '/it/child' });
      const ended = (work: () => Promise<unknown>): Promise<unknown> => attempt.run(work).catch((error) => error);
      expect(await ended(() => attempt.through(failing(LOST, end)))).toMatchObject({
        ...ABOUT,
        outcome: 'not-applied',
      });
      expect(await ended(() => attempt.apply(failing(LOST, end)))).toMatchObject({ outcome: 'unknown' });
      attempt.settle();
      expect(await ended(() => attempt.through(failing(end)))).toMatchObject({ outcome: 'not-applied' });
    }),
  );

  test(
    'is unchanged when the caller has not cancelled',
    inTime(async (client) => {
      const closed = new AbortedError({ ...ABOUT, outcome: 'not-applied', detail: 'it was closed' });
      const attempt = new Attempt(client, {}, ABOUT);
      await expect(attempt.run(failing(closed))).rejects.toBe(closed);
    }),
  );
});

describe('a wait', () => {
  test(
    'ends with the first of several promises, with session loss, or with a delay, and leaves nothing behind',
    inTime(async (client, world) => {
      const [session, caller] = [new AbortController(), new AbortController()];
      const attempt = new Attempt(client, { signal: caller.signal }, ABOUT);
      const never = new Promise<void>(() => {});
      await attempt.any([never, Promise.reject(new Error('settled, too'))], { lost: session.signal });
      await attempt.any([never], { delayMs: 300 });
      expect(world.nowMs).toBe(300);
      expect(leftAt(session.signal)).toBe(0);
      void world.sleep(100).then(() => session.abort());
      await attempt.any([never], { lost: session.signal, delayMs: 5000 });
      expect(world.nowMs).toBe(400);
      await attempt.any([never], { lost: session.signal });
      expect(leftAt(caller.signal)).toBe(0);
    }),
  );

  test(
    'rejects at once when the caller has already cancelled',
    inTime(async (client) => {
      const attempt = new Attempt(client, { signal: AbortSignal.abort('enough') }, ABOUT);
      const failure = { ...ABOUT, code: 'ABORTED', outcome: 'not-applied', cause: 'enough' };
      await expect(attempt.any([])).rejects.toMatchObject(failure);
      await expect(attempt.waitFor(Promise.resolve())).rejects.toMatchObject(failure);
    }),
  );

  test(
    'for background work signals it when the caller cancels, and then ignores its result',
    inTime(async (client) => {
      const attempt = new Attempt(client, { timeoutMs: 10 }, ABOUT);
      let isGivenUp = false;
      const waited = attempt.waitFor((givenUp) => {
        givenUp.addEventListener('abort', () => {
          isGivenUp = true;
        });
        return new Promise<void>((_, reject) => onAbort(givenUp, () => reject(new Error('unheard'))));
      });
      await expect(waited).rejects.toMatchObject({ code: 'TIMEOUT' });
      expect(isGivenUp).toBe(true);
    }),
  );

  test(
    'settles like the awaited promise',
    inTime(async (client) => {
      const attempt = new Attempt(client, { timeoutMs: 10 }, ABOUT);
      expect(await attempt.waitFor(Promise.resolve('done'))).toBe('done');
      await expect(attempt.waitFor(Promise.reject(LOST))).rejects.toBe(LOST);
    }),
  );
});

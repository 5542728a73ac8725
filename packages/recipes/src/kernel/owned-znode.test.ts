import { ClosedError, ConnectionLossError, NoNodeError, SessionLostError } from '@meerkat/client';
import { expect, test } from 'vitest';
import { inWorld, names } from '../testing/in-world.ts';
import { stepClient } from '../testing/stepped-client.ts';
import { Attempt } from './attempt.ts';
import { createMarked, createOwned, standOwned } from './owned-znode.ts';

const ABOUT = { operation: 'stand', path: '/line' };

test('a znode that is created while the client is being closed is not reported as session loss', () =>
  inWorld(1, async ([one]) => {
    const { client, afterRequest } = stepClient(one.client);
    let closed: Promise<void> | null = null;
    afterRequest(1, () => {
      closed = one.client.close();
      return Promise.resolve();
    });
    const error: unknown = await createOwned(client, '/x', {}, {}).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ClosedError);
    expect(error).toMatchObject({ outcome: 'unknown' });
    await closed;
  }));

test('a znode whose session was lost during the creation is not ours, and is deleted', () =>
  inWorld(2, async ([one, two], { cut, heal, sleep }) => {
    await two.client.ensurePath('/line');
    const { client, afterRequest } = stepClient(one.client);
    const lose = async (): Promise<void> => {
      cut(one.host);
      await sleep(10_000);
      heal();
    };
    afterRequest(1, lose);
    await expect(createOwned(client, '/line/a', {}, {})).rejects.toBeInstanceOf(SessionLostError);
    await one.client.whenConnected();
    await sleep(10_000);
    expect(await names(two, '/line')).toEqual([]);
    afterRequest(1, lose);
    const marked = await createMarked(client, '/line/b', {}, {});
    expect(marked.lost.aborted, 'the reported loss of the session').toBe(true);
  }));

test('a znode that may have been created is removed, and the next one has another mark', () =>
  inWorld(1, async ([one], { sleep }) => {
    const { client } = one;
    await client.ensurePath('/line');
    const create = client.createProtected.bind(client);
    const marks: (string | undefined)[] = [];
    client.createProtected = async (path, data, options) => {
      marks.push(options?.mark);
      const made = await create(path, data, options);
      if (marks.length > 1) return made;
      throw new ConnectionLossError({ operation: 'createProtected', path, outcome: 'unknown' });
    };
    const attempt = new Attempt(client, {}, ABOUT);
    const owned = await standOwned(attempt, '/line/z-', { sequential: true, data: 'me' }, () => Promise.reject());
    await sleep(1000);
    expect(await names(one, '/line')).toEqual([owned.path.slice('/line/'.length)]);
    expect(owned.path).toContain(marks[1]);
    expect(marks[0]).not.toBe(marks[1]);
    expect(owned.lost).toBe(client.lostSignal);
  }));

test('its parent is created where it is missing, and recreated', () =>
  inWorld(1, async ([one]) => {
    const { client } = one;
    let made = 0;
    const makeParent = async (): Promise<void> => {
      // The first time, it is deleted at once.
      if (++made > 1) await client.ensurePath('/line');
    };
    const { stat } = await standOwned(new Attempt(client, {}, ABOUT), '/line/z', {}, makeParent);
    expect([made, stat.ephemeralOwner]).toEqual([2, client.session?.id]);
    await expect(createOwned(client, '/none/z', {}, {})).rejects.toBeInstanceOf(NoNodeError);
  }));

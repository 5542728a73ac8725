import type { Client } from '@meerkat/client';
import { Barrier, DoubleBarrier } from '@meerkat/recipes';
import { expect, test } from 'vitest';
import { readLines } from '../../packages/console/src/backend/lines.ts';
import { readSessions } from '../../packages/console/src/backend/session-table.ts';
import { expectNames } from './names.ts';
import { describeShared } from './shared.ts';

for (const library of ['kazoo', 'curator'] as const) {
  describeShared({ library, program: 'queues', what: 'barriers' }, (shared) => {
    test('a barrier set by one blocks and releases the other', async () => {
      const { client, foreign } = shared;
      const barrier = new Barrier(client, '/shared/barrier');
      await foreign.ask('set', '/shared/barrier');
      expect(await barrier.isSet()).toBe(true);
      const waiting = barrier.wait();
      await foreign.ask('remove', '/shared/barrier');
      await waiting;
      await barrier.set();
      const theirs = foreign.ask('wait', '/shared/barrier');
      // The console shows the barrier, and the waiting session by its watch.
      const shown = (): Promise<unknown> => showBarrier(client, '/shared/barrier', ['/shared/barrier']);
      await expect.poll(shown).toMatchObject({ kind: 'barrier', total: 1, contenders: [{ isHolder: false }] });
      await barrier.remove();
      expect((await theirs).toLowerCase()).toBe('true');
      expect(await shown()).toBe(undefined);
    });

    test('a double barrier is entered and left together', async () => {
      const { client, foreign } = shared;
      for (let round = 0; round < 3; round++) {
        const path = `/shared/double-${round}`;
        const make = (): DoubleBarrier => new DoubleBarrier(client, path, 3, { layout: library });
        let hasEntered = false;
        const entering = foreign.ask('enter', path, 3).then(() => {
          hasEntered = true;
        });
        const first = make().enter();
        // Waits for both znodes; the third is missing.
        while (((await client.exists(path))?.numChildren ?? 0) < 2) await client.sync(path);
        expect(hasEntered).toBe(false);
        await expectNames(client, path, 'DoubleBarrier', library);
        const shown = (): Promise<unknown> => showBelow(client, path);
        const common = { kind: 'double barrier', layout: library };
        expect(await shown()).toMatchObject({ ...common, total: 2, contenders: [OUTSIDE, OUTSIDE] });
        const inside = await Promise.all([first, make().enter()]);
        await entering;
        expect(await shown()).toMatchObject({ ...common, total: 3, contenders: [INSIDE, INSIDE, INSIDE] });
        expect((await client.children(path)).children).toContain('ready');
        let hasLeft = false;
        const leaving = foreign.ask('leave', path).then(() => {
          hasLeft = true;
        });
        const ours = inside[0]!.leave();
        while (membersOf(await client.children(path)).length > 2) await client.sync(path);
        expect(hasLeft).toBe(false);
        await Promise.all([leaving, ours, inside[1]!.leave()]);
        expect(membersOf(await client.children(path))).toEqual([]);
      }
    });

    test('a member that dies inside is not waited for', async () => {
      const { client, startForeign } = shared;
      const path = '/shared/death';
      await using doomed = await startForeign();
      const entering = doomed.ask('enter', path, 2);
      const inside = await new DoubleBarrier(client, path, 2, { layout: library }).enter();
      await entering;
      const leaving = inside.leave();
      await doomed.end();
      await leaving;
      expect(membersOf(await client.children(path))).toEqual([]);
    });
  });
}

const OUTSIDE = { isHolder: false };
const INSIDE = { isHolder: true };

/** The console's view of a path, from the paths in its index. */
async function showBarrier(client: Client, path: string, paths: readonly string[]): Promise<unknown> {
  const { host, port } = client.server!;
  const server = { host, port, name: `${host}:${port}`, tls: null };
  const { sessions } = await readSessions([server], null);
  const { lines } = await readLines(client, paths, sessions, NO_INDEX, { timeoutMs: 20_000 });
  return lines.find((line) => line.path === path);
}

async function showBelow(client: Client, path: string): Promise<unknown> {
  const { children } = await client.children(path);
  const paths = children.map((name) => `${path}/${name}`);
  return await showBarrier(client, path, [path, ...paths]);
}

const NO_INDEX = { znodes: 0, bytes: 0, isComplete: true, isLive: true, missing: null };

function membersOf({ children }: { readonly children: readonly string[] }): string[] {
  return children.filter((name) => name !== 'ready');
}

/**
 * Several locks as one under faults. A failure prints its seed:
 * `SEEDS=17 npx vitest run packages/recipes/src/locks/multi-lock.simulation.test.ts`.
 */
import { type CallOptions, joinPath, ZooKeeperError } from '@meerkat/client';
import type { SeededRandom } from '@meerkat/simulator';
import { expect } from 'vitest';
import type { Held } from '../kernel/holding.ts';
import { NotHeldError } from '../kernel/not-held-error.ts';
import { FencedStore } from '../testing/fenced-store.ts';
import { LineHistory } from '../testing/line-history.ts';
import { runStorm, simulateStorm, type Worker } from '../testing/storm.ts';
import { MultiLock } from './multi-lock.ts';

const PATHS = ['/locks/a', '/locks/b', '/locks/c'];
const HOSTS = ['one', 'two', 'three', 'four', 'five'];
const VANDAL = 'vandal';

simulateStorm(
  'has one holder of each of its locks at a time, all or none, and leaves nothing behind',
  4,
  async (fleet, seed) => {
    /** Another client deletes znodes. Their holders cannot know at once, so only their writes are checked. */
    const hasVandal = seed % 3 === 0;
    /** Checks holders of all locks: only they have the same locks, so that their tokens can be compared. */
    const store = new FencedStore('/entries', hasVandal ? () => true : undefined);
    const held = new Map<string, { readonly lock: Held; readonly paths: readonly string[] }>();
    const layout = seed % 2 === 0 ? 'kazoo' : 'curator';

    const check = (): void => {
      for (const path of PATHS) {
        const sure = HOSTS.filter((host) => held.get(host)?.paths.includes(path) && held.get(host)?.lock.isHeld);
        if (!hasVandal) expect(sure.length, `${sure.join(' and ')} hold ${path} together`).toBeLessThanOrEqual(1);
      }
      store.check();
    };
    const hold = async ({ station, client, random }: Worker): Promise<void> => {
      await client.ensurePath('/entries');
      await client.ensurePath('/marks');
      const paths = drawPaths(random);
      // A duplicate is acquired once.
      const given = random.chance(0.1) ? [...paths, paths[0]!] : paths;
      const locks = new MultiLock(client, given, { layout });
      const limits = drawLimits(random);
      const isTry = random.chance(0.3);
      const lock = isTry ? await locks.tryAcquire(limits) : await locks.acquire(limits);
      if (lock === null) return;
      try {
        // A try is over when it resolves if it has lost a lock meanwhile; a waiting caller resolves only with all of
        // them.
        if (!isTry) expect(lock.isHeld, `${station.host} holds ${paths} when acquire resolves`).toBe(true);
        held.set(station.host, { lock, paths });
        const isAll = paths.length === PATHS.length;
        if (isAll) store.onAcquired(station.host, lock);
        check();
        for (let i = random.between(1, 3); i > 0; i--) {
          await station.sleep(random.between(1, 300));
          // A writer held all of its locks in the committed history: checked at the end.
          await lock.guarded.create('/marks/mark-', paths.toSorted().join(), { sequential: true });
          if (!isAll) continue;
          if (lock.isHeld) store.writeOutside(lock);
          await store.writeInside(lock);
        }
      } finally {
        held.delete(station.host);
        store.onReleased(station.host);
        await lock.release();
      }
    };
    const work = async (worker: Worker): Promise<void> => {
      const isVandal = worker.station.host === VANDAL;
      while (!worker.isOver()) {
        try {
          await (isVandal ? rob(worker) : hold(worker));
        } catch (error) {
          if (!(error instanceof ZooKeeperError) && !(error instanceof NotHeldError)) throw error;
        }
        await worker.station.sleep(worker.random.between(1, 200));
      }
    };
    const hosts = hasVandal ? [...HOSTS, VANDAL] : HOSTS;
    await runStorm(fleet, { hosts }, work, check, async (client) => {
      await store.checkWritten(client);
      for (const path of PATHS) expect((await client.exists(path))?.numChildren ?? 0, path).toBe(0);
      const tree = await fleet.committedTree();
      if (tree === null) return;
      const lines = new Map(PATHS.map((path) => [path, new LineHistory(tree, path)]));
      const marks = tree.childrenAt('/marks', tree.lastZxid);
      for (const mark of marks) {
        const { czxid, data } = tree.stateAt(`/marks/${mark}`, tree.lastZxid)!;
        const { sessionId } = tree.entryAt(czxid)!.header;
        for (const path of new TextDecoder().decode(data ?? new Uint8Array()).split(',')) {
          const first = lines.get(path)!.at(tree.zxidBefore(czxid)).path;
          const owner = first === null ? null : tree.stateAt(first, tree.zxidBefore(czxid))!.owner;
          expect(owner, `the creator of ${mark} holds ${path}`).toBe(sessionId);
        }
      }
      expect(marks.length).toBeGreaterThan(0);
    });
    expect(store.acquired).toBeGreaterThan(0);
  },
);

/** Deletes a znode of a holder or waiter. */
async function rob({ client, random, station }: Worker): Promise<void> {
  await station.sleep(random.between(1, 1000));
  // Often the first: its holder waits for the others.
  const path = random.pick([PATHS[0]!, ...PATHS]);
  const { children } = await client.children(path);
  if (children.length > 0) await client.delete(joinPath(path, random.pick(children)));
}

/** Often short, so that many get only some of their locks. */
function drawLimits(random: SeededRandom): CallOptions {
  return random.chance(0.6) ? { timeoutMs: random.between(1, 1000) } : {};
}

/** All of them or some, in any order. */
function drawPaths(random: SeededRandom): string[] {
  const left = [...PATHS];
  const drawn: string[] = [];
  for (let count = random.pick([1, 1, 2, 3, 3]); count > 0; count--) {
    drawn.push(...left.splice(random.between(0, left.length - 1), 1));
  }
  return drawn;
}

import type { CommittedTree, ZnodeState } from '@meerkat/simulator';
import { expect } from 'vitest';
import { committedSince0 } from './committed.ts';
import type { Fleet } from './fleet.ts';

/**
 * Waits until all servers work together and have the same state. Called before the first write, it also ensures that
 * all of them have a log from the very beginning: a later one gets a snapshot instead, and may pass it on to the
 * others.
 */
export async function untilWhole({ world, ensemble }: Fleet): Promise<void> {
  expect(await world.until(() => ensemble.isAtRest, 60_000), 'all servers work together').toBe(true);
}

/** The committed history, once all faults are healed; null when no server has its beginning. */
export async function committedIn(fleet: Fleet): Promise<CommittedTree | null> {
  await untilWhole(fleet);
  return committedSince0(fleet.ensemble);
}

/**
 * The history of a znode that no client deletes, one state per txn that wrote it; null when no server has the
 * beginning.
 */
export async function historyOf(fleet: Fleet, path: string): Promise<ZnodeState[] | null> {
  const tree = await committedIn(fleet);
  if (tree === null) return null;
  const writes = tree.changesOf(path).filter(({ type }) => type !== 'children');
  return writes.map(({ zxid }) => tree.stateAt(path, zxid)!);
}

/** Expects that nothing is left below these znodes, once abandoned sessions have expired. */
export async function expectEmpty(fleet: Fleet, paths: readonly string[]): Promise<void> {
  const observer = await fleet.connectAs('judge');
  for (const path of paths) {
    let left = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 100 && left > 0; i++) {
      left = (await observer.exists(path, { read: 'linearizable' }))?.numChildren ?? 0;
      await fleet.world.sleep(1000);
    }
    expect(left, `children of ${path}`).toBe(0);
  }
  await observer.close();
}

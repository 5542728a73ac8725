/**
 * Revocation of locks under faults. A failure prints its seed:
 * `SEEDS=17 npx vitest run packages/recipes/src/locks/revocation.simulation.test.ts`.
 */
import { type CallOptions, type Client, ZooKeeperError } from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect } from 'vitest';
import type { Contending } from '../kernel/line.ts';
import { NotHeldError } from '../kernel/not-held-error.ts';
import { EPOCH_MS } from '../testing/committed.ts';
import { FencedStore } from '../testing/fenced-store.ts';
import { LineHistory } from '../testing/line-history.ts';
import { drawLimits, runStorm, simulateStorm, type Worker } from '../testing/storm.ts';
import type { Lock } from './lock.ts';
import { Mutex } from './mutex.ts';
import { HELD } from './priority-line.ts';
import { PriorityLock } from './priority-lock.ts';
import { ReadWriteLock } from './read-write-lock.ts';
import { isRevocation } from './revocation.ts';

const HOLDERS = ['one', 'two', 'three'];

/** What is revoked. */
interface Revocable {
  acquire(options: CallOptions): Promise<Lock>;
  revoke(): Promise<boolean>;
  contenders(): Promise<readonly Contending[]>;
}

/** Selected by the seed. */
const KINDS: readonly ((client: Client) => Revocable)[] = [
  (client) => new Mutex(client, '/lock', { layout: 'kazoo' }),
  (client) => new Mutex(client, '/lock'),
  (client) => {
    const lock = new ReadWriteLock(client, '/lock');
    return {
      acquire: (options) => lock.acquireWrite(options),
      revoke: () => lock.revoke(),
      contenders: () => lock.contenders(),
    };
  },
  (client) => new PriorityLock(client, '/lock'),
];
const PRIORITY = 3;

/** The ownership of a lock by a client. */
interface Tenure {
  readonly path: string;
  readonly token: bigint;
  /** When its holder was notified of the request, virtual milliseconds; null: never. */
  notifiedMs: number | null;
  /** When its holder knew that it had ended. */
  endedMs: number;
}

/** A request for the lock by another client, and its result. */
interface Request {
  readonly sinceZxid: number;
  readonly untilZxid: number;
  readonly wasSent: boolean;
}

simulateStorm(
  'a holder is notified that its lock is requested, and keeps it until it releases it',
  4,
  async (fleet, seed) => {
    const open = KINDS[seed % KINDS.length]!;
    const store = new FencedStore('/entries');
    const tenures: Tenure[] = [];
    const requests: Request[] = [];
    let holding = HOLDERS.length;

    const hold = async ({ station, client, random }: Worker): Promise<void> => {
      await client.ensurePath('/entries');
      const lock = await open(client).acquire(drawLimits(random));
      const { path, token } = lock;
      const tenure: Tenure = { path, token, notifiedMs: null, endedMs: Number.POSITIVE_INFINITY };
      tenures.push(tenure);
      lock.revocation.addEventListener('abort', () => {
        tenure.notifiedMs = fleet.world.nowMs;
      });
      if (lock.revocation.aborted) tenure.notifiedMs = fleet.world.nowMs;
      lock.signal.addEventListener('abort', () => {
        tenure.endedMs = fleet.world.nowMs;
      });
      try {
        store.onAcquired(station.host, lock);
        // Without a limit: a holder that is not notified would keep the lock until the end of the simulation.
        await whenAskedOrOver(lock);
        if (random.chance(0.3)) await station.sleep(random.between(1, 1000));
        if (lock.isHeld) store.writeOutside(lock);
        await store.writeInside(lock);
      } finally {
        store.onReleased(station.host);
        await lock.release();
      }
    };
    const ask = async ({ client, random, station }: Worker): Promise<void> => {
      await station.sleep(random.chance(0.5) ? random.between(1, 20) : random.between(1, 1500));
      const lock = open(client);
      // One request has to be enough.
      const [first] = await lock.contenders();
      if (first !== undefined && isRevocation(first.data)) return;
      const { committedZxid: sinceZxid } = fleet;
      const wasSent = await lock.revoke();
      requests.push({ sinceZxid, untilZxid: fleet.committedZxid, wasSent });
    };
    const work = async (worker: Worker): Promise<void> => {
      const isHolder = HOLDERS.includes(worker.station.host);
      while (isHolder ? !worker.isOver() : holding > 0) {
        try {
          await (isHolder ? hold(worker) : ask(worker));
        } catch (error) {
          if (!(error instanceof ZooKeeperError) && !(error instanceof NotHeldError)) throw error;
        }
        await worker.station.sleep(worker.random.between(1, 200));
      }
      if (isHolder) holding--;
    };
    const hosts = [...HOLDERS, 'asking'];
    await runStorm(
      fleet,
      { hosts },
      work,
      () => store.check(),
      async (client) => {
        await store.checkWritten(client);
        expect((await client.exists('/lock'))?.numChildren ?? 0).toBe(0);
        const tree = await fleet.committedTree();
        if (tree === null) return;
        for (const tenure of tenures) checkTenure(tenure, tree);
        const stands = (path: string): boolean => seed % KINDS.length !== PRIORITY || path === `/lock/${HELD}`;
        const line = new LineHistory(tree, '/lock', stands);
        for (const request of requests) checkRequest(request, tree, line);
      },
    );
    expect(tenures.some(({ notifiedMs }) => notifiedMs !== null)).toBe(true);
    expect(requests.some(({ wasSent }) => wasSent)).toBe(true);
  },
);

function whenAskedOrOver({ revocation, signal }: Lock): Promise<void> {
  if (revocation.aborted || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    revocation.addEventListener('abort', () => resolve(), { once: true });
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** A requested holder is notified as long as it has the lock; and a notified holder was requested. */
function checkTenure({ path, token, notifiedMs, endedMs }: Tenure, tree: CommittedTree): void {
  const [zxid] = askedAt(path, token, tree);
  if (zxid === undefined) {
    expect(notifiedMs, `${path} of ${token} was not requested`).toBe(null);
    return;
  }
  const askedMs = tree.entryAt(zxid)!.header.time - EPOCH_MS;
  expect(notifiedMs ?? askedMs, `when the holder of ${path} was notified`).toBeGreaterThanOrEqual(askedMs);
  const untilMs = Math.min(notifiedMs ?? endedMs, endedMs);
  expect(untilMs - askedMs, `until the holder of ${path} was notified`).toBeLessThan(HEARD_MS);
}

/**
 * If the request is reported as sent, a holder got it; otherwise the lock was free, or its holder changed, meanwhile.
 */
function checkRequest({ sinceZxid, untilZxid, wasSent }: Request, tree: CommittedTree, line: LineHistory): void {
  const during = line.between(sinceZxid, untilZxid);
  const when = `from zxid ${sinceZxid} to ${untilZxid}`;
  if (!wasSent) {
    expect(during.length > 1 || during[0]!.path === null, `a client had the lock ${when}`).toBe(true);
    return;
  }
  const asked = during.flatMap(({ path, token }) => (path === null ? [] : askedAt(path, token!, tree)));
  expect(
    asked.some((zxid) => zxid > sinceZxid && zxid <= untilZxid),
    `a client was asked ${when}`,
  ).toBe(true);
}

/** Zxids, from `zxid` on, at which another client requested the lock with this znode. */
function askedAt(path: string, token: bigint, tree: CommittedTree): number[] {
  const asked = tree.changesOf(path).filter(({ type, zxid }) => {
    if (type !== 'changed') return false;
    const { czxid, data } = tree.stateAt(path, zxid)!;
    return BigInt(czxid) === token && isRevocation(data ?? new Uint8Array());
  });
  return asked.map(({ zxid }) => zxid);
}

/** As long as a process may be paused, and until a holder without replies has ended. */
const HEARD_MS = 15_000;

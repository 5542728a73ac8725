/**
 * The safety properties of condition variables. Producers put one item and notify; consumers, some of which cancel and
 * stay away until it is taken, wait for it. In every seed, under any faults of servers, links and replies:
 *
 * 1. no notification is lost: an item is taken by a client that waited for it, before the next one is put;
 * 2. the notifying client held the lock in the committed history, and woke the one that had waited longest;
 * 3. `notify` reports that no caller waits only when none did; a failed wait does not hold the lock;
 * 4. an item reported as put or taken was put or taken exactly once, and nothing is left behind.
 */
import { type CallOptions, type Client, isZooKeeperError, text } from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect } from 'vitest';
import { NotHeldError } from '../kernel/not-held-error.ts';
import { compareBySequence } from '../kernel/sequence.ts';
import type { Lock } from '../locks/lock.ts';
import { Mutex } from '../locks/mutex.ts';
import type { Fleet } from '../testing/fleet.ts';
import { Ledger } from '../testing/ledger.ts';
import { simulate } from '../testing/simulate.ts';
import { Condition } from './condition.ts';

const CONSUMERS = 3;
const PRODUCERS = 2;
const FAULT_MS = 12_000;
const PATH = '/changed';

/** Sees all clients at once. */
class Checker {
  readonly ledger = new Ledger<string>();
  /** Calls of `notify` that reported no waiter: the zxids before and after. */
  readonly missedCalls: { readonly from: number; readonly to: number }[] = [];
  rounds = 0;

  check(tree: CommittedTree): void {
    const written = tree.changesOf('/stock').map(({ zxid }) => idOf(tree.stateAt('/stock', zxid)!.data));
    this.ledger.check(written.slice(1));
    const deleted = tree.changes.filter(({ type, path }) => type === 'deleted' && path.startsWith(`${PATH}/`));
    for (const { path, zxid } of deleted) {
      const { header, txn } = tree.entryAt(zxid)!;
      if (txn.type !== MULTI) continue;
      const before = tree.zxidBefore(zxid);
      expect(path, 'the longest waiter is woken').toBe(`${PATH}/${firstOf(tree, PATH, before)}`);
      const holder = tree.stateAt(`/lock/${firstOf(tree, '/lock', before)}`, before);
      expect(holder?.owner, 'the notifier holds the lock').toBe(header.sessionId);
    }
    for (const { from, to } of this.missedCalls) {
      const moments = tree.changesOf(PATH).map(({ zxid }) => zxid);
      const during = [from, ...moments.filter((zxid) => zxid > from && zxid <= to)];
      const hasNobody = during.some((zxid) => tree.childrenAt(PATH, zxid).length === 0);
      expect(hasNobody, `no client waited at some moment from ${from} to ${to}`).toBe(true);
    }
  }
}

/** The child that is first in line. */
function firstOf(tree: CommittedTree, path: string, zxid: number): string | undefined {
  return tree.childrenAt(path, zxid).toSorted(compareBySequence)[0];
}

simulate('no notification is lost, under any faults', 4, async (fleet, seed) => {
  const checker = new Checker();
  const clients = await fleet.connectAll(CONSUMERS + PRODUCERS);
  await clients[0]!.create('/stock', '0 no client');
  if (seed % 2 === 0) fleet.unleashBreaks(FAULT_MS, 300);
  else fleet.unleash(FAULT_MS, clients.length);
  const controller = new AbortController();
  const { signal } = controller;
  const isOver = { value: false };
  const consuming = clients.slice(0, CONSUMERS).map((client, i) => consume(fleet, client, i, checker, signal));
  const producing = clients.slice(CONSUMERS).map((client, i) => produce(fleet, client, i, checker, isOver));
  const ended = Promise.all([...consuming, ...producing]);
  await Promise.race([fleet.world.sleep(FAULT_MS + 2000), ended]);
  fleet.heal();
  const enough = checker.rounds + 4;
  const hasProgressed = (): boolean => checker.rounds >= enough;
  expect(
    await Promise.race([fleet.world.until(hasProgressed, 120_000), ended]),
    'every item that is put is taken',
  ).toBe(true);
  isOver.value = true;
  await Promise.all(producing);
  controller.abort();
  await ended;
  await fleet.world.sleep(20_000);
  for (const path of [PATH, '/lock']) {
    const stat = await clients[0]!.exists(path, { read: 'linearizable' });
    expect(stat?.numChildren ?? 0, `znodes left below ${path}`).toBe(0);
  }
  const tree = await fleet.committedTree();
  if (tree !== null) checker.check(tree);
});

/** Takes the item, or waits for it; all but the first consumer cancel and come again later. */
async function consume(fleet: Fleet, client: Client, id: number, checker: Checker, signal: AbortSignal): Promise<void> {
  const { random } = fleet.world;
  for (let n = 0; !signal.aborted; n++) {
    await underLock(client, signal, async (hand, condition) => {
      while ((await readStock(client, { signal })) === 0) {
        const timeoutMs = id > 0 ? random.between(0, 800) : undefined;
        const given = hand.lock;
        const waited = await condition.wait(given, { signal, timeoutMs }).catch(async (error: unknown) => {
          if (isZooKeeperError(error)) expect(error.outcome).toBe('unknown');
          expect(given.isHeld, 'a wait that has failed holds the lock').toBe(false);
          // A waiting caller has to take it, without help from those that come to look again.
          const { rounds } = checker;
          await fleet.world.until(() => checker.rounds > rounds || signal.aborted, 600_000);
          throw error;
        });
        expect(waited.token).toBeGreaterThan(given.token);
        hand.lock = waited;
      }
      const taking = hand.lock.guarded.set('/stock', `0 consumer ${id}.${n}`);
      throwErrors(await checker.ledger.note(`consumer ${id}.${n}`, taking));
    });
  }
}

/** Puts items one at a time, each once the one before is taken. */
async function produce(
  fleet: Fleet,
  client: Client,
  id: number,
  checker: Checker,
  isOver: { readonly value: boolean },
): Promise<void> {
  const { random } = fleet.world;
  for (let n = 0; !isOver.value; n++) {
    let hasPut = false;
    let isNotified = false;
    // A client that may have changed something has to notify before it continues.
    do {
      await underLock(client, undefined, async ({ lock }, condition) => {
        if (!hasPut && (await readStock(client, {})) > 0) return;
        if (!hasPut) {
          hasPut = true;
          throwErrors(
            await checker.ledger.note(`producer ${id}.${n}`, lock.guarded.set('/stock', `1 producer ${id}.${n}`)),
          );
        }
        const from = fleet.committedZxid;
        if (random.chance(0.1)) await condition.notifyAll(lock);
        else if (!(await condition.notify(lock))) checker.missedCalls.push({ from, to: fleet.committedZxid });
        isNotified = true;
      });
    } while (hasPut && !isNotified);
    if (!hasPut) await fleet.world.sleep(random.between(10, 100));
    while (hasPut && (await readStock(client, {}).catch(() => 1)) > 0) await fleet.world.sleep(random.between(10, 200));
    if (hasPut) checker.rounds++;
  }
}

/** The current handle of the lock: a wait replaces it. */
interface Hand {
  lock: Lock;
}

/** Runs something under the lock and releases the final handle. A fault simply ends it. */
async function underLock(
  client: Client,
  signal: AbortSignal | undefined,
  work: (hand: Hand, condition: Condition<Lock>) => Promise<void>,
): Promise<void> {
  const mutex = new Mutex(client, '/lock');
  let hand: Hand | null = null;
  try {
    hand = { lock: await mutex.acquire({ signal }) };
    await work(hand, new Condition(client, PATH, mutex));
  } catch (error) {
    if (!isZooKeeperError(error) && !(error instanceof NotHeldError)) throw error;
  } finally {
    await hand?.lock.release();
  }
}

function throwErrors(result: unknown): void {
  if (result instanceof Error) throw result;
}

async function readStock(client: Client, options: CallOptions): Promise<number> {
  return Number((await client.get('/stock', { ...options, read: 'linearizable', codec: text })).data.split(' ')[0]);
}

function idOf(data: Uint8Array | null): string {
  return new TextDecoder().decode(data ?? undefined).slice(2);
}

/** The operation code of a multi-write transaction: the guarded writes. */
const MULTI = 14;

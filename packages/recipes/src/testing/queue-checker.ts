import { expect } from 'vitest';
import type { Books } from './books.ts';
import type { LostSessions } from './lost-sessions.ts';
import type { ItemHistory, QueueHistory } from './queue-history.ts';
import { keyOf } from './queue-job.ts';

/**
 * Checks the results of producers and consumers against each other.
 *
 * @param isAllDone items are removed in no other way, and none is lost
 */
export function checkBeliefs(books: Books, isAllDone: boolean): void {
  for (const key of isAllDone ? books.put : []) {
    expect(books.done.has(key) || books.doubtfulDones.has(key), `${key} was put and must be done`).toBe(true);
  }
  for (const [key, count] of books.done) {
    expect(books.put.has(key) || books.doubtfulPuts.has(key), `${key} was put`).toBe(true);
    expect(count, `${key} was done ${count} times`).toBe(1);
  }
  expect(books.put.size).toBeGreaterThan(0);
}

/** A put item was created once; without leases it may be recreated, by a client that releases it. */
export function checkPuts(books: Books, { items }: QueueHistory, hasLeases: boolean): void {
  const lives = new Map<string, ItemHistory[]>();
  for (const item of items.toSorted((a, b) => a.fromZxid - b.fromZxid)) {
    const key = keyOf(item.job);
    lives.set(key, [...(lives.get(key) ?? []), item]);
  }
  const made = [...lives.keys()];
  for (const [key, each] of lives) {
    for (const [i, { fromZxid }] of each.slice(1).entries()) {
      expect(hasLeases, `${key} is made twice`).toBe(false);
      expect(fromZxid, `${key} is recreated`).toBeGreaterThan(each[i]!.toZxid);
    }
  }
  for (const batch of books.batches) {
    const together = new Set(batch.map((key) => lives.get(key)?.[0]?.fromZxid ?? null));
    expect([...together], `when ${batch} were put, all or none`).toHaveLength(1);
  }
  for (const key of books.put) expect(made, `${key} was put`).toContain(key);
  for (const key of made) expect(books.put.has(key) || books.doubtfulPuts.has(key), `${key} was put`).toBe(true);
}

/** Each is removed by a client that has the lease and was not told the contrary. */
export function checkEnds(books: Books, { items }: QueueHistory): void {
  const refused = new Set(books.refusals.map(({ name, token }) => `${name} ${token}`));
  for (const { name, job, toZxid, enderId, leases } of items) {
    const key = keyOf(job);
    expect(toZxid, `${key} is removed`).toBeLessThan(Number.POSITIVE_INFINITY);
    const last = leases.find((lease) => lease.toZxid === toZxid);
    expect(last?.sessionId, `the client that removes ${key} has the lease`).toBe(enderId);
    expect(refused.has(`${name} ${last?.fromZxid}`), `${key} is done, but its holder was told otherwise`).toBe(false);
  }
}

/** A lease is ended by its holder, or with the holder's session, and never by an earlier consumer of the item. */
export function checkLeases({ items }: QueueHistory): void {
  for (const { name, leases } of items) {
    for (const { sessionId, enderId } of leases) {
      if (enderId !== null) expect(enderId, `a lease of ${name} is ended by its holder`).toBe(sessionId);
    }
  }
}

/**
 * Without leases an item that was put is done, unless the session of the last client that took it was considered lost.
 */
export function checkLosses(books: Books, { items }: QueueHistory, lost: LostSessions): void {
  for (const key of books.put) {
    if (books.done.has(key) || books.doubtfulDones.has(key)) continue;
    const own = items.filter(({ job }) => keyOf(job) === key);
    // The client that had it when the others found the queue empty has released it.
    if (own.some(({ enderId }) => enderId === null)) continue;
    const isExcused = own.some(({ enderId }) => lost.zxidOf(enderId!) < Number.POSITIVE_INFINITY);
    expect(isExcused, `${key} was put, and is lost although the session of no holder was`).toBe(true);
  }
}

/** The order of a queue's items. */
export interface ItemOrder {
  /** Negative: of two free items, `a` is taken first. */
  readonly compare: (a: ItemHistory, b: ItemHistory) => number;
  /** The time from which it is certainly free, virtual milliseconds. Default: at once. */
  readonly dueMs?: ((item: ItemHistory) => number) | undefined;
}

/** No item is delivered while a better one is free, and the queue is not reported empty while an item is. */
export function checkOrder(
  books: Books,
  history: QueueHistory,
  { compare, dueMs }: ItemOrder,
  hasLeases: boolean,
): void {
  const namesOf = (items: readonly ItemHistory[]): string => items.map(({ name }) => name).join();
  for (const { name, token, sinceZxid } of books.takes) {
    const taken = history.item(name);
    // It is taken by creating the lease, or by deleting the item.
    const takenZxid = hasLeases ? Number(token) : taken.toZxid;
    const better = history.free(sinceZxid, takenZxid).filter((other) => compare(other, taken) < 0);
    expect(namesOf(better), `better than ${name}, and free from zxid ${sinceZxid} to ${takenZxid}`).toBe('');
  }
  for (const { sinceZxid, untilZxid, sinceMs } of books.misses) {
    const free = history.free(sinceZxid, untilZxid).filter((item) => dueMs === undefined || dueMs(item) <= sinceMs);
    expect(namesOf(free), `free from zxid ${sinceZxid} to ${untilZxid}, and not found`).toBe('');
  }
}

import { type CallOptions, type Client, joinPath, NoNodeError, text } from '@meerkat/client';
import type { Contending } from '../kernel/line.ts';
import { compareBySequence } from '../kernel/sequence.ts';
import type { LockSettings } from '../kernel/settings.ts';

/**
 * Those who wait for a lock by their priority, and the one who has it.
 *
 *     /locks/orders                                  `held <name of its place>`, `died <the same>` or `free`; its version counts
 *       held                                         ephemeral: the client that made it has the lock
 *       _c_5b2f…-priority--5-0000000009              waits for `held`
 *       _c_0d1e…-priority-0-0000000007               waits for the one before it
 *                         ╰┬╯╰───┬────╯
 *                   priority  number
 */
export interface PriorityLine extends LockSettings {
  readonly path: string;
  /** Milliseconds. */
  readonly lockDelayMs: number;
}

/** A client that has the lock or waits for it. */
export interface PriorityContending extends Contending {
  /** With which it asked. */
  readonly priority: number;
}

/** The name of the znode that stands for the lock. */
export const HELD = 'held';

/** What the names of those who wait with this priority have between mark and number. */
export function markerOf(priority: number): string {
  return `${MARKER}${priority}-`;
}

/** The names of those who wait, in their order. */
export function waitersOf(children: readonly string[]): string[] {
  return children.filter((name) => WAITER.test(name)).sort(compareWaiters);
}

/** Which of the waiters the one at `index` waits for, or the holder; null when the lock is free for it. */
export function aheadOf(waiters: readonly string[], index: number, isHeld: boolean): string | null {
  return waiters[index - 1] ?? (isHeld ? HELD : null);
}

/** What the znode of the lock says while the one who waited under this name has it. */
export function formatHolder(name: string): string {
  return `${HOLDER}${name}`;
}

/** What it says once a client has noticed that the one who waited under this name holds it no more. */
export function formatDead(name: string): string {
  return `${DEAD}${name}`;
}

/** A holder died with the lock, and it was noticed when this was written. */
export function saysDeath(data: string): boolean {
  return data.startsWith(DEAD);
}

/** What it says after the lock was given back. */
export const FREE = 'free';

/** The name under which the last one waited who got the lock; null when it was given back, or never taken. */
export function parseHolder(data: string): string | null {
  return data.startsWith(HOLDER) ? data.slice(HOLDER.length) : null;
}

/** Who has the lock and who waits for it, in this order. Those who leave meanwhile are left out. */
export async function inspectByPriority(
  client: Client,
  path: string,
  options: CallOptions = {},
): Promise<readonly PriorityContending[]> {
  try {
    const { children } = await client.children(path, { ...options, read: 'linearizable' });
    const { data } = await client.get(path, { ...options, codec: text });
    const last = parseHolder(data);
    const names = children.includes(HELD) ? [HELD, ...waitersOf(children)] : waitersOf(children);
    const found = await Promise.all(names.map((name) => read(client, path, name, last, options)));
    return found.filter((contending) => contending !== null);
  } catch (error) {
    if (error instanceof NoNodeError) return [];
    throw error;
  }
}

async function read(
  client: Client,
  parent: string,
  name: string,
  holder: string | null,
  options: CallOptions,
): Promise<PriorityContending | null> {
  const path = joinPath(parent, name);
  try {
    const { data, stat } = await client.get(path, options);
    return {
      path,
      data,
      isFirst: name === HELD,
      sessionId: stat.ephemeralOwner,
      token: stat.czxid,
      since: stat.created,
      priority: priorityOf(name === HELD ? (holder ?? '') : name),
    };
  } catch (error) {
    if (error instanceof NoNodeError) return null;
    throw error;
  }
}

/** By priority, among equals by age. The names decide where an Apache server has run out of numbers. */
function compareWaiters(a: string, b: string): number {
  return priorityOf(a) - priorityOf(b) || compareBySequence(a, b) || (a < b ? -1 : 1);
}

function priorityOf(name: string): number {
  return Number(WAITER.exec(name)?.[1] ?? 0);
}

const MARKER = 'priority-';
/** The number has a sign where an Apache server has run out of them. */
const WAITER = /-priority-(-?\d+)--?\d{10}$/;
const HOLDER = 'held ';
const DEAD = 'died ';

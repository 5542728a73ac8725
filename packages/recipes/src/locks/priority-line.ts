import { type CallOptions, type Client, joinPath, NoNodeError, text } from '@meerkat/client';
import type { Contending } from '../kernel/line.ts';
import { compareBySequence } from '../kernel/sequence.ts';
import type { LockSettings } from '../kernel/settings.ts';

/**
 * The waiters of a lock, by priority, and its holder.
 *
 *     /locks/orders                                  `held <name of its place>`, `died <same>` or `free`; its version
 *                                                    counts
 *       held                                         ephemeral: the client that created it holds the lock
 *       _c_5b2f…-priority--5-0000000009              waits for `held`
 *       _c_0d1e…-priority-0-0000000007               waits for the one ahead
 *                         ╰┬╯╰───┬────╯
 *                   priority  number
 */
export interface PriorityLine extends LockSettings {
  readonly path: string;
  /** Milliseconds. */
  readonly lockDelayMs: number;
}

/** The holder or a waiter. */
export interface PriorityContending extends Contending {
  /** With which it asked. */
  readonly priority: number;
}

/** The name of the znode that represents the lock. */
export const HELD = 'held';

/** The text between mark and number in the names of waiters with this priority. */
export function markerOf(priority: number): string {
  return `${MARKER}${priority}-`;
}

/** The names of the waiters, in order. */
export function waitersOf(children: readonly string[]): string[] {
  return children.filter((name) => WAITER.test(name)).sort(compareWaiters);
}

/** The waiter, or holder, that the waiter at `index` waits for; null when the lock is free for it. */
export function aheadOf(waiters: readonly string[], index: number, isHeld: boolean): string | null {
  return waiters[index - 1] ?? (isHeld ? HELD : null);
}

/** The data of the lock's znode while the client that waited under this name holds it. */
export function formatHolder(name: string): string {
  return `${HOLDER}${name}`;
}

/** Its data once a client has noticed that the holder, who waited under this name, is gone. */
export function formatDead(name: string): string {
  return `${DEAD}${name}`;
}

/** A holder died with the lock, and this records that it was noticed. */
export function saysDeath(data: string): boolean {
  return data.startsWith(DEAD);
}

/** Its data after a release. */
export const FREE = 'free';

/** The name under which the last holder waited; null when the lock was released, or never acquired. */
export function parseHolder(data: string): string | null {
  return data.startsWith(HOLDER) ? data.slice(HOLDER.length) : null;
}

/** The holder and the waiters, in order. Contenders that leave meanwhile are omitted. */
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

/** By priority, then by age. Names decide where an Apache server has run out of numbers. */
function compareWaiters(a: string, b: string): number {
  return priorityOf(a) - priorityOf(b) || compareBySequence(a, b) || (a < b ? -1 : 1);
}

function priorityOf(name: string): number {
  return Number(WAITER.exec(name)?.[1] ?? 0);
}

const MARKER = 'priority-';
/** The number has a sign where an Apache server has run out of numbers. */
const WAITER = /-priority-(-?\d+)--?\d{10}$/;
const HOLDER = 'held ';
const DEAD = 'died ';

import { type Client, joinPath, NoAuthError, NoNodeError } from '@meerkat/client';
import type { IndexState, LineInfo, LineKind, LinesInfo, SessionInfo } from '../api/messages.ts';
import { isUuid, readBarriers } from './barriers.ts';
import { describeContender } from './contender.ts';
import type { Call } from './znode-reader.ts';

/*
 * Locks, elections and queues, recognised by the names of their znodes:
 *
 *     Curator   _c_UUID-lock-0000000007          InterProcessMutex, and semaphores at PATH/locks and PATH/leases
 *               _c_UUID-__READ__0000000007       read-write lock; __WRIT__ too
 *               _c_UUID-latch-0000000007         LeaderLatch
 *               queue-0000000007, qn-0000000007  queues
 *     kazoo     UUID__lock__0000000007           Lock, Semaphore and Election
 *               UUID__rlock__0000000007          ReadLock
 *               entry-PPP-0000000007             Queue and LockingQueue
 *     ours      _c_UUID-arrival-0000000007       Rendezvous and CyclicBarrier, with meeting-N-N for each round
 *
 * Our other recipes use Curator's layout, or kazoo's if configured. Barriers have no numbers: see `barriers.ts`.
 */

interface Name {
  readonly name: string;
  readonly sequence: number;
  /** The text before the number, without the mark of its owner. */
  readonly marker: string;
}

/** Parents of sequential znodes, with their children's names. */
export function findLines(paths: Iterable<string>): ReadonlyMap<string, readonly string[]> {
  const lines = new Map<string, string[]>();
  for (const path of paths) {
    if (!hasSequence(path)) continue;
    const at = path.lastIndexOf('/');
    const name = path.slice(at + 1);
    // One UUID in a hundred ends with ten digits by chance.
    if (isUuid(name)) continue;
    const parent = at === 0 ? '/' : path.slice(0, at);
    const names = lines.get(parent);
    if (names === undefined) lines.set(parent, [name]);
    else names.push(name);
  }
  return lines;
}

/** Whether it ends with ten digits. Called for every znode of the tree, so without a regular expression. */
function hasSequence(path: string): boolean {
  const { length } = path;
  if (length < 12) return false;
  for (let i = length - 10; i < length; i++) {
    const code = path.charCodeAt(i);
    if (code < 48 || code > 57) return false;
  }
  return true;
}

/**
 * Reads the contenders of each line and barrier, and who waits for whom.
 *
 * @param paths iterated twice
 * @param sessions addresses and watches of clients, as far as servers report
 */
export async function readLines(
  client: Client,
  paths: { [Symbol.iterator](): Iterator<string> },
  sessions: readonly SessionInfo[],
  index: IndexState,
  call: Call,
): Promise<LinesInfo> {
  const addresses = new Map(sessions.map(({ session, client: address }) => [session, address]));
  const found = [...findLines(paths)].filter(([parent]) => !parent.startsWith('/zookeeper')).slice(0, LINES_MAX);
  const lines: LineInfo[] = [];
  for (const [path, names] of found) {
    const line = await readLine(client, path, names, addresses, call);
    if (line !== null) lines.push(line);
  }
  lines.push(...(await readBarriers(client, paths, sessions, call)));
  lines.sort((a, b) => b.total - a.total || (a.path < b.path ? -1 : 1));
  return { lines, deadlocks: findDeadlocks(lines), index };
}

async function readLine(
  client: Client,
  path: string,
  unsorted: readonly string[],
  addresses: ReadonlyMap<string, string>,
  call: Call,
): Promise<LineInfo | null> {
  const all = unsorted.map(parseName).sort((a, b) => a.sequence - b.sequence);
  const { kind, layout } = classify(path, all);
  // Records of earlier rounds are not parties.
  const names = kind === 'rendezvous' ? all.filter(({ marker }) => marker === 'arrival-') : all;
  const read = await Promise.all(
    names.slice(0, CONTENDERS_MAX).map(async (name) => {
      try {
        const { data, stat } = await client.get(joinPath(path, name.name), call);
        return { name, data, stat };
      } catch (error) {
        if (error instanceof NoNodeError || error instanceof NoAuthError) return null;
        throw error;
      }
    }),
  );
  const standing = read.filter((one) => one !== null);
  if (standing.length === 0) return null;
  const waits = blockers(
    kind,
    standing.map(({ name }) => name),
  );
  const contenders = standing.map(({ name: { name }, data, stat }, i) => {
    // A meeting writes into the znode of each party.
    const isHolder = kind === 'rendezvous' ? stat.version > 0 : waits[i]!.length === 0 && kind !== 'queue';
    return describeContender({ name, data, stat }, addresses, { isHolder, waitsFor: waits[i]! });
  });
  return { path, kind, layout, total: names.length, contenders, places: null };
}

function parseName(name: string): Name {
  const marker = name
    .slice(0, -10)
    .replace(/^_c_[0-9a-f-]{36}-/, '')
    .replace(/^[0-9a-f]{32}(?=__)/, '');
  return { name, sequence: Number(name.slice(-10)), marker };
}

/** By the markers of most of its znodes, or by its name where they are ambiguous. */
export function classify(path: string, names: readonly Name[]): Pick<LineInfo, 'kind' | 'layout'> {
  const has = (pattern: RegExp): boolean => names.some(({ marker }) => pattern.test(marker));
  const isCurator = names.some(({ name }) => name.startsWith('_c_'));
  if (has(/^__(READ|WRIT)__$/)) return { kind: 'read-write lock', layout: 'curator' };
  if (has(/^__rlock__$/)) return { kind: 'read-write lock', layout: 'kazoo' };
  if (has(/^__lock__$/)) return { kind: /elect|leader/i.test(path) ? 'election' : 'lock', layout: 'kazoo' };
  if (has(/^arrival-$/)) return { kind: 'rendezvous', layout: 'meerkat' };
  if (has(/^latch-$/)) return { kind: 'election', layout: 'curator' };
  if (has(/^lease-$/)) return { kind: 'semaphore', layout: 'curator' };
  if (has(/^lock-$/)) {
    const kind: LineKind =
      /\/locks$/.test(path) && isCurator ? 'semaphore' : /elect|leader/i.test(path) ? 'election' : 'lock';
    return { kind: kind === 'semaphore' ? 'lock' : kind, layout: 'curator' };
  }
  if (has(/^entry-/)) return { kind: 'queue', layout: 'kazoo' };
  if (has(/^(queue-|qn-|item-)/)) return { kind: 'queue', layout: 'curator' };
  return { kind: 'line', layout: 'unknown' };
}

/** For each contender the names of those it waits for; empty: it is its turn. */
export function blockers(kind: LineKind, names: readonly Name[]): readonly (readonly string[])[] {
  return names.map(({ marker }, i) => {
    const before = names.slice(0, i);
    switch (kind) {
      case 'queue':
      case 'semaphore':
      case 'rendezvous':
        return [];
      case 'read-write lock': {
        const isWriter = (name: Name): boolean => !/^(__READ__|__rlock__)$/.test(name.marker);
        if (isWriter({ marker } as Name)) return before.map(({ name }) => name);
        return before.filter(isWriter).map(({ name }) => name);
      }
      default:
        return before.slice(0, 1).map(({ name }) => name);
    }
  });
}

/** Cycles of sessions of which each waits for what the next one holds. */
export function findDeadlocks(lines: readonly LineInfo[]): string[][] {
  const waits = new Map<string, Set<string>>();
  for (const { contenders } of lines) {
    const sessions = new Map(contenders.map(({ name, session }) => [name, session]));
    for (const { session, waitsFor } of contenders) {
      if (session === null) continue;
      for (const name of waitsFor) {
        const holder = sessions.get(name);
        if (holder === null || holder === undefined || holder === session) continue;
        const others = waits.get(session) ?? new Set();
        waits.set(session, others.add(holder));
      }
    }
  }
  const circles: string[][] = [];
  const done = new Set<string>();
  const visit = (session: string, trail: readonly string[]): void => {
    const at = trail.indexOf(session);
    if (at >= 0) {
      circles.push(trail.slice(at));
      return;
    }
    if (done.has(session)) return;
    done.add(session);
    for (const next of waits.get(session) ?? []) visit(next, [...trail, session]);
  };
  for (const session of waits.keys()) visit(session, []);
  return circles;
}

const LINES_MAX = 200;
const CONTENDERS_MAX = 100;

/**
 * Quotas on subtrees (Quotas, StatsTrack).
 *
 *     /zookeeper/quota<path>/zookeeper_limits    the limits of <path>, set by clients
 *     /zookeeper/quota<path>/zookeeper_stats     usage, written by the server: no new version or zxid, no watch event
 *
 *     text := "count=" n ",bytes=" n ( "=" ( ";" key "=" n )+ )?      keys byteHardLimit, countHardLimit, in this order
 *
 * A path is registered while it has a limits znode. Usage counts the znode itself and all its descendants, and bytes of
 * data only. A change is counted at the deepest registered ancestor only; the root has no quota.
 *
 * Usage is counted when its znode is created. With many znodes that takes several turns: until then it reads as it was
 * created, and the quota refuses nothing.
 */
import type { Trace } from '../base/ports.ts';
import type { QuotaUse } from '../base/server-view.ts';
import { AncestorIndex } from './ancestor-index.ts';
import { nextBehindSubtree, nextInSubtree } from './subtree.ts';
import type { TreeState } from './tree-state.ts';
import { UsageCount } from './usage-count.ts';
import { NO_ZNODE, type ZnodeNumber } from './znode-rows.ts';

/** A hard limit that a request would exceed. */
export interface QuotaFault {
  /** The registered path, as QUOTAEXCEEDED names it. */
  readonly path: string;
  readonly limit: 'count' | 'bytes';
}

const QUOTA_PATH = '/zookeeper/quota';
const LIMITS_NAME = '/zookeeper_limits';
const STATS_NAME = '/zookeeper_stats';
/** The marker stored at a registered path. */
const REGISTERED = {};
/** −1 in the text and in these fields: not set. */
const UNSET = -1;
/** Minimum milliseconds, of the tree's own time, between two equal warnings. */
const WARNING_INTERVAL_MS = 60_000;
/** Znodes counted per turn: about half a millisecond. */
const STEPS_PER_TURN = 4096;

export class Quotas {
  readonly #state: TreeState;
  readonly #trace: Trace;
  #paths = new AncestorIndex<typeof REGISTERED>();
  readonly #registered: Map<string, Registered> = new Map();
  /** Paths whose usage has not been counted yet, oldest first; `#counting` is for the first of them, or null. */
  readonly #uncounted = new Set<string>();
  #counting: UsageCount | null = null;
  /** Znodes that may still be visited in this turn. */
  #stepsLeft = STEPS_PER_TURN;
  /** When a limit of a path was last warned about: `<limit> <path>`. */
  readonly #warnedAtMs = new Map<string, number>();
  /** Time of the last txn; the tree has no other clock. */
  #nowMs = 0;

  constructor(state: TreeState, trace: Trace) {
    this.#state = state;
    this.#trace = trace;
  }

  /** True while creates and data changes must be reported: a path is registered, or a count is in progress. */
  get isActive(): boolean {
    return this.#paths.size > 0 || this.isCounting;
  }

  /** True while `advance` has something to do. */
  get isCounting(): boolean {
    return this.#uncounted.size > 0;
  }

  /** Called in every turn: continues counting. */
  advance(): void {
    this.#stepsLeft = STEPS_PER_TURN;
    if (!this.isCounting) return;
    for (const path of this.#uncounted) {
      if (this.#stepsLeft === 0) return;
      this.#count(path);
    }
  }

  /**
   * Checks, before a create or setData, whether it fits the quota of the deepest registered ancestor of `path`. Usage
   * is what has been applied. A hard limit replaces the soft one of its kind; exceeding a soft one is ok and is traced
   * as a warning, at most once per minute.
   */
  check(path: string, bytesDelta: number, countDelta: number): 'ok' | QuotaFault {
    if (this.#paths.size === 0) return 'ok';
    const registered = this.#registeredAbove(path);
    if (registered === null || this.#uncounted.has(registered.path)) return 'ok';
    const limits = this.#track(registered.limits);
    const usage = this.#track(registered.stats);
    if (limits === null || usage === null) return 'ok';
    const { path: quotaPath } = registered;
    const isCountKept =
      countDelta === 0 || this.#isWithin(quotaPath, 'count', usage.count + countDelta, limits.count, limits.countHard);
    if (!isCountKept) return { path: quotaPath, limit: 'count' };
    const areBytesKept =
      bytesDelta === 0 || this.#isWithin(quotaPath, 'bytes', usage.bytes + bytesDelta, limits.bytes, limits.bytesHard);
    return areBytesKept ? 'ok' : { path: quotaPath, limit: 'bytes' };
  }

  /** Registered paths with limits and usage. −1: no limit. */
  *uses(): Iterable<QuotaUse> {
    for (const registered of this.#registered.values()) {
      const { path } = registered;
      const limits = this.#track(registered.limits);
      const usage = this.#track(registered.stats);
      if (limits === null || usage === null) continue;
      const { count, bytes, countHard, bytesHard } = limits;
      yield {
        path,
        countLimit: countHard === UNSET ? count : countHard,
        bytesLimit: bytesHard === UNSET ? bytes : bytesHard,
        count: usage.count,
        bytes: usage.bytes,
      };
    }
  }

  /** A txn of this time is about to be applied. */
  onTxn(timeMs: number): void {
    this.#nowMs = timeMs;
  }

  onCreated(path: string, dataLength: number): void {
    if (!this.isActive && !path.startsWith(QUOTA_PATH)) return;
    this.#counting?.onCreated(this.#state.table.find(path));
    if (path.startsWith(QUOTA_PATH)) {
      if (path.endsWith(LIMITS_NAME)) this.#register(pathOfLimits(path));
      else if (path.endsWith(STATS_NAME)) this.#recount(pathOfStats(path));
    }
    if (this.#paths.size > 0) this.#book(path, dataLength, 1);
  }

  /** Before the znode is removed. */
  onDeleted(path: string, dataLength: number): void {
    if (path.startsWith(QUOTA_PATH)) {
      if (path.endsWith(LIMITS_NAME)) this.#unregister(pathOfLimits(path));
      else if (path.endsWith(STATS_NAME)) this.#countNoMore(pathOfStats(path));
    }
    if (this.isCounting) this.#restart(path);
    if (this.#paths.size > 0) this.#book(path, -dataLength, -1);
  }

  onDataChanged(path: string, bytesDelta: number): void {
    if (this.#uncounted.size > 0) {
      this.#counting?.onDataChanged(this.#state.table.find(path), bytesDelta);
      // Data written there by a client is kept as it is.
      if (path.startsWith(QUOTA_PATH) && path.endsWith(STATS_NAME)) this.#countNoMore(pathOfStats(path));
    }
    if (this.#paths.size > 0 && bytesDelta !== 0) this.#book(path, bytesDelta, 0);
  }

  /**
   * Finds the registered paths in a tree that was just loaded, and counts their usage: the deepest first, so that no
   * znode is visited twice.
   */
  rebuild(): void {
    for (const path of [...this.#uncounted]) this.#countNoMore(path);
    this.#paths = new AncestorIndex();
    this.#registered.clear();
    const { table } = this.#state;
    const quotaTop = table.find(QUOTA_PATH);
    const paths: string[] = [];
    for (let z = quotaTop; z !== NO_ZNODE; z = nextInSubtree(table, z, quotaTop)) {
      const path = table.pathOf(z);
      if (path.endsWith(LIMITS_NAME)) paths.push(pathOfLimits(path));
    }
    const counted = new Map<ZnodeNumber, Usage>();
    for (const path of paths.sort((a, b) => b.length - a.length)) {
      this.#register(path);
      const top = path === '' ? NO_ZNODE : table.find(path);
      const usage = this.#countAround(top, counted);
      if (top !== NO_ZNODE) counted.set(top, usage);
      if (path !== '') this.#setUsage(path, usage);
    }
  }

  #register(path: string): void {
    // A quota of the root is at /zookeeper/quota/zookeeper_limits, and is never enforced or counted.
    if (path.length <= 1 || !path.startsWith('/')) return;
    this.#paths.add(path, REGISTERED);
    this.#registered.set(path, new Registered(path));
  }

  #unregister(path: string): void {
    this.#paths.delete(path, REGISTERED);
    this.#registered.delete(path);
    for (const limit of ['count', 'bytes'] as const) this.#warnedAtMs.delete(`${limit} ${path}`);
  }

  #book(path: string, bytesDelta: number, countDelta: number): void {
    const registered = this.#registeredAbove(path);
    if (registered === null || this.#uncounted.has(registered.path)) return;
    const stats = this.#find(registered.stats);
    if (stats === NO_ZNODE) return;
    const usage = parseTrack(this.#textOf(stats));
    usage.count += countDelta;
    usage.bytes += bytesDelta;
    this.#write(stats, usage);
  }

  /** The root's usage is counted when its znode is created, and not again. */
  #recount(quotaPath: string): void {
    this.#countNoMore(quotaPath);
    this.#uncounted.add(quotaPath);
    if (this.#uncounted.size === 1) this.#count(quotaPath);
  }

  /** Counts as far as this turn allows. */
  #count(quotaPath: string): void {
    const { table } = this.#state;
    this.#counting ??= new UsageCount(this.#state, table.find(quotaPath === '' ? '/' : quotaPath));
    this.#stepsLeft = this.#counting.advance(this.#stepsLeft);
    if (!this.#counting.isDone) return;
    this.#setUsage(quotaPath, this.#counting);
    this.#countNoMore(quotaPath);
  }

  #countNoMore(quotaPath: string): void {
    const [first] = this.#uncounted;
    if (!this.#uncounted.delete(quotaPath) || first !== quotaPath) return;
    this.#counting?.drop();
    this.#counting = null;
  }

  /** The top of the subtree being counted is removed: its number may be reused anywhere in the tree. */
  #restart(path: string): void {
    const [first] = this.#uncounted;
    if (path !== first) return;
    this.#counting?.drop();
    this.#counting = null;
  }

  #setUsage(quotaPath: string, { count, bytes }: Usage): void {
    const stats = this.#state.table.find(QUOTA_PATH + quotaPath + STATS_NAME);
    if (stats === NO_ZNODE) return;
    const track: StatsTrack = { count, bytes, countHard: UNSET, bytesHard: UNSET };
    this.#write(stats, track);
  }

  /** This change has no txn of its own: reads that span several turns are notified here. */
  #write(stats: ZnodeNumber, track: StatsTrack): void {
    const state = this.#state;
    if (state.observers.size > 0) state.announce(state.table.pathOf(stats));
    state.replaceData(stats, ENCODER.encode(formatTrack(track)));
  }

  /** The usage of a subtree, reusing parts of it that have been counted before. */
  #countAround(top: ZnodeNumber, counted: ReadonlyMap<ZnodeNumber, Usage>): Usage {
    const { table } = this.#state;
    const usage = { count: 0, bytes: 0 };
    for (let z = top; z !== NO_ZNODE; ) {
      const part = counted.get(z);
      usage.count += part?.count ?? 1;
      usage.bytes += part?.bytes ?? Math.max(0, table.dataLengthOf(z));
      z = part === undefined ? nextInSubtree(table, z, top) : nextBehindSubtree(table, z, top);
    }
    return usage;
  }

  #isWithin(path: string, limit: QuotaFault['limit'], usage: number, soft: number, hard: number): boolean {
    const isHard = hard > UNSET;
    const most = isHard ? hard : soft;
    if (most <= UNSET || usage <= most) return true;
    this.#warn(path, limit, `${isHard ? 'hard' : 'soft'} limit of ${most} ${limit}, would be ${usage}`, isHard);
    return !isHard;
  }

  #warn(path: string, limit: QuotaFault['limit'], text: string, isHard: boolean): void {
    const key = `${limit} ${path}`;
    const last = this.#warnedAtMs.get(key);
    if (last !== undefined && this.#nowMs - last < WARNING_INTERVAL_MS && this.#nowMs >= last) return;
    this.#warnedAtMs.set(key, this.#nowMs);
    this.#trace.emit({ kind: 'quota-exceeded', path, limit: text, isHard });
  }

  /** The deepest path with a quota that is `path` or an ancestor of it. */
  #registeredAbove(path: string): Registered | null {
    const quotaPath = this.#paths.nearest(path);
    return quotaPath === null ? null : this.#registered.get(quotaPath)!;
  }

  #track(place: KnownPlace): StatsTrack | null {
    const z = this.#find(place);
    return z === NO_ZNODE ? null : parseTrack(this.#textOf(z));
  }

  #find(place: KnownPlace): ZnodeNumber {
    place.znode = this.#state.table.findAt(place.znode, place.path);
    return place.znode;
  }

  #textOf(z: ZnodeNumber): string {
    const { table } = this.#state;
    return DECODER.decode(table.pageOf(z).subarray(table.dataStartOf(z), table.statStartOf(z)));
  }
}

/**
 * A path and its last known znode: building and looking up a deep path is slow, and every write below would need it.
 */
interface KnownPlace {
  readonly path: string;
  znode: ZnodeNumber;
}

/** A path with a quota, and its two znodes. */
class Registered {
  readonly path: string;
  readonly limits: KnownPlace;
  readonly stats: KnownPlace;

  constructor(path: string) {
    this.path = path;
    this.limits = { path: QUOTA_PATH + path + LIMITS_NAME, znode: NO_ZNODE };
    this.stats = { path: QUOTA_PATH + path + STATS_NAME, znode: NO_ZNODE };
  }
}

interface Usage {
  readonly count: number;
  readonly bytes: number;
}

interface StatsTrack {
  count: number;
  bytes: number;
  countHard: number;
  bytesHard: number;
}

function pathOfLimits(path: string): string {
  return path.slice(QUOTA_PATH.length, -LIMITS_NAME.length);
}

function pathOfStats(path: string): string {
  return path.slice(QUOTA_PATH.length, -STATS_NAME.length);
}

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** Anything that is not a number counts as not set: clients may write any text here. */
export function parseTrack(text: string): StatsTrack {
  const track: StatsTrack = { count: UNSET, bytes: UNSET, countHard: UNSET, bytesHard: UNSET };
  for (const pair of text.split(/[,;]+/)) {
    const [key, value] = pair.split('=');
    const number = value === undefined || !/^-?\d{1,15}$/.test(value) ? UNSET : Number(value);
    if (key === 'count') track.count = number;
    else if (key === 'bytes') track.bytes = number;
    else if (key === 'countHardLimit') track.countHard = number;
    else if (key === 'byteHardLimit') track.bytesHard = number;
  }
  return track;
}

/**
 * False for data of a `zookeeper_stats` that an Apache server cannot parse. It parses them to count the next write
 * below, and unparsable data stops it, again after each restart. Such a txn must be refused.
 */
export function areReadableStats(path: string, data: Uint8Array | null): boolean {
  if (!path.endsWith(STATS_NAME) || !path.startsWith(QUOTA_PATH)) return true;
  if (data === null) return false;
  if (data.length === 0) return true;
  return DECODER.decode(data)
    .split(/[,;]+/)
    .every((pair) => /^[^=]+=[+-]?\d{1,18}=?$/.test(pair));
}

export function formatTrack(track: StatsTrack): string {
  let text = `count=${track.count},bytes=${track.bytes}`;
  if (track.bytesHard === UNSET && track.countHard === UNSET) return text;
  // After a lone "=" old parsers ignore the rest.
  text += '=';
  if (track.bytesHard !== UNSET) text += `;byteHardLimit=${track.bytesHard}`;
  if (track.countHard !== UNSET) text += `;countHardLimit=${track.countHard}`;
  return text;
}

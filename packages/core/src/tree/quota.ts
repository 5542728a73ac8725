/**
 * Quotas on subtrees (Quotas, StatsTrack).
 *
 *     /zookeeper/quota<path>/zookeeper_limits    the limits of <path>, set by clients
 *     /zookeeper/quota<path>/zookeeper_stats     how much is in use, kept by the server: no version, zxid or watch moves
 *
 *     text := "count=" n ",bytes=" n ( "=" ( ";" key "=" n )+ )?      keys byteHardLimit, countHardLimit, in this order
 *
 * A path is registered while it has a limits znode. Usage counts the znode itself and all below it, and bytes of data
 * only. What changes is booked at the deepest registered ancestor alone; the root has no quota.
 */
import type { Trace } from '../ports.ts';
import type { TreeState } from './tree-state.ts';
import { NO_ZNODE, type ZnodeNumber } from './znode-table.ts';

/** A hard limit that a request would exceed. */
export interface QuotaFault {
  /** The registered path, as QUOTAEXCEEDED names it. */
  readonly path: string;
  readonly limit: 'count' | 'bytes';
}

const QUOTA_PATH = '/zookeeper/quota';
const LIMITS_NAME = '/zookeeper_limits';
const STATS_NAME = '/zookeeper_stats';
/** −1 in the text and in these fields: not set. */
const UNSET = -1;
/** Milliseconds, of the tree's own time, in which the same warning is not repeated. */
const WARNING_INTERVAL_MS = 60_000;

export class Quotas {
  readonly #state: TreeState;
  readonly #trace: Trace;
  readonly #paths = new Set<string>();
  /** When a limit of a path was last warned about: `<limit> <path>`. */
  readonly #warnedAtMs = new Map<string, number>();
  /** Time of the last txn; the tree has no other clock. */
  #nowMs = 0;

  constructor(state: TreeState, trace: Trace) {
    this.#state = state;
    this.#trace = trace;
  }

  /** Number of registered paths. */
  get size(): number {
    return this.#paths.size;
  }

  /**
   * Asks, before a create or setData, whether the deepest registered ancestor of `path` has room for it. What is in
   * use is what has been applied. A hard limit counts instead of the soft one of its kind, not beside it; exceeding a
   * soft one is told to the trace, at most once a minute, and is ok.
   */
  check(path: string, bytesDelta: number, countDelta: number): 'ok' | QuotaFault {
    if (this.#paths.size === 0) return 'ok';
    const quotaPath = this.#registeredAncestor(path);
    if (quotaPath === null) return 'ok';
    const limits = this.#track(QUOTA_PATH + quotaPath + LIMITS_NAME);
    const usage = this.#track(QUOTA_PATH + quotaPath + STATS_NAME);
    if (limits === null || usage === null) return 'ok';
    const isCountKept =
      countDelta === 0 || this.#isWithin(quotaPath, 'count', usage.count + countDelta, limits.count, limits.countHard);
    if (!isCountKept) return { path: quotaPath, limit: 'count' };
    const areBytesKept =
      bytesDelta === 0 || this.#isWithin(quotaPath, 'bytes', usage.bytes + bytesDelta, limits.bytes, limits.bytesHard);
    return areBytesKept ? 'ok' : { path: quotaPath, limit: 'bytes' };
  }

  /** A txn of this time is about to be applied. */
  onTxn(timeMs: number): void {
    this.#nowMs = timeMs;
  }

  onCreated(path: string, dataLength: number): void {
    if (path.startsWith(QUOTA_PATH)) {
      if (path.endsWith(LIMITS_NAME)) this.#register(path);
      else if (path.endsWith(STATS_NAME)) this.#recount(path.slice(QUOTA_PATH.length, -STATS_NAME.length));
    }
    if (this.#paths.size > 0) this.#book(path, dataLength, 1);
  }

  onDeleted(path: string, dataLength: number): void {
    if (path.startsWith(QUOTA_PATH) && path.endsWith(LIMITS_NAME)) {
      this.#paths.delete(path.slice(QUOTA_PATH.length, -LIMITS_NAME.length));
    }
    if (this.#paths.size > 0) this.#book(path, -dataLength, -1);
  }

  onDataChanged(path: string, bytesDelta: number): void {
    if (this.#paths.size > 0 && bytesDelta !== 0) this.#book(path, bytesDelta, 0);
  }

  /** Finds the registered paths in a tree that was just loaded, and counts what they use. */
  rebuild(): void {
    this.#paths.clear();
    const { table } = this.#state;
    const top = table.find(QUOTA_PATH);
    const limits: string[] = [];
    for (let z = top; z !== NO_ZNODE; z = table.nextInSubtree(z, top)) {
      if (table.pathOf(z).endsWith(LIMITS_NAME)) limits.push(table.pathOf(z));
    }
    for (const path of limits) this.#register(path);
    for (const path of this.#paths) this.#recount(path);
  }

  #register(limitsPath: string): void {
    const path = limitsPath.slice(QUOTA_PATH.length, -LIMITS_NAME.length);
    // A quota of the root stands at /zookeeper/quota/zookeeper_limits, and is never enforced or counted.
    if (path.length > 1 && path.startsWith('/')) this.#paths.add(path);
  }

  #registeredAncestor(path: string): string | null {
    for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
      const ancestor = path.slice(0, end);
      if (this.#paths.has(ancestor)) return ancestor;
    }
    return null;
  }

  #book(path: string, bytesDelta: number, countDelta: number): void {
    const quotaPath = this.#registeredAncestor(path);
    if (quotaPath === null) return;
    const stats = this.#state.table.find(QUOTA_PATH + quotaPath + STATS_NAME);
    if (stats === NO_ZNODE) return;
    const usage = parseTrack(this.#textOf(stats));
    usage.count += countDelta;
    usage.bytes += bytesDelta;
    this.#state.replaceData(stats, ENCODER.encode(formatTrack(usage)));
  }

  #recount(quotaPath: string): void {
    const { table } = this.#state;
    const stats = table.find(QUOTA_PATH + quotaPath + STATS_NAME);
    if (stats === NO_ZNODE) return;
    const usage: StatsTrack = { count: 0, bytes: 0, countHard: UNSET, bytesHard: UNSET };
    const top = quotaPath === '' ? NO_ZNODE : table.find(quotaPath);
    for (let z = top; z !== NO_ZNODE; z = table.nextInSubtree(z, top)) {
      usage.count++;
      usage.bytes += Math.max(0, table.dataLengthOf(z));
    }
    this.#state.replaceData(stats, ENCODER.encode(formatTrack(usage)));
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

  #track(path: string): StatsTrack | null {
    const z = this.#state.table.find(path);
    return z === NO_ZNODE ? null : parseTrack(this.#textOf(z));
  }

  #textOf(z: ZnodeNumber): string {
    const { table } = this.#state;
    return DECODER.decode(table.pageOf(z).subarray(table.dataStartOf(z), table.statStartOf(z)));
  }
}

interface StatsTrack {
  count: number;
  bytes: number;
  countHard: number;
  bytesHard: number;
}

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** Whatever is not a number counts as not set: clients may write anything here. */
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

export function formatTrack(track: StatsTrack): string {
  let text = `count=${track.count},bytes=${track.bytes}`;
  if (track.bytesHard === UNSET && track.countHard === UNSET) return text;
  // The lone "=" makes old parsers leave the rest alone.
  text += '=';
  if (track.bytesHard !== UNSET) text += `;byteHardLimit=${track.bytesHard}`;
  if (track.countHard !== UNSET) text += `;countHardLimit=${track.countHard}`;
  return text;
}

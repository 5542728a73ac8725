import {
  BadVersionError,
  type CallOptions,
  type Client,
  isZooKeeperError,
  joinPath,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  parentOf,
  TransactionError,
} from '@meerkat/client';
import { walkTree } from '../tree/tree-walk.ts';
import {
  formatLimits,
  hasLimit,
  NO_LIMITS,
  NO_USAGE,
  parseLimits,
  parseUsage,
  type QuotaLimits,
  type QuotaUsage,
} from './quota-text.ts';

/*
 * Where quotas are (Quotas):
 *
 *     /zookeeper/quota<path>/zookeeper_limits    the limits of <path>
 *     /zookeeper/quota<path>/zookeeper_stats     what is in use, kept by the server from its creation on
 */
const TOP = '/zookeeper/quota';
const LIMITS = 'zookeeper_limits';
const STATS = 'zookeeper_stats';

export interface Quota {
  readonly path: string;
  readonly limits: QuotaLimits;
  /** null when the server keeps none. */
  readonly usage: QuotaUsage | null;
}

/** The quota of a path itself. */
export async function readQuota(client: Client, path: string, call: CallOptions): Promise<Quota | null> {
  const [limits, stats] = await Promise.all([read(client, path, LIMITS, call), read(client, path, STATS, call)]);
  if (limits === null) return null;
  return { path, limits: parseLimits(limits.text), usage: stats === null ? null : parseUsage(stats.text) };
}

/** The quota that a path counts to: its own, or the one of the nearest ancestor that has one. */
export async function findQuota(client: Client, path: string, call: CallOptions): Promise<Quota | null> {
  const all = await Promise.all(lineageOf(path).map((ancestor) => readQuota(client, ancestor, call)));
  return all.findLast((quota) => quota !== null) ?? null;
}

/** All quotas at or below a path, in the order of the tree. */
export async function* quotasBelow(client: Client, path: string, call: CallOptions): AsyncGenerator<Quota, void> {
  const root = quotaPath(path);
  if ((await client.exists(root, call)) === null) return;
  for await (const { path: found, children } of walkTree(client, root, call)) {
    if (!children.includes(LIMITS)) continue;
    const quota = await readQuota(client, found === TOP ? '/' : found.slice(TOP.length), call);
    if (quota !== null) yield quota;
  }
}

/**
 * Changes the limits of a path, and creates its quota when it has none. A quota without limits is removed.
 *
 * @param change is passed the present limits
 * @returns null when the quota was removed
 */
export async function changeQuota(
  client: Client,
  path: string,
  change: (limits: QuotaLimits) => QuotaLimits,
  call: CallOptions,
): Promise<Quota | null> {
  for (let attempt = 1; ; attempt++) {
    const found = await read(client, path, LIMITS, call);
    const limits = change(found === null ? NO_LIMITS : parseLimits(found.text));
    try {
      if (!hasLimit(limits)) {
        if (found !== null) await removeQuota(client, path, found.version, call);
        return null;
      }
      await write(client, path, limits, found?.version ?? null, call);
      return await readQuota(client, path, call);
    } catch (error) {
      // It was changed in between.
      if (attempt === ATTEMPTS_MAX || !isConflict(error)) throw error;
    }
  }
}

const ATTEMPTS_MAX = 5;

/** @param version of the limits that there are; null for none */
async function write(
  client: Client,
  path: string,
  limits: QuotaLimits,
  version: number | null,
  call: CallOptions,
): Promise<void> {
  const parent = quotaPath(path);
  if (version === null) await client.ensurePath(parent, call);
  const hasStats = (await client.exists(joinPath(parent, STATS), call)) !== null;
  const transaction = client.transaction();
  if (version === null) transaction.create(joinPath(parent, LIMITS), formatLimits(limits));
  else transaction.set(joinPath(parent, LIMITS), formatLimits(limits), { version });
  // Behind the limits: with its creation the server counts what is there.
  if (!hasStats) transaction.create(joinPath(parent, STATS), NO_USAGE);
  await transaction.commit(call);
}

async function removeQuota(client: Client, path: string, version: number, call: CallOptions): Promise<void> {
  const parent = quotaPath(path);
  const hasStats = (await client.exists(joinPath(parent, STATS), call)) !== null;
  const transaction = client.transaction();
  transaction.delete(joinPath(parent, LIMITS), { version });
  if (hasStats) transaction.delete(joinPath(parent, STATS));
  await transaction.commit(call);
  for (let at = parent; at !== TOP; at = parentOf(at)) {
    try {
      await client.delete(at, call);
    } catch (error) {
      // Other quotas lie below it, or another client cleans up too.
      if (error instanceof NotEmptyError) return;
      if (!(error instanceof NoNodeError)) throw error;
    }
  }
}

function isConflict(error: unknown): boolean {
  const cause = error instanceof TransactionError && isZooKeeperError(error.cause) ? error.cause : error;
  return cause instanceof BadVersionError || cause instanceof NodeExistsError || cause instanceof NoNodeError;
}

interface Text {
  readonly text: string;
  readonly version: number;
}

async function read(client: Client, path: string, name: string, call: CallOptions): Promise<Text | null> {
  try {
    const { data, stat } = await client.get(joinPath(quotaPath(path), name), call);
    return { text: new TextDecoder().decode(data), version: stat.version };
  } catch (error) {
    if (error instanceof NoNodeError) return null;
    throw error;
  }
}

function quotaPath(path: string): string {
  return path === '/' ? TOP : TOP + path;
}

/** `/a/b` lies below `/` and `/a`; the nearest last, the path itself included. */
function lineageOf(path: string): readonly string[] {
  const lineage = ['/'];
  for (let end = path.indexOf('/', 1); end > 0; end = path.indexOf('/', end + 1)) lineage.push(path.slice(0, end));
  if (path !== '/') lineage.push(path);
  return lineage;
}

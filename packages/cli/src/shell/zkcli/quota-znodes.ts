import { type Client, joinPath, NodeExistsError, NoNodeError, parentOf } from '@meerkat/client';
import type { Command } from 'commander';
import { CommandFailure, InvocationFailure } from '../../run/command-failure.ts';
import type { Context } from '../../run/context.ts';
import { CommandExit } from '../../run/exit-code.ts';

/*
 * A quota is two znodes below /zookeeper/quota<path>: zookeeper_limits, which activates it, and zookeeper_stats, which the
 * server keeps. Both hold text (ZooKeeper's class StatsTrack):
 *
 *     count=<n>,bytes=<n>=;byteHardLimit=<n>;countHardLimit=<n>
 *
 * −1 stands for no limit. The lone "=" keeps parsers of servers before 3.7 happy, which know the first two fields only.
 */
export interface QuotaLimits {
  /** Znodes, the path itself included. Soft: passing it is logged. */
  readonly count: number;
  /** Of data. Soft. */
  readonly bytes: number;
  /** Hard limits are enforced, if the servers have enforceQuota=true. */
  readonly countHard: number;
  readonly bytesHard: number;
}

export type QuotaLimit = keyof QuotaLimits;

const NO_LIMITS: QuotaLimits = { count: -1, bytes: -1, countHard: -1, bytesHard: -1 };
const ROOT = '/zookeeper/quota';

/** What is limited, and what is used of it. */
export interface Quota {
  readonly limits: QuotaLimits;
  /** As the znodes have it. */
  readonly limitsText: string;
  /** null when nothing is kept of the usage. */
  readonly usageText: string | null;
}

/** The options that name a limit, in zkCli's letters. @param value what they take: `<n>`, or nothing */
export function addLimitOptions(command: Command, value: string): Command {
  return command
    .option(`-n, --count${value}`, 'znodes; passing it is logged')
    .option(`-b, --bytes${value}`, 'bytes of data; passing it is logged')
    .option(`-N, --count-hard${value}`, 'znodes; refused beyond, where servers have enforceQuota=true')
    .option(`-B, --bytes-hard${value}`, 'bytes of data; refused beyond, where servers have enforceQuota=true');
}

/** Where the limits of a path are. */
export function limitsPathOf(path: string): string {
  return joinPath(quotaPathOf(path), 'zookeeper_limits');
}

function statsPathOf(path: string): string {
  return joinPath(quotaPathOf(path), 'zookeeper_stats');
}

function quotaPathOf(path: string): string {
  return path === '/' ? ROOT : `${ROOT}${path}`;
}

/** @returns null when the path has none */
export async function readQuota(context: Context, client: Client, path: string): Promise<Quota | null> {
  refuseChroot(client);
  const [limitsText, usageText] = await Promise.all([
    readText(context, client, limitsPathOf(path)),
    readText(context, client, statsPathOf(path)),
  ]);
  return limitsText === null ? null : { limits: parseLimits(limitsText), limitsText, usageText };
}

/** Changes some limits of a path, or makes it have a quota. */
export async function writeLimits(
  context: Context,
  client: Client,
  path: string,
  changes: Partial<QuotaLimits>,
): Promise<void> {
  const { call } = context;
  const quota = await readQuota(context, client, path);
  const text = formatLimits({ ...(quota?.limits ?? NO_LIMITS), ...changes });
  if (quota !== null) {
    await client.set(limitsPathOf(path), text, call);
    return;
  }
  await refuseNesting(context, client, path);
  await client.ensurePath(quotaPathOf(path), call);
  await client.create(limitsPathOf(path), text, call);
  try {
    await client.create(statsPathOf(path), formatLimits(NO_LIMITS), call);
  } catch (error) {
    if (!(error instanceof NodeExistsError)) throw error;
  }
}

/** Takes the whole quota off a path; what is left empty above it goes too. */
export async function deleteQuota({ call }: Context, client: Client, path: string): Promise<void> {
  await client.delete(limitsPathOf(path), call);
  await client.delete(statsPathOf(path), call).catch((error: unknown) => {
    if (!(error instanceof NoNodeError)) throw error;
  });
  for (let znode = quotaPathOf(path); znode !== ROOT; znode = parentOf(znode)) {
    const stat = await client.exists(znode, call);
    if (stat === null || stat.numChildren > 0) return;
    await client.delete(znode, call);
  }
}

/** A znode counts for the nearest quota above it only: two on one way down would be wrong for the upper one. */
async function refuseNesting({ call }: Context, client: Client, path: string): Promise<void> {
  for (let above = path; above !== '/'; ) {
    above = parentOf(above);
    if (above !== '/' && (await client.exists(limitsPathOf(above), call)) !== null) throw nested(path, above);
  }
  const paths = [quotaPathOf(path)];
  for (let znode = paths.pop(); znode !== undefined; znode = paths.pop()) {
    const parent = znode;
    const children: readonly string[] = await client.children(parent, call).then(
      (found) => found.children,
      (error: unknown) => {
        if (error instanceof NoNodeError) return [];
        throw error;
      },
    );
    if (children.includes('zookeeper_limits')) throw nested(path, parent.slice(ROOT.length));
    paths.push(...children.map((name) => joinPath(parent, name)));
  }
}

function nested(path: string, other: string): CommandFailure {
  return new CommandFailure(
    CommandExit.badArguments,
    `cannot limit ${path}: ${other} has a quota already, and a znode counts for one only ("delquota ${other}" takes it off)`,
  );
}

function refuseChroot(client: Client): void {
  if (client.chroot === '') return;
  throw new InvocationFailure(
    `quotas are below ${ROOT}, outside of the chroot ${client.chroot}: connect without it and name the whole path`,
  );
}

async function readText({ call }: Context, client: Client, path: string): Promise<string | null> {
  try {
    return new TextDecoder().decode((await client.get(path, call)).data);
  } catch (error) {
    if (error instanceof NoNodeError) return null;
    throw error;
  }
}

const FIELDS: Readonly<Record<string, QuotaLimit>> = {
  count: 'count',
  bytes: 'bytes',
  countHardLimit: 'countHard',
  byteHardLimit: 'bytesHard',
};

export function parseLimits(text: string): QuotaLimits {
  const limits = { ...NO_LIMITS };
  for (const field of text.split(/[,;]+/)) {
    const [key = '', value = ''] = field.split('=');
    const limit = FIELDS[key.trim()];
    if (limit !== undefined && /^-?\d+$/.test(value.trim())) limits[limit] = Number(value);
  }
  return limits;
}

export function formatLimits({ count, bytes, countHard, bytesHard }: QuotaLimits): string {
  return `count=${count},bytes=${bytes}=;byteHardLimit=${bytesHard};countHardLimit=${countHard}`;
}

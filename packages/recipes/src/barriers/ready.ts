import { type Client, NoNodeError, type TransactionError, type WatchEvent } from '@meerkat/client';
import type { Wait } from '../wait.ts';

/** The znode that opens a double barrier, beside those of its members. */
export const READY = 'ready';

/** What was to be deleted is not there. */
export function ignoreMissing(error: unknown): void {
  if (!(error instanceof NoNodeError)) throw error;
}

/** What was to be read is not there. */
export function nullIfMissing(error: unknown): null {
  ignoreMissing(error);
  return null;
}

/** The names of the members, the lowest first. */
export function membersOf(children: readonly string[]): string[] {
  return children.filter((name) => name !== READY).sort();
}

/** One of these znodes that was there before the round began: it was counted for it. null: none is left. */
export async function findFounder(
  client: Client,
  paths: readonly string[],
  round: bigint,
  wait: Wait,
): Promise<string | null> {
  const stats = await wait.through((call) => Promise.all(paths.map((path) => client.exists(path, call))));
  return paths.find((_, i) => (stats[i]?.czxid ?? round) < round) ?? null;
}

/** @returns the zxid of the creation that was waited for; null when it is not known, or something else came */
export async function awaitCreation(
  changed: Promise<WatchEvent>,
  lost: AbortSignal,
  wait: Wait,
): Promise<bigint | null> {
  let zxid: bigint | null = null;
  const noted = changed.then((event) => {
    if (event.type === 'created') zxid = event.zxid;
  });
  await wait.any([noted], { lost });
  return zxid;
}

/** Somebody else has changed what the transaction relied on, or an earlier attempt of it was applied. */
export function isRace({ cause }: TransactionError): boolean {
  return RACES.has(cause.code);
}

const RACES: ReadonlySet<string> = new Set(['NONODE', 'NODEEXISTS', 'BADVERSION']);

import type { Client, TransactionError, WatchEvent } from '@meerkat/client';
import type { Attempt } from '../kernel/attempt.ts';

/** The znode that opens a double barrier, beside those of its members. */
export const READY = 'ready';

/** The names of the members, the lowest first. */
export function membersOf(children: readonly string[]): string[] {
  return children.filter((name) => name !== READY).sort();
}

/** A member znode older than the round, i.e. one that was counted for it. null: none is left. */
export async function findFounder(
  client: Client,
  paths: readonly string[],
  round: bigint,
  attempt: Attempt,
): Promise<string | null> {
  const stats = await attempt.through((call) => Promise.all(paths.map((path) => client.exists(path, call))));
  return paths.find((_, i) => (stats[i]?.czxid ?? round) < round) ?? null;
}

/** @returns the zxid of the awaited creation; null when it is not known, or another event came */
export async function awaitCreation(
  changed: Promise<WatchEvent>,
  lost: AbortSignal,
  attempt: Attempt,
): Promise<bigint | null> {
  let zxid: bigint | null = null;
  const noted = changed.then((event) => {
    if (event.type === 'created') zxid = event.zxid;
  });
  await attempt.any([noted], { lost });
  return zxid;
}

/** Another client has changed a precondition of the transaction, or an earlier attempt was applied. */
export function isRace({ cause }: TransactionError): boolean {
  return RACES.has(cause.code);
}

const RACES: ReadonlySet<string> = new Set(['NONODE', 'NODEEXISTS', 'BADVERSION']);

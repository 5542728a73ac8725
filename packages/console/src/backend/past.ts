import { type Acl, type Client, NoAuthError, NoNodeError, Perm } from '@meerkat/client';
import type { HistoryEntry, HistoryInfo } from '../api/messages.ts';
import type { ClusterSession } from './cluster-session.ts';
import type { PastState } from './options.ts';
import { Refusal } from './refusal.ts';
import { aclEntries, type Call } from './znode-reader.ts';

/**
 * What the retained log tells of a znode, as far as this session may know it.
 *
 * The log has no regard for ACLs, and of a past one it cannot be tried out whether a session satisfies it. So a value is shown
 * when anyone could read it then, or when its ACL was that of now and the session may read the znode now.
 */
export async function readHistory(session: ClusterSession, path: string): Promise<HistoryInfo> {
  const { history } = session.cluster;
  if (history === undefined) {
    const text = 'the console was not told where the log is: start it with --dir or --admin';
    throw new Refusal(501, 'no-history', text, path);
  }
  const aclNow = await readableAcl(session.client, path, session.call);
  const all = await history(path);
  return { entries: all.slice(-ENTRIES_MAX).map((past) => describe(past, aclNow)), isCut: all.length > ENTRIES_MAX };
}

function describe({ state, ...past }: PastState, aclNow: string | null): HistoryEntry {
  if (state === null) return { ...past, data: null, isWithheld: false };
  const { acl, data } = state;
  if (!isOpen(acl) && aclText(acl) !== aclNow) return { ...past, data: null, isWithheld: true };
  return { ...past, data: data === null ? null : Buffer.from(data).toString('base64'), isWithheld: false };
}

/** Anyone could read it. */
export function isOpen(acl: readonly Acl[]): boolean {
  return acl.some(({ perms, scheme }) => scheme === 'world' && (perms & Perm.read) !== 0);
}

/** The ACL of a znode that this session may read, as text; null: it may not, or there is none. */
export async function readableAcl(client: Client, path: string, call: Call): Promise<string | null> {
  try {
    const [{ acl }] = await Promise.all([client.getAcl(path, call), client.get(path, call)]);
    return aclText(acl);
  } catch (error) {
    if (error instanceof NoNodeError || error instanceof NoAuthError) return null;
    throw error;
  }
}

export function aclText(acl: readonly Acl[]): string {
  return JSON.stringify(aclEntries(acl));
}

const ENTRIES_MAX = 500;

import { type Acl, type Client, NoAuthError, NoNodeError, Perm } from '@meerkat/client';
import type { HistoryEntry, HistoryInfo } from '../api/past-messages.ts';
import type { ClusterSession } from './cluster-session.ts';
import type { PastState } from './options.ts';
import { Refusal } from './refusal.ts';
import { aclEntries, type Call } from './znode-reader.ts';

/**
 * The history of a znode in the retained log, as far as this session may see it.
 *
 * The log ignores ACLs, and whether a session satisfies a past ACL cannot be tested. So a value is shown when both the
 * current ACL and that of the time allow it: the session may read the current value, and anyone could read it then or
 * the ACL was the same. For a znode that does not exist now, only the ACL of that time counts.
 */
export async function readHistory(session: ClusterSession, path: string): Promise<HistoryInfo> {
  const { history } = session.cluster;
  if (history === undefined) {
    const text = 'the console was not told where the log is: start it with --dir or --admin';
    throw new Refusal(501, 'no-history', text, path);
  }
  const access = await readAccess(session.client, path, session.call);
  // Not even the session that wrote it.
  if (access.kind === 'denied') throw new Refusal(403, 'NOAUTH', `you may not read ${path}`, path);
  const { states, isCut } = await history(path);
  return { entries: states.map((past) => describe(past, access)), isCut };
}

function describe({ state, ...past }: PastState, access: Access): HistoryEntry {
  if (state === null) return { ...past, data: null, isWithheld: false };
  const { acl, data } = state;
  if (acl === null || !mayKnow(access, acl)) return { ...past, data: null, isWithheld: true };
  return { ...past, data: data === null ? null : Buffer.from(data).toString('base64'), isWithheld: false };
}

/** What a session may do now with a znode. */
export type Access =
  | { readonly kind: 'absent' }
  | { readonly kind: 'denied' }
  /** It may read it; the ACL as text. */
  | { readonly kind: 'allowed'; readonly acl: string };

export async function readAccess(client: Client, path: string, call: Call): Promise<Access> {
  try {
    const { acl } = await client.getAcl(path, call);
    // A session that has only ADMIN permission gets the ACL, too.
    if (!isOpen(acl)) await client.get(path, call);
    return { kind: 'allowed', acl: aclText(acl) };
  } catch (error) {
    if (error instanceof NoNodeError) return { kind: 'absent' };
    if (error instanceof NoAuthError) return { kind: 'denied' };
    throw error;
  }
}

/** @param past the ACL of that time */
export function mayKnow(access: Access, past: readonly Acl[]): boolean {
  if (access.kind === 'denied') return false;
  return isOpen(past) || (access.kind === 'allowed' && aclText(past) === access.acl);
}

/** Anyone could read it. */
function isOpen(acl: readonly Acl[]): boolean {
  return acl.some(({ perms, scheme }) => scheme === 'world' && (perms & Perm.read) !== 0);
}

function aclText(acl: readonly Acl[]): string {
  return JSON.stringify(aclEntries(acl));
}

import type { AuditEntry } from '@meerkat/core';
import { type Acl, Perm } from '@meerkat/protocol';

/** What stands in the audit log besides what clients have done. */
export interface ServerEvent {
  readonly operation: 'serverStart' | 'serverStop';
  readonly result: 'success' | 'failure' | 'invoked';
}

/** A change that was asked for at the admin port. */
export interface AdminEvent {
  readonly operation: 'endSession' | 'drain' | 'undrain' | 'shed' | 'restore';
  /** The one that was to end; null of other operations, and when what was given is no id. Who asks has none. */
  readonly sessionId: bigint | null;
  readonly caller: { readonly users: readonly string[]; readonly host: string };
  /** `invoked`: the outcome is unknown. */
  readonly result: 'success' | 'failure' | 'invoked';
}

/** The fields of a line, in the order of Apache's; what does not apply is undefined, and left out. */
export interface AuditFields {
  readonly session: string | undefined;
  readonly user: string | undefined;
  readonly ip: string | undefined;
  readonly operation: string;
  readonly znode: string | undefined;
  readonly znode_type: string | undefined;
  readonly acl: string | undefined;
  readonly result: string;
}

/**
 * @param serverUser as whom this process runs: it is the user of what the server does by itself
 * @param sessionText writes the id of a session
 */
export function fieldsOf(
  entry: AuditEntry | ServerEvent | AdminEvent,
  serverUser: string,
  sessionText: (id: bigint) => string = formatSessionId,
): AuditFields {
  if ('caller' in entry) {
    const { operation, result, sessionId, caller } = entry;
    const [znode, znode_type, acl] = [undefined, undefined, undefined];
    const session = sessionId === null ? undefined : sessionText(sessionId);
    const user = caller.users.join(',') || undefined;
    return { session, user, ip: caller.host || undefined, operation, znode, znode_type, acl, result };
  }
  if ('result' in entry) {
    const { operation, result } = entry;
    const [session, ip, znode, znode_type, acl] = [undefined, undefined, undefined, undefined, undefined];
    return { session, user: serverUser || undefined, ip, operation, znode, znode_type, acl, result };
  }
  const { sessionId, client, operation, path, mode, acl, isSuccess } = entry;
  return {
    session: sessionText(sessionId),
    user: (client === null ? serverUser : client.users.join(',')) || undefined,
    ip: client?.host || undefined,
    operation,
    znode: path || undefined,
    znode_type: mode === null ? undefined : (MODE_NAMES[mode] ?? `unknown (${mode})`),
    acl: acl === null ? undefined : formatAcl(acl) || undefined,
    result: isSuccess ? 'success' : 'failure',
  };
}

export function formatSessionId(id: bigint): string {
  return `0x${BigInt.asUintN(64, id).toString(16)}`;
}

/** `session=0x…<tab>user=…<tab>…`, as Apache's AuditEvent; a character that would end a field or a line is written as its code. */
export function formatAuditLine({ session, user, ip, operation, znode, znode_type, acl, result }: AuditFields): string {
  return (
    (session === undefined ? '' : `session=${session}\t`) +
    (user === undefined ? '' : `user=${escapeControls(user)}\t`) +
    (ip === undefined ? '' : `ip=${ip}\t`) +
    `operation=${operation}\t` +
    (znode === undefined ? '' : `znode=${escapeControls(znode)}\t`) +
    (znode_type === undefined ? '' : `znode_type=${znode_type}\t`) +
    (acl === undefined ? '' : `acl=${escapeControls(acl)}\t`) +
    `result=${result}`
  );
}

/** Names of Apache's CreateMode by their numbers. */
const MODE_NAMES: readonly string[] = [
  'persistent',
  'ephemeral',
  'persistent_sequential',
  'ephemeral_sequential',
  'container',
  'persistent_with_ttl',
  'persistent_sequential_with_ttl',
];

/** `world:anyone:cdrwa`, one list behind the other, as ZKUtil.aclToString does it. */
function formatAcl(acl: readonly Acl[]): string {
  return acl.map(({ perms, scheme, id }) => `${scheme}:${id}:${formatPerms(perms)}`).join('');
}

const LETTERS: readonly (readonly [number, string])[] = [
  [Perm.create, 'c'],
  [Perm.delete, 'd'],
  [Perm.read, 'r'],
  [Perm.write, 'w'],
  [Perm.admin, 'a'],
];

function formatPerms(perms: number): string {
  return LETTERS.map(([bit, letter]) => ((perms & bit) === 0 ? '' : letter)).join('');
}

function escapeControls(text: string): string {
  if (!CONTROL.test(text)) return text;
  return text.replace(CONTROLS, (character) => {
    const code = character.charCodeAt(0).toString(16).padStart(4, '0');
    return `\\u${code}`;
  });
}

/* Looked for in every field. Without the flag `u`, and a class of Unicode, that takes a small part of the time. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
const CONTROLS = new RegExp(CONTROL, 'g');

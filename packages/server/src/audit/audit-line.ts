import type { AuditEntry } from '@meerkat/core';
import { type Acl, Perm } from '@meerkat/protocol';

/** What stands in the audit log besides what clients have done. */
export interface ServerEvent {
  readonly operation: 'serverStart' | 'serverStop';
  readonly result: 'success' | 'failure' | 'invoked';
}

/** The fields of a line, in the order of Apache's; what does not apply is left out. */
export type AuditFields = ReadonlyMap<string, string>;

/** @param serverUser as whom this process runs: it is the user of what the server does by itself */
export function fieldsOf(entry: AuditEntry | ServerEvent, serverUser: string): AuditFields {
  if ('result' in entry) {
    return new Map([
      ['user', serverUser],
      ['operation', entry.operation],
      ['result', entry.result],
    ]);
  }
  const { sessionId, client, operation, path, mode, acl, isSuccess } = entry;
  const fields: readonly (readonly [string, string | null])[] = [
    ['session', `0x${BigInt.asUintN(64, sessionId).toString(16)}`],
    ['user', client === null ? serverUser : client.users.join(',')],
    ['ip', client?.host ?? null],
    ['operation', operation],
    ['znode', path],
    ['znode_type', mode === null ? null : (MODE_NAMES[mode] ?? `unknown (${mode})`)],
    ['acl', acl === null ? null : formatAcl(acl)],
    ['result', isSuccess ? 'success' : 'failure'],
  ];
  return new Map(fields.filter((field): field is [string, string] => field[1] !== null && field[1] !== ''));
}

/** `session=0x…<tab>user=…<tab>…`, as Apache's AuditEvent; a character that would end a field or a line is written as its code. */
export function formatAuditLine(fields: AuditFields): string {
  return Array.from(fields, ([name, value]) => `${name}=${escapeControls(value)}`).join('\t');
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
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, (character) => {
    const code = character.charCodeAt(0).toString(16).padStart(4, '0');
    return `\\u${code}`;
  });
}

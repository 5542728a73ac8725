import { createHash } from 'node:crypto';
import { type Acl, type Data, OPEN } from '@meerkat/client';

/** One write of a migration. */
export type MigrationOperation =
  | {
      readonly kind: 'create';
      readonly path: string;
      /** Default: empty. */
      readonly data?: Data | undefined;
      readonly mode?: 'persistent' | 'container' | undefined;
      readonly sequential?: boolean | undefined;
      readonly ttlMs?: number | undefined;
      readonly acl?: readonly Acl[] | undefined;
    }
  | { readonly kind: 'set'; readonly path: string; readonly data: Data; readonly version?: number | undefined }
  | { readonly kind: 'delete'; readonly path: string; readonly version?: number | undefined }
  | { readonly kind: 'check'; readonly path: string; readonly version?: number | undefined };

/** Writes that are applied together. */
export type Migration = readonly MigrationOperation[];

/**
 * Identifies a migration that was applied: SHA-256 over, for each operation, its path, the number of its op code, and
 * its record in the text form that ZooKeeper's records have in Java. Same as Curator's.
 *
 *     /a   1   '/a,#7a,v{s{31,s{'world,'anyone}}},0⏎       create with the data z, an ACL and the flags
 *     /a   5   '/a,#7a,3⏎                                  set on version 3
 *     /a   2   '/a,-1⏎                                     delete of any version
 *     /a   13  '/a,-1⏎                                     check
 */
export function digestOf(migration: Migration): Uint8Array {
  const hash = createHash('sha256');
  for (const operation of migration)
    hash
      .update(operation.path)
      .update(`${opCodeOf(operation)}`)
      .update(recordOf(operation));
  return new Uint8Array(hash.digest());
}

function opCodeOf(operation: MigrationOperation): number {
  switch (operation.kind) {
    case 'create':
      if (operation.ttlMs !== undefined) return 21;
      return operation.mode === 'container' ? 19 : 1;
    case 'set':
      return 5;
    case 'delete':
      return 2;
    default:
      return 13;
  }
}

function recordOf(operation: MigrationOperation): string {
  const path = stringOf(operation.path);
  switch (operation.kind) {
    case 'create': {
      const { data = '', acl = OPEN, ttlMs } = operation;
      const entries = acl.map(({ perms, scheme, id }) => `s{${perms},s{${stringOf(scheme)},${stringOf(id)}}}`);
      const ttl = ttlMs === undefined ? '' : `,${ttlMs}`;
      return `${path},${bytesOf(data)},v{${entries.join(',')}},${flagsOf(operation)}${ttl}\n`;
    }
    case 'set':
      return `${path},${bytesOf(operation.data)},${operation.version ?? -1}\n`;
    default:
      return `${path},${operation.version ?? -1}\n`;
  }
}

function flagsOf({ mode, sequential = false, ttlMs }: MigrationOperation & { kind: 'create' }): number {
  if (mode === 'container') return 4;
  return (ttlMs === undefined ? 0 : 5) + (sequential ? (ttlMs === undefined ? 2 : 1) : 0);
}

/** Begins with an apostrophe; characters with a meaning in this form are escaped. */
function stringOf(text: string | null): string {
  return `'${(text ?? '').replace(/[\0\n\r,}%]/g, (character) => `%${hex(character.charCodeAt(0))}`)}`;
}

function hex(code: number): string {
  return code.toString(16).toUpperCase().padStart(2, '0');
}

/** Each byte as formatted by Java's `Integer.toHexString` of a signed byte: without leading zeros, 0xff as ffffffff. */
function bytesOf(data: Data): string {
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : (data ?? []);
  if (bytes.length === 0) return '';
  let text = '#';
  for (const byte of bytes) text += (byte < 128 ? byte : byte + 0xffffff00).toString(16);
  return text;
}

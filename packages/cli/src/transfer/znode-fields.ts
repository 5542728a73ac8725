import { type Acl, formatPerms, parsePerms } from '@meerkat/client';
import * as v from 'valibot';
import type { ZnodeKind } from '../archive/znode-kind.ts';

/* The fields of a znode as files have them: in the lines of an export and beside the data in a directory. */

const PERMS = v.union([
  v.pipe(v.string(), v.regex(/^[cdrwa]*$/, 'expected letters of c, d, r, w and a')),
  v.pipe(v.number(), v.integer()),
]);

/** An entry of an ACL in a file. */
export interface AclRecord {
  /** Letters, or bits where there are some that have none. */
  readonly perms: string | number;
  readonly scheme: string;
  readonly id: string;
}

export const ACL: v.GenericSchema<readonly AclRecord[]> = v.array(
  v.strictObject({ perms: PERMS, scheme: v.string(), id: v.string() }),
);

export const KIND: v.GenericSchema<ZnodeKind> = v.picklist(['persistent', 'ephemeral', 'container', 'ttl']);

/** Five bytes of milliseconds, as servers have it. */
export const TTL_MS: v.GenericSchema<number> = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(1),
  v.maxValue(0xff_ffff_ffff),
);

/** Servers keep bits that have no letter: those are written as the number that they are. */
export function aclRecord({ perms, scheme, id }: Acl): AclRecord {
  return { perms: (perms & ~0x1f) === 0 ? formatPerms(perms) : perms, scheme: scheme ?? '', id: id ?? '' };
}

export function aclOf({ perms, scheme, id }: AclRecord): Acl {
  return { perms: parsePerms(perms), scheme, id };
}

/** @returns what is wrong with a path, as the manual has it; null when nothing is */
export function describePathFault(path: string): string | null {
  if (!path.startsWith('/')) return `${JSON.stringify(path)} does not begin with "/"`;
  if (path === '/') return null;
  const names = path.slice(1).split('/');
  if (names.includes('')) return `${JSON.stringify(path)} has an empty name`;
  if (names.some((name) => name === '.' || name === '..')) return `${JSON.stringify(path)} has a relative name`;
  return ILLEGAL.test(path) ? `${JSON.stringify(path)} has a character that no znode has in its name` : null;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const ILLEGAL = /[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]/;

export function describeIssue(issue: v.BaseIssue<unknown>): string {
  const place = v.getDotPath(issue);
  const expected = issue.expected ?? issue.message.replace(/^expected /, '');
  return `${place === null ? '' : `${place}: `}expected ${expected}, found ${issue.received}`;
}

import { type Acl, acl, formatPerms, OPEN, Perm, READ_ONLY } from '@meerkat/client';
import { InvocationFailure } from '../run/command-failure.ts';

/*
 * ACLs as zkCli has them, and a little more:
 *
 *     acl     = entry ("," entry)*
 *     entry   = scheme ":" id ":" perms                 first and last ":" split: ip:::1:r
 *             / "password:" user ":" password ":" perms  digest, with the hash made here
 *             / "open" / "read-only" / "creator"
 *     perms   = letters of c d r w a / "all"
 */

/** What the option of an ACL takes, for help. */
export const ACL_SYNTAX = 'scheme:id:perms,… such as world:anyone:r; also open, read-only, creator';

const CREATOR: readonly Acl[] = [acl.auth()];

const WORDS: Readonly<Record<string, readonly Acl[]>> = { open: OPEN, 'read-only': READ_ONLY, creator: CREATOR };

/** @throws InvocationFailure, which says what is wrong with which entry */
export function parseAclText(text: string): readonly Acl[] {
  const pieces = splitEntries(text);
  if (pieces.length === 0) throw new InvocationFailure(`an ACL has at least one entry: ${ACL_SYNTAX}`);
  return pieces.flatMap((piece) => WORDS[piece] ?? [parseAclEntry(piece)]);
}

/** As `parseAclText` reads it. */
export function formatAclText(entries: readonly Acl[]): string {
  return entries.map(formatEntry).join(',');
}

export function formatEntry({ scheme, id, perms }: Acl): string {
  return `${scheme}:${id}:${formatPerms(perms)}`;
}

/** The entries of a text, not looked at yet. Names of certificates have commas of their own: an entry of x509 continues to its permissions. */
export function splitEntries(text: string): readonly string[] {
  const entries: string[] = [];
  let open: string | null = null;
  for (const piece of text.split(',')) {
    const entry: string = open === null ? piece.trim() : `${open},${piece}`;
    open = entry.startsWith('x509:') && !/^x509:.*:([cdrwa]*|all)$/.test(entry) ? entry : null;
    if (open === null && entry !== '') entries.push(entry);
  }
  if (open !== null) entries.push(open);
  return entries;
}

export function parseAclEntry(entry: string): Acl {
  const first = entry.indexOf(':');
  const last = entry.lastIndexOf(':');
  if (first < 1 || last === first) {
    throw bad(entry, 'it is scheme:id:perms, such as world:anyone:r or digest:ann:hash:cdrwa');
  }
  const scheme = entry.slice(0, first);
  const id = entry.slice(first + 1, last);
  const perms = parsePermLetters(entry, entry.slice(last + 1));
  switch (scheme) {
    case 'world':
      if (id !== 'anyone') throw bad(entry, 'the scheme world has no other id than "anyone"');
      break;
    case 'digest':
      // The service takes any text, which then opens to no client.
      if (!HASHED_USER.test(id)) {
        throw bad(
          `digest:${id.split(':')[0]}:…`,
          'the id of digest is user:hash, a hash in base64; "password:user:password:perms" makes it here',
        );
      }
      break;
    case 'password': {
      const end = id.indexOf(':');
      if (end < 1) throw bad(entry, 'it is password:user:password:perms');
      return acl.digest(id.slice(0, end), id.slice(end + 1), perms);
    }
  }
  return { scheme, id, perms };
}

/** With a hash of 20 bytes or more: SHA-1, or what servers are told to take instead. */
const HASHED_USER = /^[^:]*:[A-Za-z0-9+/]{26,}={0,2}$/;

function parsePermLetters(entry: string, letters: string): number {
  if (letters === 'all') return Perm.all;
  let perms = 0;
  for (const letter of letters) {
    const bit = LETTERS[letter];
    if (bit === undefined) {
      throw bad(
        entry,
        `"${letters}" are no permissions: letters of c (create), d (delete), r (read), w (write), a (admin), or "all"`,
      );
    }
    perms |= bit;
  }
  return perms;
}

const LETTERS: Readonly<Record<string, number>> = {
  c: Perm.create,
  d: Perm.delete,
  r: Perm.read,
  w: Perm.write,
  a: Perm.admin,
};

/** Does not show the password. */
function bad(entry: string, detail: string): InvocationFailure {
  const shown = entry.startsWith('password:') ? 'password:…' : `"${entry}"`;
  return new InvocationFailure(`the entry ${shown} of the ACL: ${detail}`);
}

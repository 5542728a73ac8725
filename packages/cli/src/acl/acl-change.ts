import type { Acl } from '@meerkat/client';
import { formatEntry, parseAclEntry, parseAclText, splitEntries } from '../value/acl-text.ts';

/** What becomes of an ACL. The same list when nothing does. */
export type AclChange = (acl: readonly Acl[]) => readonly Acl[];

/** An identity that has an entry already gets the new permissions in it. */
export function adding(text: string): AclChange {
  const added = parseAclText(text);
  return (acl) => {
    let result = acl;
    for (const entry of added) {
      const index = result.findIndex((known) => isSameId(known, entry));
      const known = result[index];
      if (known === undefined) result = [...result, entry];
      else if ((known.perms | entry.perms) !== known.perms) {
        result = result.with(index, { ...known, perms: known.perms | entry.perms });
      }
    }
    return result;
  };
}

/**
 * Entries are named whole, `digest:ann` or `world:anyone`, or by the permissions that go, `world:anyone:wd`; a user of the
 * scheme digest also without the hash.
 *
 * @throws InvocationFailure when an entry is neither
 */
export function removing(text: string): AclChange {
  const removed = splitEntries(text);
  return (acl) => {
    let result = acl;
    for (const words of removed) {
      const isNamed = (entry: Acl): boolean => words === `${entry.scheme}:${entry.id}` || isUser(entry, words);
      if (result.some(isNamed)) {
        result = result.filter((entry) => !isNamed(entry));
        continue;
      }
      if (!/^[^:]+:.*:[cdrwa]*$|:all$/.test(words)) continue;
      const less = parseAclEntry(words);
      const index = result.findIndex((known) => isSameId(known, less));
      const known = result[index];
      if (known === undefined || (known.perms & less.perms) === 0) continue;
      const perms = known.perms & ~less.perms;
      result = perms === 0 ? result.toSpliced(index, 1) : result.with(index, { ...known, perms });
    }
    return result;
  };
}

function isSameId(a: Acl, b: Acl): boolean {
  return a.scheme === b.scheme && a.id === b.id;
}

function isUser({ scheme, id }: Acl, words: string): boolean {
  return scheme === 'digest' && words === `digest:${id?.split(':')[0]}`;
}

/** Whether two ACLs say the same in the same order. */
export function isSameAcl(a: readonly Acl[], b: readonly Acl[]): boolean {
  return a === b || (a.length === b.length && a.every((entry, i) => isSameEntry(entry, b[i])));
}

function isSameEntry(a: Acl, b: Acl | undefined): boolean {
  return b !== undefined && formatEntry(a) === formatEntry(b);
}

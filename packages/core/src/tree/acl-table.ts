import { type Acl, OPEN_ACL, READ_ACL } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';

/** Id of the list that lets everybody do everything; it is in no table and is not counted. */
export const OPEN_ACL_ID = -1;

/** Lets nobody do anything: stands in for a list that is not known yet, until the log's replay names it. */
export const CLOSED_ACL: readonly Acl[] = Object.freeze([Object.freeze({ perms: 0, scheme: 'world', id: 'anyone' })]);

interface AclEntry {
  readonly id: number;
  readonly key: string;
  readonly list: readonly Acl[];
  /** Znodes that have this list. */
  references: number;
}

/**
 * The access control lists of a tree, each kept once (ReferenceCountedACLCache).
 *
 * 1. Lists with the same entries in the same order have the same id.
 * 2. Ids only rise and are never given twice: whoever remembers "all ids up to n" still knows, when more have come and
 *    gone, that an id above n is a list he has not seen. A snapshot relies on this.
 * 3. A list is dropped when the last znode that had it lets go of it.
 */
export class AclTable {
  readonly #byId = new Map<number, AclEntry>();
  readonly #byKey = new Map<string, AclEntry>();
  #lastId = 0;

  get size(): number {
    return this.#byId.size;
  }

  /** The highest id given so far. */
  get lastId(): number {
    return this.#lastId;
  }

  /** The id of a list. It stays valid while a znode refers to it; one that nobody ever refers to stays, too. */
  intern(list: readonly Acl[]): number {
    if (list === OPEN_ACL) return OPEN_ACL_ID;
    const key = list === READ_ACL ? READ_KEY : keyOf(list);
    if (key === OPEN_KEY) return OPEN_ACL_ID;
    const known = this.#byKey.get(key);
    if (known !== undefined) return known.id;
    const entry: AclEntry = { id: ++this.#lastId, key, list, references: 0 };
    this.#byId.set(entry.id, entry);
    this.#byKey.set(key, entry);
    return entry.id;
  }

  get(id: number): readonly Acl[] {
    if (id === OPEN_ACL_ID) return OPEN_ACL;
    const entry = this.#byId.get(id);
    assert(entry !== undefined, 'the ACL of a znode is in the table');
    return entry.list;
  }

  /** Another znode has this list. */
  addReference(id: number): void {
    if (id === OPEN_ACL_ID) return;
    const entry = this.#byId.get(id);
    assert(entry !== undefined, 'the ACL of a znode is in the table');
    entry.references++;
  }

  /** A znode with this list is gone or has another list now. */
  release(id: number): void {
    if (id === OPEN_ACL_ID) return;
    const entry = this.#byId.get(id);
    assert(entry !== undefined && entry.references > 0, 'the ACL that a znode lets go of was counted');
    if (--entry.references === 0) this.#drop(entry);
  }

  /** Gives an id to no list; a snapshot uses it for znodes whose list is newer than its map. */
  reserveId(): number {
    return ++this.#lastId;
  }

  /** Drops the lists that no znode has. */
  purgeUnused(): void {
    for (const entry of this.#byId.values()) if (entry.references === 0) this.#drop(entry);
  }

  /** Ids and lists, in the order of the ids. */
  entries(): (readonly [id: number, list: readonly Acl[]])[] {
    return Array.from(this.#byId.values(), (entry) => [entry.id, entry.list] as const);
  }

  /** The schemes that lists name. */
  schemes(): ReadonlySet<string> {
    const schemes = new Set<string>();
    for (const { list } of this.#byId.values()) for (const { scheme } of list) schemes.add(scheme ?? '');
    return schemes;
  }

  #drop(entry: AclEntry): void {
    this.#byId.delete(entry.id);
    this.#byKey.delete(entry.key);
  }
}

/** Lengths stand before the texts, so that no two lists can look the same whatever characters they are made of. */
function keyOf(list: readonly Acl[]): string {
  let key = '';
  for (const { perms, scheme, id } of list) {
    key += `${perms},${scheme?.length ?? -1},${id?.length ?? -1},${scheme ?? ''}${id ?? ''}`;
  }
  return key;
}

const OPEN_KEY = keyOf(OPEN_ACL);
const READ_KEY = keyOf(READ_ACL);

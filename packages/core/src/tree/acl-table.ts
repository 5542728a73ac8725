import { type Acl, OPEN_ACL, READ_ACL } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';

/** Id of the list that grants everyone everything; it is in no table and is not counted. */
export const OPEN_ACL_ID = -1;

/** Grants nothing to anyone: a placeholder for a list that is unknown until the replay of the log names it. */
export const CLOSED_ACL: readonly Acl[] = Object.freeze([Object.freeze({ perms: 0, scheme: 'world', id: 'anyone' })]);

interface AclEntry {
  readonly id: number;
  readonly key: string;
  readonly list: readonly Acl[];
  /** Znodes that use this list. */
  references: number;
}

/**
 * The access control lists of a tree, each stored once (ReferenceCountedACLCache).
 *
 * 1. Lists with the same entries in the same order have the same id.
 * 2. Ids only increase and are never reused: after remembering "all ids up to n", an id above n is known to be new,
 *    even when lists were added and dropped meanwhile. A snapshot relies on this.
 * 3. A list is dropped when the last znode that used it releases it.
 */
export class AclTable {
  readonly #byId = new Map<number, AclEntry>();
  readonly #byKey = new Map<string, AclEntry>();
  #lastId = 0;

  get size(): number {
    return this.#byId.size;
  }

  /** The highest id assigned so far. */
  get lastId(): number {
    return this.#lastId;
  }

  /** The id of a list. It stays valid while a znode refers to it; a list without any reference yet is kept too. */
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

  /** Another znode uses this list. */
  addReference(id: number): void {
    if (id === OPEN_ACL_ID) return;
    const entry = this.#byId.get(id);
    assert(entry !== undefined, 'the ACL of a znode is in the table');
    entry.references++;
  }

  /** A znode with this list was removed or was given another list. */
  release(id: number): void {
    if (id === OPEN_ACL_ID) return;
    const entry = this.#byId.get(id);
    assert(entry !== undefined && entry.references > 0, 'the ACL that a znode releases was counted');
    if (--entry.references === 0) this.#drop(entry);
  }

  /** Reserves an id without a list; a snapshot uses it for znodes whose list is newer than its map. */
  reserveId(): number {
    return ++this.#lastId;
  }

  /** Drops the lists that no znode uses. */
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

/**
 * Texts are prefixed with their lengths, so that different lists have different keys, whatever characters they contain.
 */
function keyOf(list: readonly Acl[]): string {
  let key = '';
  for (const { perms, scheme, id } of list) {
    key += `${perms},${scheme?.length ?? -1},${id?.length ?? -1},${scheme ?? ''}${id ?? ''}`;
  }
  return key;
}

const OPEN_KEY = keyOf(OPEN_ACL);
const READ_KEY = keyOf(READ_ACL);

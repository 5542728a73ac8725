/**
 * Writes the body of a snapshot in slices, while the tree keeps changing in between.
 *
 *     body := int count, (long sessionId, int timeoutMs)*
 *             int count, (long aclId, vector<ACL>)*
 *             (ustring path, buffer data, long aclId, StatPersisted)*     "" is the root; parents before children
 *             ustring "/"
 *
 * Let Z be the tree's last zxid when the writer is created. The body, followed by the log from Z on, must result in the
 * same sessions, znodes, stats, ACLs and digests as the live tree. It does, because:
 *
 * 1. The sessions are copied at Z, and the log has all later changes.
 * 2. Exactly the znodes created up to Z are written, as far as they still exist when their turn comes. One created
 *    later is created by the replay, with its history from the first txn on. So no path is written twice: of the znodes
 *    that ever had it, at most one existed at Z. One deleted before its turn is not needed: the replay deletes it, and
 *    the effects of its txns on others (the parent's count and pzxid) do not depend on it. That is why a closeSession
 *    lists the ephemerals that it deletes; one that is not listed, because the list would be too long or the server
 *    lists none, is written before it is deleted (`keep`), so that the replay finds and deletes it.
 * 3. A znode is written as it is at some zxid z ≥ Z. Replaying Z … z again sets data, version, aversion, ACL and times
 *    to their values in between and finally to those at z, for every txn carries absolute state; what a txn states
 *    relative to the present, the parent's count of created children and pzxid, only increases and has passed that
 *    value.
 * 4. A znode's parent was created no later than the znode and cannot have been replaced since; it is written first, out
 *    of turn if necessary.
 * 5. The ACLs are written as of Z. A znode whose ACL is not among them got it by a setACL after Z, which the replay
 *    repeats; until then its id refers to a list that denies everyone access.
 */
import { type Acl, JuteWriter, StatOffset, writeAclList, type Zxid } from '@meerkat/protocol';
import { CLOSED_ACL, OPEN_ACL_ID } from './acl-table.ts';
import { copyBytes } from './byte-arena.ts';
import type { Database } from './database.ts';
import type { OpenSnapshot, TreeState } from './tree-state.ts';
import { NO_ZNODE, ROOT, type ZnodeNumber } from './znode-rows.ts';

/** Numbers examined in one slice: 1 or 2 ms where none of them has to be written. */
const SLICE_SCAN_MAX = 65_536;

export class SnapshotWriter implements OpenSnapshot {
  /** The zxid in the snapshot's name: the log from the next zxid on belongs to it. */
  readonly zxid: Zxid;
  readonly #state: TreeState;
  readonly #sessions: (readonly [id: bigint, timeoutMs: number])[];
  readonly #acls: (readonly [id: number, list: readonly Acl[]])[];
  /** Higher ids are newer than the map; this one represents all of them in it. */
  readonly #closedAclId: number;
  #phase: 'sessions' | 'acls' | 'znodes' | 'done' = 'sessions';
  /** Sessions or ACLs written so far; −1 before their count is written. */
  #written = -1;
  #next: ZnodeNumber = ROOT;
  readonly #end: ZnodeNumber;
  /** One bit per number: written. Reused numbers belong to znodes created after Z, which are not looked up. */
  readonly #bits: Uint8Array;
  /** Znodes that were written out of turn, between two slices. */
  #kept: JuteWriter | null = null;

  /** To abandon the snapshot before its end, call `release`. */
  constructor(database: Database) {
    database.tree.settle();
    this.zxid = database.lastZxid;
    this.#state = database.tree.state;
    this.#sessions = Array.from(database.sessions);
    this.#acls = this.#state.acls.entries();
    this.#closedAclId = this.#state.acls.reserveId();
    this.#acls.push([this.#closedAclId, CLOSED_ACL]);
    this.#end = this.#state.table.end;
    this.#bits = new Uint8Array((this.#end + 7) >> 3);
    this.#state.openSnapshots.add(this);
  }

  keep(z: ZnodeNumber): void {
    if (!this.#isToBeWritten(z)) return;
    this.#kept ??= new JuteWriter();
    this.#writeAncestors(this.#kept, z);
    this.#writeZnode(this.#kept, z);
  }

  /** Stops writing. */
  release(): void {
    this.#state.openSnapshots.delete(this);
  }

  /**
   * Continues until about `bytesMax` bytes were written or many znodes were examined; it may write nothing at all. A
   * znode is never split.
   *
   * @returns true when the body is complete
   */
  writeSlice(writer: JuteWriter, bytesMax: number): boolean {
    const end = writer.position + bytesMax;
    if (this.#phase === 'sessions') this.#writeSessions(writer, end);
    if (this.#phase === 'acls') this.#writeAcls(writer, end);
    if (this.#phase === 'znodes') this.#writeZnodes(writer, end);
    if (this.#phase !== 'done') return false;
    this.release();
    return true;
  }

  #writeSessions(writer: JuteWriter, end: number): void {
    if (this.#written < 0) {
      writer.int(this.#sessions.length);
      this.#written = 0;
    }
    while (this.#written < this.#sessions.length) {
      if (writer.position >= end) return;
      const [id, timeoutMs] = this.#sessions[this.#written++]!;
      writer.longBig(id);
      writer.int(timeoutMs);
    }
    this.#phase = 'acls';
    this.#written = -1;
  }

  #writeAcls(writer: JuteWriter, end: number): void {
    if (this.#written < 0) {
      writer.int(this.#acls.length);
      this.#written = 0;
    }
    while (this.#written < this.#acls.length) {
      if (writer.position >= end) return;
      const [id, list] = this.#acls[this.#written++]!;
      writer.long(id);
      writeAclList(writer, list);
    }
    this.#phase = 'znodes';
  }

  #writeZnodes(writer: JuteWriter, end: number): void {
    if (this.#kept !== null) writer.raw(this.#kept.written());
    this.#kept = null;
    const scanEnd = Math.min(this.#end, this.#next + SLICE_SCAN_MAX);
    let z = this.#next;
    for (; z < scanEnd && writer.position < end; z++) {
      if (!this.#isToBeWritten(z)) continue;
      this.#writeAncestors(writer, z);
      this.#writeZnode(writer, z);
    }
    this.#next = z;
    if (z < this.#end) return;
    writer.ustring('/');
    this.#phase = 'done';
  }

  #writeAncestors(writer: JuteWriter, z: ZnodeNumber): void {
    let parent = this.#state.table.parentOf(z);
    if (this.#isWritten(parent)) return;
    const missing: ZnodeNumber[] = [];
    while (parent !== z && !this.#isWritten(parent)) {
      missing.push(parent);
      if (parent === ROOT) break;
      parent = this.#state.table.parentOf(parent);
    }
    for (let ancestor = missing.pop() ?? NO_ZNODE; ancestor !== NO_ZNODE; ancestor = missing.pop() ?? NO_ZNODE) {
      this.#writeZnode(writer, ancestor);
    }
  }

  #writeZnode(writer: JuteWriter, z: ZnodeNumber): void {
    this.#bits[z >> 3]! |= 1 << (z & 7);
    const table = this.#state.table;
    const page = table.pageOf(z);
    const stat = table.statStartOf(z);
    // Path, length and data are adjacent in the block, as the format requires; only the path's length is missing.
    const pathBytes = z === ROOT ? 0 : table.pathBytesOf(z);
    const start = z === ROOT ? table.replyStartOf(z) : table.pathStartOf(z);
    writer.int(pathBytes);
    writer.ensure(stat - start);
    copyBytes(page, start, stat, writer.bytes, writer.position);
    writer.position += stat - start;
    const aclId = table.aclOf(z);
    writer.long(aclId === OPEN_ACL_ID || aclId < this.#closedAclId ? aclId : this.#closedAclId);
    // StatPersisted: czxid … version as on the wire, then the count of created children, aversion, owner, pzxid.
    writer.ensure(60);
    const bytes = writer.bytes;
    const at = writer.position;
    copyBytes(page, stat, stat + 36, bytes, at);
    writer.position = at + 36;
    writer.int(table.sequenceOf(z) | 0);
    copyBytes(page, stat + StatOffset.aversion, stat + StatOffset.aversion + 4, bytes, at + 40);
    this.#state.putPersistedOwner(z, bytes, at + 44);
    copyBytes(page, stat + StatOffset.pzxid, stat + StatOffset.pzxid + 8, bytes, at + 52);
    writer.position = at + 60;
  }

  /** In use, created up to Z, and not written yet. */
  #isToBeWritten(z: ZnodeNumber): boolean {
    const table = this.#state.table;
    return (
      z < this.#end && table.isUsed(z) && !this.#isWritten(z) && table.getStatLong(z, StatOffset.czxid) <= this.zxid
    );
  }

  #isWritten(z: ZnodeNumber): boolean {
    return (this.#bits[z >> 3]! & (1 << (z & 7))) !== 0;
  }
}

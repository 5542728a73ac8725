/**
 * Writes the body of a snapshot in slices, while the tree goes on changing between them.
 *
 *     body := int count, (long sessionId, int timeoutMs)*
 *             int count, (long aclId, vector<ACL>)*
 *             (ustring path, buffer data, long aclId, StatPersisted)*     "" is the root; parents before children
 *             ustring "/"
 *
 * Let Z be the tree's last zxid when the writer is made. The body, followed by the log from Z on, must give the same
 * sessions, znodes, stats, ACLs and digests as the live tree. It does, because:
 *
 * 1. The sessions are copied at Z, and the log knows what came and went since.
 * 2. Exactly the znodes created up to Z are written, as far as they are still there when their turn comes. One created
 *    later is created by the replay, with its history from the first txn on. So no path is written twice: of the znodes
 *    that ever had it, at most one lived at Z. One that is gone when its turn comes is not missed: the replay deletes
 *    it, and what its txns do to others (the parent's count and pzxid) they do without it. That is why a closeSession
 *    lists the ephemerals that it deletes; one that it does not list, because it is too long or of a server that lists
 *    none, is written before it goes (`keep`), so that the replay finds and deletes it.
 * 3. A znode is written as it is at some zxid z ≥ Z. Replaying Z … z once more sets data, version, aversion, ACL and
 *    times to what they were in between and at last to what they are at z, for every txn says absolute state; what a
 *    txn says relative to the present, the parent's count of created children and pzxid, only moves up and is past it.
 * 4. A znode's parent was created no later than the znode and cannot have been replaced since; it is written first,
 *    if need be out of turn.
 * 5. The ACLs are written as of Z. A znode whose ACL is not among them has got it by a setACL after Z, which the replay
 *    repeats; until then its id leads to a list that lets nobody in.
 */
import { type Acl, JuteWriter, StatOffset, writeAclList, type Zxid } from '@meerkat/protocol';
import { CLOSED_ACL, OPEN_ACL_ID } from './acl-table.ts';
import { copyBytes } from './byte-arena.ts';
import type { Database } from './database.ts';
import type { OpenSnapshot, TreeState } from './tree-state.ts';
import { NO_ZNODE, ROOT, type ZnodeNumber } from './znode-rows.ts';

/** Numbers looked at in one slice: 1 or 2 ms where none of them has to be written. */
const SLICE_SCAN_MAX = 65_536;

export class SnapshotWriter implements OpenSnapshot {
  /** The snapshot's name: the log from the next zxid on belongs to it. */
  readonly zxid: Zxid;
  readonly #state: TreeState;
  readonly #sessions: (readonly [id: bigint, timeoutMs: number])[];
  readonly #acls: (readonly [id: number, list: readonly Acl[]])[];
  /** Ids above are newer than the map; this one stands for all of them in it. */
  readonly #closedAclId: number;
  #phase: 'sessions' | 'acls' | 'znodes' | 'done' = 'sessions';
  /** Sessions or ACLs written so far; −1 before their number. */
  #written = -1;
  #next: ZnodeNumber = ROOT;
  readonly #end: ZnodeNumber;
  /** One bit a number: written. Numbers given anew belong to znodes created after Z, which are not asked about. */
  readonly #bits: Uint8Array;
  /** Znodes that were written out of turn, between two slices. */
  #kept: JuteWriter | null = null;

  /** Whoever does not write the snapshot to its end must `release` it. */
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

  /** Nothing more is written. */
  release(): void {
    this.#state.openSnapshots.delete(this);
  }

  /**
   * Writes on until about `bytesMax` bytes were written or many znodes were looked at; possibly nothing at all.
   * One znode is never divided.
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
    // Path, length and data lie side by side as the format wants them; only the path's length is missing.
    const pathBytes = z === ROOT ? 0 : table.pathBytesOf(z);
    const start = z === ROOT ? table.replyStartOf(z) : table.pathStartOf(z);
    writer.int(pathBytes);
    writer.ensure(stat - start);
    copyBytes(page, start, stat, writer.bytes, writer.position);
    writer.position += stat - start;
    const aclId = table.aclOf(z);
    writer.long(aclId === OPEN_ACL_ID || aclId < this.#closedAclId ? aclId : this.#closedAclId);
    // StatPersisted: the wire's czxid … version as they are, then the count of created children, aversion, owner, pzxid.
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

  /** There, of the snapshot's time, and not written yet. */
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

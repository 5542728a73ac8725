import {
  ErrorCode,
  JuteChunks,
  type MultiReadOp,
  OpCode,
  Perm,
  type PieceSource,
  parentOf,
  STAT_BYTES,
  writeMultiEnd,
  writeMultiError,
  writeMultiHeader,
  type Zxid,
} from '@meerkat/protocol';
import type { Identity, Trace } from '../base/ports.ts';
import { ChildNames } from '../tree/child-names.ts';
import type { DataTree } from '../tree/data-tree.ts';
import type { TreeObserver } from '../tree/tree-observer.ts';
import type { Client, LongRead } from './client.ts';
import { SLICE_STEPS } from './long-read.ts';
import { PathHashes } from './path-hashes.ts';
import type { ReadAccess } from './read-access.ts';
import type { WorkMeter } from './work-meter.ts';

export interface MultiReadParts {
  readonly tree: DataTree;
  readonly access: ReadAccess;
  readonly work: WorkMeter;
  readonly trace: Trace;
  /** Longest reply to a multiRead in bytes. */
  readonly multiReadBytesMax: number;
  /** Buffers for the reply. */
  readonly pieces: PieceSource;
}

/** The result of an op that is not written directly into the reply. */
class Result {
  readonly chunks: JuteChunks = new JuteChunks();
  /** The child names, while incomplete. */
  names: ChildNames | null = null;
  /** Bytes counted for it until it is in the reply. Another op with the same path may use it again. */
  countedBytes = 0;

  get bytes(): number {
    return this.chunks.bytes + (this.names?.chunks.bytes ?? 0);
  }
}

/**
 * Executes a multiRead. All results show the tree as it was when the read began, even if it takes several turns:
 *
 *     ops    ✓ ✓ ✓ ✓ ✓ · · e · · ·      ✓ written    · still to be read    e read early
 *
 * An op that is still to be read is read early when its znode is about to change. A result consists of a znode's data,
 * stat or child names, so a change at a path affects the ops on that path and on its parent.
 *
 * A result that would make the reply too long is not copied; the reply is then an error.
 */
export class MultiRead implements LongRead, TreeObserver {
  readonly holdsEvents = true;
  readonly #ops: readonly MultiReadOp[];
  readonly #identities: readonly Identity[];
  readonly #parts: MultiReadParts;
  readonly #zxid: Zxid;
  readonly #chunks: JuteChunks;
  /** Index of the next op. */
  #at = 0;
  /** The result of the previous op, while its child names are incomplete. */
  #unfinished: Result | null = null;
  /** Hashes of the paths of all ops, once the read takes more than one slice. */
  #hashes: PathHashes | null = null;
  /** Results that were read early, by op and path. */
  readonly #early: Map<string, Result> = new Map();
  #earlyBytes = 0;
  /** Steps since the last slice, including early reads. */
  #steps = 0;
  #isTooLong = false;

  constructor(ops: readonly MultiReadOp[], identities: readonly Identity[], parts: MultiReadParts) {
    this.#ops = ops;
    this.#identities = identities;
    this.#parts = parts;
    this.#chunks = new JuteChunks(parts.pieces);
    this.#zxid = parts.tree.lastZxid;
  }

  advance(): boolean {
    while (!this.#isDone && this.#steps < SLICE_STEPS) this.#step();
    this.#parts.work.add(this.#steps);
    this.#steps = 0;
    if (!this.#isDone) {
      this.#pin();
      return false;
    }
    this.drop();
    return true;
  }

  answer(client: Client, xid: number, receivedMs: number): void {
    if (!this.#isTooLong) {
      writeMultiEnd(this.#chunks.writer);
      client.output.reply(xid, this.#zxid, this.#chunks, receivedMs);
      return;
    }
    const { multiReadBytesMax, trace } = this.#parts;
    const results = `the results of a multiRead of ${this.#ops.length} operations`;
    const reason = `${results} are longer than ${multiReadBytesMax} bytes (multiRead.maxReplyBytes)`;
    trace.emit({ kind: 'request-refused', remote: client.remote, sessionId: client.session?.id ?? 0n, reason });
    this.#chunks.release();
    client.output.beginReply(xid, this.#zxid, ErrorCode.marshallingError);
    client.output.endReply(receivedMs);
  }

  drop(): void {
    this.#unfinished?.names?.drop();
    for (const result of this.#early.values()) result.names?.drop();
    this.#parts.tree.state.observers.delete(this);
  }

  onRemoving(): void {}

  onChanging(path: string): void {
    this.#readEarly(path === '' ? '/' : path);
    this.#readEarly(parentOf(path));
  }

  get heldBytes(): number {
    return this.#chunks.bytes + this.#earlyBytes + (this.#unfinished?.bytes ?? 0);
  }

  get #isDone(): boolean {
    return this.#isTooLong || (this.#at === this.#ops.length && this.#unfinished === null);
  }

  /** The tree may change from here on: prepares finding the remaining ops by path. */
  #pin(): void {
    if (this.#hashes !== null) return;
    this.#hashes = new PathHashes(this.#ops.map(({ path }) => path));
    this.#parts.tree.state.observers.add(this);
  }

  #step(): void {
    const unfinished = this.#unfinished;
    if (unfinished !== null) {
      this.#collectNames(unfinished);
      return;
    }
    this.#steps += STEPS_PER_OP;
    const op = this.#ops[this.#at++]!;
    const early = this.#early.get(keyOf(op));
    if (early !== undefined) {
      if (early.names === null) this.#use(early);
      else this.#unfinished = early;
      return;
    }
    this.#unfinished = this.#read(op, this.#chunks);
  }

  #collectNames(result: Result): void {
    const names = result.names!;
    this.#steps += SLICE_STEPS;
    if (names.advance(SLICE_STEPS)) {
      result.names = null;
      result.chunks.append(names.chunks);
      this.#unfinished = null;
      this.#use(result);
    } else {
      this.#hasRoomFor(result.bytes);
    }
  }

  #use(result: Result): void {
    this.#earlyBytes -= result.countedBytes;
    result.countedBytes = 0;
    if (this.#hasRoomFor(result.bytes)) this.#chunks.append(result.chunks);
  }

  /** Writes the result of an op. @returns the unfinished result if it has too many names for one slice, else null */
  #read({ op, path }: MultiReadOp, chunks: JuteChunks): Result | null {
    const { tree, access } = this.#parts;
    const znode = tree.znodes.find(path);
    const error = access.check(znode, Perm.read, this.#identities);
    if (error !== ErrorCode.ok) {
      writeMultiError(chunks.writer, error);
      return null;
    }
    if (op === OpCode.getData) {
      const bytes = tree.dataLengthOf(znode) + STAT_BYTES;
      if (!this.#hasRoomFor(bytes)) return null;
      const writer = chunks.writerFor(bytes);
      writeMultiHeader(writer, op, false, ErrorCode.ok);
      tree.writeDataAndStat(znode, writer);
      this.#steps += Math.ceil(bytes / BYTES_PER_STEP);
      return null;
    }
    const childCount = tree.znodes.childCountOf(znode);
    if (!this.#hasRoomFor(childCount * NAME_BYTES_MIN)) return null;
    if (childCount <= SLICE_STEPS) {
      const { writer } = chunks;
      writeMultiHeader(writer, op, false, ErrorCode.ok);
      tree.writeChildren(znode, writer);
      this.#steps += childCount;
      return null;
    }
    const result = new Result();
    writeMultiHeader(result.chunks.writer, op, false, ErrorCode.ok);
    result.names = new ChildNames(tree.state, znode, tree.lastZxid);
    return result;
  }

  #readEarly(path: string): void {
    if (this.#hashes === null || this.#isTooLong) return;
    for (const index of this.#hashes.take(path)) {
      const op = this.#ops[index]!;
      const key = keyOf(op);
      if (index < this.#at || this.#early.has(key)) continue;
      const whole = new Result();
      const result = this.#read(op, whole.chunks) ?? whole;
      result.countedBytes = result.bytes;
      this.#earlyBytes += result.countedBytes;
      this.#early.set(key, result);
    }
  }

  /** Whether the reply may grow by so many bytes. */
  #hasRoomFor(bytes: number): boolean {
    this.#isTooLong ||= this.#chunks.bytes + this.#earlyBytes + bytes > this.#parts.multiReadBytesMax;
    return !this.#isTooLong;
  }
}

/**
 * Cost of an op and of its data in steps; a child name costs one step. Including the cost of sending it, a megabyte
 * uses up a turn.
 */
const STEPS_PER_OP = 8;
const BYTES_PER_STEP = 96;
/** An int and a character. */
const NAME_BYTES_MIN = 5;

function keyOf({ op, path }: MultiReadOp): string {
  return `${op} ${path}`;
}

/**
 * Reconstructs the committed sequence from the servers' disks once the ensemble is at rest: every txn after a known
 * one, in order.
 *
 *     server 1   … 17  18  19  20          a log never replaced by a snapshot: it determines the next txn
 *     server 2   ···  (18 in the attic)  20
 *     server 3   … 17  18  19  20
 *
 * Where no current log reaches back far enough, all servers have received a snapshot since, and the logs that they
 * removed (the attic) are used. Those may contain txns that were never committed: an epoch ends at the zxid at which
 * the leader of the next epoch began.
 */
import { JuteReader, readTxnEntry, type TxnEntry } from '@meerkat/protocol';
import type { LoggedTxn, Violation } from '@meerkat/simulator';

/** The logs on one server's disk. */
export interface LogsOfServer {
  readonly id: number;
  /** From the current logs. */
  readonly txns: readonly LoggedTxn[];
  /** From the logs removed in any of its runs. */
  readonly removed: readonly LoggedTxn[];
  /** No log was ever removed: the first log, if any, starts with the ensemble's first txn. Used for `behind` 0 only. */
  readonly isWhole: boolean;
}

export interface CommittedLog {
  readonly entries: readonly TxnEntry[];
  readonly violations: readonly Violation[];
}

/**
 * @param behind last zxid already checked, which all servers had; 0 for the beginning
 * @param last zxid that all servers have reached
 * @param established for each epoch, the zxid after which its leader started it
 */
export function composeCommitted(
  servers: readonly LogsOfServer[],
  behind: number,
  last: number,
  established: ReadonlyMap<number, number>,
): CommittedLog {
  return new Composition(servers, last, established).compose(behind);
}

interface Live {
  readonly id: number;
  readonly payloads: ReadonlyMap<number, Uint8Array>;
  /** Zxids, ascending. */
  readonly zxids: readonly number[];
  /** The log determines the successor of each zxid from this one on. */
  readonly from: number;
}

class Composition {
  readonly #live: readonly Live[];
  readonly #removed = new Map<number, Uint8Array>();
  readonly #last: number;
  readonly #established: ReadonlyMap<number, number>;
  readonly #entries: TxnEntry[] = [];
  readonly #violations: Violation[] = [];
  readonly #reader = new JuteReader(undefined, PAYLOAD_BYTES_MAX);

  constructor(servers: readonly LogsOfServer[], last: number, established: ReadonlyMap<number, number>) {
    this.#last = last;
    this.#established = established;
    this.#live = servers.map(({ id, txns, isWhole }) => {
      const zxids = txns.map(({ zxid }) => zxid);
      const first = zxids[0] ?? Number.POSITIVE_INFINITY;
      return {
        id,
        zxids,
        payloads: new Map(txns.map(({ zxid, payload }) => [zxid, payload])),
        // Anything may be missing before the first txn of an epoch; any other txn has a known predecessor.
        from: isWhole ? 0 : first - (counterOf(first) === 1 ? 0 : 1),
      };
    });
    for (const { removed } of servers) for (const { zxid, payload } of removed) this.#removed.set(zxid, payload);
  }

  compose(behind: number): CommittedLog {
    for (let zxid = behind; zxid < this.#last; ) {
      const next = this.#agreedNext(zxid) ?? this.#removedNext(zxid);
      if (next === null) {
        this.#report([], 'Z11', `no disk has the txn behind ${hex(zxid)}, and the servers are at ${hex(this.#last)}`);
        break;
      }
      this.#take(next.zxid, next.payload);
      zxid = next.zxid;
    }
    for (const { id, zxids } of this.#live) {
      const tail = zxids.at(-1) ?? 0;
      if (tail > this.#last)
        this.#report([id], 'Z4', `server ${id} is at rest at ${hex(this.#last)}, its log ends at ${hex(tail)}`);
    }
    return { entries: this.#entries, violations: this.#violations };
  }

  /** The next txn in the logs that reach back to `zxid`; where they differ, that of most of them. */
  #agreedNext(zxid: number): LoggedTxn | null {
    const votes = new Map<string, { readonly txn: LoggedTxn; readonly ids: number[] }>();
    const missing: number[] = [];
    for (const { id, zxids, payloads, from } of this.#live) {
      if (from > zxid) continue;
      const next = zxids[countUpTo(zxids, zxid)];
      if (next === undefined) {
        missing.push(id);
        continue;
      }
      const payload = payloads.get(next)!;
      const key = `${next} ${Buffer.from(payload.buffer, payload.byteOffset, payload.length).toString('latin1')}`;
      const vote = votes.get(key);
      if (vote === undefined) votes.set(key, { txn: { zxid: next, payload }, ids: [id] });
      else vote.ids.push(id);
    }
    const [first, ...others] = [...votes.values()].sort((a, b) => b.ids.length - a.ids.length);
    if (first === undefined) return null;
    for (const { txn, ids } of others) {
      const message = `behind ${hex(zxid)} servers ${first.ids} have logged ${hex(first.txn.zxid)}, servers ${ids} another txn, ${hex(txn.zxid)}`;
      this.#report([...first.ids, ...ids], 'Z4', message);
    }
    if (missing.length > 0) {
      this.#report(
        missing,
        'Z4',
        `${hex(first.txn.zxid)} is not in the log of servers ${missing}, which have committed it`,
      );
    }
    return first.txn;
  }

  #removedNext(zxid: number): LoggedTxn | null {
    let epoch = epochOf(zxid);
    for (const [candidate, begin] of this.#established) if (begin === zxid) epoch = Math.max(epoch, candidate);
    const next = epoch === epochOf(zxid) ? zxid + 1 : epoch * EPOCH + 1;
    const payload =
      this.#removed.get(next) ?? this.#live.find(({ payloads }) => payloads.has(next))?.payloads.get(next);
    return payload === undefined ? null : { zxid: next, payload };
  }

  #take(zxid: number, payload: Uint8Array): void {
    this.#reader.reset(payload, 0, payload.length);
    const entry = readTxnEntry(this.#reader);
    if (entry === null) this.#report([], 'Z11', `${hex(zxid)} cannot be read`);
    else this.#entries.push(entry);
    const before = this.#entries.at(-2)?.header.zxid;
    if (before !== undefined && zxid !== before + 1 && counterOf(zxid) !== 1) {
      this.#report(
        [],
        'Z16',
        `${hex(zxid)} is committed behind ${hex(before)}: what its leader proposed before it is missing`,
      );
    }
  }

  #report(servers: readonly number[], invariant: string, message: string): void {
    if (this.#violations.length < VIOLATIONS_MAX) this.#violations.push({ invariant, message, servers, atMs: 0 });
  }
}

const VIOLATIONS_MAX = 20;
/** Longer than any txn. */
const PAYLOAD_BYTES_MAX = 0x10000000;
const EPOCH = 2 ** 32;

function epochOf(zxid: number): number {
  return Math.floor(zxid / EPOCH);
}

function counterOf(zxid: number): number {
  return zxid % EPOCH;
}

function hex(zxid: number): string {
  return `0x${zxid.toString(16)}`;
}

/** Number of entries up to and including `zxid`. */
function countUpTo(zxids: readonly number[], zxid: number): number {
  let low = 0;
  let high = zxids.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (zxids[middle]! <= zxid) low = middle + 1;
    else high = middle;
  }
  return low;
}

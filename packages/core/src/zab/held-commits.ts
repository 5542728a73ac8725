/**
 * COMMIT and INFORM packets that an Apache learner is sent only after a SYNC.
 *
 * That learner keeps the syncs and writes of its clients in one queue and compares a commit with its head only
 * (CommitProcessor). A commit that overtakes the answer to an older sync is taken for one of another server's clients;
 * the write then blocks the queue forever, and with it every write and new session of that server. Apache's leader
 * answers a sync when everything proposed before it is committed; ours also waits for a quorum, so later commits wait
 * with it:
 *
 *     the learner asks for    create 1      sync     create 2
 *     and is sent             COMMIT 1      SYNC     COMMIT 2       however early 2 is committed
 *
 * Proposals and their acknowledgements do not wait, so that the quorum is not delayed.
 */
import { Fifo, type Zxid } from '@meerkat/protocol';
import type { HistoryEntry } from './history.ts';

/** Approximate memory of an entry besides its payload. */
const ENTRY_BYTES = 64;

export class HeldCommits {
  /** For each waiting sync, oldest first: the last txn that had been proposed when it arrived. */
  readonly #syncs: Fifo<Zxid> = new Fifo();
  /** Committed txns later than the oldest waiting sync. */
  readonly #entries: Fifo<HistoryEntry> = new Fifo();
  #bytes = 0;

  /** Bytes of what waits. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @param lastTxn the last one that has been proposed */
  onSync(lastTxn: Zxid): void {
    this.#syncs.push(lastTxn);
  }

  /** SYNC has been sent for the oldest sync. */
  onSynced(): void {
    this.#syncs.shift();
  }

  /** True when the commit of this txn must follow a SYNC that has not been sent yet. */
  mustWait(zxid: Zxid): boolean {
    const oldest = this.#syncs.peek();
    return oldest !== undefined && zxid > oldest;
  }

  /** The payload is copied: its memory may be reused before the entry is sent. */
  hold({ zxid, payload }: HistoryEntry): void {
    this.#entries.push({ zxid, payload: payload.slice() });
    this.#bytes += payload.length + ENTRY_BYTES;
  }

  /** Takes the oldest entry that no longer has to wait; null when every entry still waits. */
  take(): HistoryEntry | null {
    const oldest = this.#entries.peek();
    if (oldest === undefined || this.mustWait(oldest.zxid)) return null;
    this.#entries.shift();
    this.#bytes -= oldest.payload.length + ENTRY_BYTES;
    return oldest;
  }
}

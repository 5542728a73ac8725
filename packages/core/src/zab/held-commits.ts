/**
 * COMMIT and INFORM that one of Apache's learners is sent only after a SYNC.
 *
 * That learner keeps the syncs and writes of its clients in one queue and compares a commit with the head of it only
 * (CommitProcessor). A commit that overtakes the answer to an older sync is taken for one of another server's clients;
 * its write stays at the head for ever, and with it every write and new session of that server. Apache's leader answers
 * a sync when everything proposed before it is committed; ours also waits for a quorum, so later commits wait with it:
 *
 *     the learner asks for    create 1      sync     create 2
 *     and is sent             COMMIT 1      SYNC     COMMIT 2       however early 2 is committed
 *
 * Proposals and their acknowledgements do not wait, so that the quorum is not delayed.
 */
import { Fifo, type Zxid } from '@meerkat/protocol';
import type { HistoryEntry } from './history.ts';

/** What an entry costs beside its payload, about. */
const ENTRY_BYTES = 64;

export class HeldCommits {
  /** For each sync that waits, oldest first: the last txn that had been proposed when it came. */
  readonly #syncs: Fifo<Zxid> = new Fifo();
  /** Committed, and later than the oldest of them. */
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

  /** True when the commit of this txn is to be sent after a SYNC that is still to come. */
  mustWait(zxid: Zxid): boolean {
    const oldest = this.#syncs.peek();
    return oldest !== undefined && zxid > oldest;
  }

  /** The payload is copied: its memory may be used again before the entry is sent. */
  hold({ zxid, payload }: HistoryEntry): void {
    this.#entries.push({ zxid, payload: payload.slice() });
    this.#bytes += payload.length + ENTRY_BYTES;
  }

  /** Takes the oldest entry that need not wait any more; null when there is none. */
  take(): HistoryEntry | null {
    const oldest = this.#entries.peek();
    if (oldest === undefined || this.mustWait(oldest.zxid)) return null;
    this.#entries.shift();
    this.#bytes -= oldest.payload.length + ENTRY_BYTES;
    return oldest;
  }
}

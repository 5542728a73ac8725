/**
 * Sends a learner the history that it lacks, in batches, as its link has room: from the log on disk until it reaches
 * the range kept in memory, then from memory.
 *
 *     P ──────── disk ──────── floor ──────── memory ──────── committed
 *        readHistory, in batches     256 txns or 256 KiB at a time
 *
 * No history is buffered per learner, however far it is behind and however slow it is.
 */
import { formatZxid, PacketType, type Zxid } from '@meerkat/protocol';
import type { HistoryEntry } from './history.ts';
import type { LearnerTraffic } from './leader-host.ts';
import { type LearnerPeer, PeerState } from './learner-peer.ts';
import { chooseFromDisk, chooseSync, findGap, type SyncStart } from './learner-sync.ts';
import { isNext } from './recent-log.ts';
import type { SyncSource } from './sync-source.ts';

/** Limits of a batch sent from memory before the link must have room again: txns, and their bytes. */
const BATCH_TXNS = 256;
const BATCH_BYTES = 256 * 1024;

/**
 * Result of a step: another event is awaited; everything committed has been sent; or the history cannot be sent txn by
 * txn, because the log has a gap or a txn longer than learners accept. Then the connection must be closed, because what
 * was sent cannot be taken back.
 */
export type CatchUpStep = 'under way' | 'complete' | 'dead end';

export class CatchUp {
  readonly #proposals: SyncSource;
  readonly #effects: LearnerTraffic;
  /** No txn of this leader is longer, but one of an earlier Apache leader may be. */
  readonly #txnBytesMax: number;
  readonly #needSnapshot: Set<number>;

  /**
   * @param needSnapshot learners that reached a dead end while catching up: next time they are sent a snapshot. Kept by
   *   the caller, because closing such a link may cost this leader its quorum, and its next term has a new `CatchUp`
   */
  constructor(proposals: SyncSource, effects: LearnerTraffic, txnBytesMax: number, needSnapshot: Set<number>) {
    this.#proposals = proposals;
    this.#effects = effects;
    this.#txnBytesMax = txnBytesMax;
    this.#needSnapshot = needSnapshot;
  }

  start(peer: LearnerPeer): CatchUpStep {
    if (this.#needSnapshot.delete(peer.serverId)) return this.#begin(peer, { mode: 'snap' });
    const start = chooseSync(peer.lastZxid, this.#proposals.log, this.#proposals.committed);
    return start === null ? this.#read(peer, peer.lastZxid) : this.#begin(peer, this.#startFor(peer, start, []));
  }

  /** The link has room for the next piece. */
  onRoom(peer: LearnerPeer): CatchUpStep {
    return this.#stream(peer);
  }

  /** @param entries from the last one that is not later than the requested zxid; empty if there is no such history */
  onHistoryRead(peer: LearnerPeer, entries: readonly HistoryEntry[]): CatchUpStep {
    if (!peer.isStarted) {
      const start = this.#startFor(peer, chooseFromDisk(peer.lastZxid, entries), entries);
      this.#sendStart(peer, start);
      if (start.mode === 'snap') return 'under way';
    }
    const news = entries.filter(({ zxid }) => zxid > peer.sent);
    const [next] = news;
    // The memory reaches back far enough by now, or nothing lies between it and what was sent.
    if (next === undefined && peer.sent >= this.#proposals.log.floor) return this.#stream(peer);
    const isContinued = next !== undefined && (news.length < entries.length || isNext(peer.sent, next.zxid));
    if (!isContinued || findGap(entries) >= 0 || news.some((entry) => this.#isTooLong(entry))) {
      return this.#deadEnd(peer);
    }
    peer.state = PeerState.streaming;
    for (const entry of news) this.#send(peer, entry);
    return 'under way';
  }

  /**
   * An Apache learner may restore truncated txns from one of its snapshots, so a newer snapshot is the safer choice.
   * But it keeps its log when it receives a snapshot, and replays what follows the snapshot: one older than the end of
   * its log would bring back all txns that had to go. And it truncates after the first txn at or behind the given zxid,
   * so that zxid must not be one of our placeholders, which its log lacks: it would keep the txn behind it.
   *
   * @param entries the beginning of what follows, as far as it was read from disk
   */
  #startFor(peer: LearnerPeer, start: SyncStart, entries: readonly HistoryEntry[]): SyncStart {
    if (start.mode === 'diff' && this.#isTooLongBehind(start.from, entries)) return { mode: 'snap' };
    if (start.mode !== 'trunc' || peer.keepsLog) return start;
    const { snapshotZxid, log } = this.#proposals;
    if (snapshotZxid > peer.lastZxid) return { mode: 'snap' };
    return start.from < log.floor ? start : { mode: 'trunc', from: log.recordAt(start.from) };
  }

  #begin(peer: LearnerPeer, start: SyncStart): CatchUpStep {
    this.#sendStart(peer, start);
    return start.mode === 'snap' ? 'under way' : this.#stream(peer);
  }

  #sendStart(peer: LearnerPeer, start: SyncStart): void {
    const { applied, committed, snapshotZxid } = this.#proposals;
    peer.state = PeerState.streaming;
    peer.isStarted = true;
    peer.sent = start.mode === 'snap' ? applied : start.from;
    this.#effects.synchronizing(peer.serverId, start.mode, peer.lastZxid, peer.sent);
    if (start.mode === 'snap') this.#effects.sendSnapshot(peer.link, peer.keepsLog ? applied : snapshotZxid);
    else if (start.mode === 'trunc') this.#effects.send(peer.link, { type: PacketType.trunc, zxid: start.from });
    else this.#effects.send(peer.link, { type: PacketType.diff, zxid: committed });
  }

  #stream(peer: LearnerPeer): CatchUpStep {
    const { log, committed } = this.#proposals;
    if (peer.sent < log.floor) return this.#read(peer, peer.sent);
    peer.state = PeerState.streaming;
    let bytes = 0;
    let index = log.indexAfter(peer.sent);
    for (let count = 0; index < log.length; index++, count++) {
      const entry = log.at(index);
      if (entry.zxid > committed) break;
      if (count === BATCH_TXNS || bytes >= BATCH_BYTES) return 'under way';
      bytes += entry.payload.length;
      if (this.#isTooLong(entry)) return this.#deadEnd(peer);
      this.#send(peer, entry);
    }
    return 'complete';
  }

  #read(peer: LearnerPeer, from: Zxid): CatchUpStep {
    peer.state = PeerState.reading;
    this.#effects.readHistory(peer.link, from, this.#proposals.applied);
    return 'under way';
  }

  /** Whether the history behind `from` is already known to hold a txn that learners refuse. */
  #isTooLongBehind(from: Zxid, entries: readonly HistoryEntry[]): boolean {
    const { log } = this.#proposals;
    for (let i = log.indexAfter(from); i < log.length; i++) if (this.#isTooLong(log.at(i))) return true;
    return entries.some((entry) => entry.zxid > from && this.#isTooLong(entry));
  }

  #isTooLong({ payload }: HistoryEntry): boolean {
    return payload.length > this.#txnBytesMax;
  }

  #deadEnd(peer: LearnerPeer): CatchUpStep {
    this.#needSnapshot.add(peer.serverId);
    return 'dead end';
  }

  /** Observers are sent the history as proposals too. */
  #send(peer: LearnerPeer, { zxid, payload }: HistoryEntry): void {
    this.#effects.sendProposal(peer.link, zxid, payload);
    this.#effects.send(peer.link, { type: PacketType.commit, zxid });
    peer.sent = zxid;
  }
}

/** Why the connection of a learner that reached a dead end is closed. */
export function describeDeadEnd(peer: LearnerPeer): string {
  return `the log has a gap behind ${formatZxid(peer.sent)}, or a txn too long to be sent: ${peer.name} needs a snapshot`;
}

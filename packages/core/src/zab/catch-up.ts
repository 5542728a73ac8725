/**
 * Sends a learner the history that it lacks, piece by piece, as its link has room: from the log on the disk as long as
 * the memory does not reach back so far, then from memory.
 *
 *     P ──────── disk ──────── floor ──────── memory ──────── committed
 *        readHistory, in batches     256 txns or 256 KiB at a time
 *
 * Nothing of it is kept for the learner, however far it is behind and however slow it is.
 */
import { formatZxid, PacketType, type Zxid } from '@meerkat/protocol';
import type { HistoryEntry } from './history.ts';
import type { LearnerTraffic } from './leader-host.ts';
import { type LearnerPeer, PeerState } from './learner-peer.ts';
import { chooseFromDisk, chooseSync, findGap, type SyncStart } from './learner-sync.ts';
import { isNext } from './recent-log.ts';
import type { SyncSource } from './sync-source.ts';

/** History that is sent from memory before the link is to have room again: txns, and bytes of them. */
const BATCH_TXNS = 256;
const BATCH_BYTES = 256 * 1024;

/**
 * What a step has led to: an event is awaited; everything that is committed has been sent; or the history cannot be sent
 * txn by txn, for its log has a gap or a txn that is longer than learners take. Then the connection is of no use, because
 * what was sent cannot be taken back.
 */
export type CatchUpStep = 'under way' | 'complete' | 'dead end';

export class CatchUp {
  readonly #proposals: SyncSource;
  readonly #effects: LearnerTraffic;
  /** No txn of this leader's is longer, but one of an Apache leader's before it may be. */
  readonly #txnBytesMax: number;
  readonly #needSnapshot: Set<number>;

  /**
   * @param needSnapshot learners that came upon a dead end while they caught up: next time they are sent a snapshot. Kept
   *   by the caller, for a leader that has lost its quorum by that is another one the next time
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

  /** @param entries from the last one that is not later than what was asked for; none when there is no such history */
  onHistoryRead(peer: LearnerPeer, entries: readonly HistoryEntry[]): CatchUpStep {
    if (!peer.isStarted) {
      const start = this.#startFor(peer, chooseFromDisk(peer.lastZxid, entries), entries);
      this.#tellStart(peer, start);
      if (start.mode === 'snap') return 'under way';
    }
    const news = entries.filter(({ zxid }) => zxid > peer.sent);
    const [next] = news;
    // The memory reaches back so far by now, or as before with nothing in between.
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
   * What an Apache learner cuts may come back from one of its snapshots, so that it is better sent a newer one. But it
   * leaves its log as it is then and replays what lies behind the snapshot: a snapshot that is older than the end of its
   * log would bring back all that it was to be rid of. And it cuts behind the first txn from that zxid on, which must not
   * be the one behind a placeholder of ours, for its log has none.
   *
   * @param entries the first of what follows, as far as it was read from the disk
   */
  #startFor(peer: LearnerPeer, start: SyncStart, entries: readonly HistoryEntry[]): SyncStart {
    if (start.mode === 'diff' && this.#isTooLongBehind(start.from, entries)) return { mode: 'snap' };
    if (start.mode !== 'trunc' || peer.keepsLog) return start;
    const { snapshotZxid, log } = this.#proposals;
    if (snapshotZxid > peer.lastZxid) return { mode: 'snap' };
    return start.from < log.floor ? start : { mode: 'trunc', from: log.recordAt(start.from) };
  }

  #begin(peer: LearnerPeer, start: SyncStart): CatchUpStep {
    this.#tellStart(peer, start);
    return start.mode === 'snap' ? 'under way' : this.#stream(peer);
  }

  #tellStart(peer: LearnerPeer, start: SyncStart): void {
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

  /** Whether it is known already that learners refuse a txn of what follows. */
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

/** Why the connection of a learner that came upon a dead end is closed. */
export function describeDeadEnd(peer: LearnerPeer): string {
  return `the log has a gap behind ${formatZxid(peer.sent)}, or a txn too long to be sent: ${peer.name} needs a snapshot`;
}

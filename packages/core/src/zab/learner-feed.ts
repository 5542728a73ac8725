/**
 * Forwards the broadcast to the learners of a leader, as it happens.
 *
 *     history … ─► NEWLEADER ─► … proposals … ─► UPTODATE ─► the commits that waited ─► proposals, commits, SYNC …
 *                announce                        welcome                               propose, commit, sync
 *
 * An observer is sent INFORM instead of PROPOSAL and COMMIT. For an Apache learner, some commits wait for a SYNC, see
 * `HeldCommits`.
 */
import {
  Fifo,
  JuteReader,
  makeZxid,
  maxZxid,
  nextZxid,
  PacketType,
  readTxnEntry,
  ZXID_ZERO,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { HistoryEntry } from './history.ts';
import type { LeaderMembership, LearnerTraffic } from './leader-host.ts';
import { type LearnerPeer, PeerState } from './learner-peer.ts';
import type { LearnerPeers } from './learner-peers.ts';
import type { SyncSource } from './sync-source.ts';

/** The link has checked the total length. */
const PAYLOAD_BYTES_MAX = 2 ** 31 - 1;

export class LearnerFeed {
  readonly #peers: LearnerPeers;
  readonly #proposals: SyncSource;
  readonly #effects: LearnerTraffic;
  readonly #membership: LeaderMembership;
  /** The designated leader of each change of the membership that this leader has committed. */
  readonly #designated = new Map<Zxid, number>();
  /** Waiting syncs of learners, in the order of their tickets. */
  readonly #syncs: Fifo<{ readonly ticket: number; readonly peer: LearnerPeer }> = new Fifo();

  constructor(peers: LearnerPeers, proposals: SyncSource, effects: LearnerTraffic, membership: LeaderMembership) {
    this.#peers = peers;
    this.#proposals = proposals;
    this.#effects = effects;
    this.#membership = membership;
  }

  /** Syncs of learners that are not answered yet. */
  get pendingSyncs(): number {
    return this.#syncs.length;
  }

  /**
   * The whole history has been sent: sends the outstanding proposals and NEWLEADER, and forwards the broadcast from now
   * on.
   *
   * NEWLEADER names the membership that is in force at UPTODATE: before the epoch is established, the newest one, which is
   * committed with it; later the committed one. A change that is only proposed follows behind NEWLEADER, because an Apache
   * learner takes the membership in NEWLEADER for the last proposed one.
   */
  announce(peer: LearnerPeer): void {
    const { epoch, isEstablished } = this.#proposals;
    const { committedText, newestText } = this.#membership;
    const configText = isEstablished ? committedText : newestText;
    const isChanging = isEstablished && committedText !== newestText;
    peer.committed = this.#proposals.committed;
    if (!isChanging) this.#sendOutstanding(peer);
    this.#peers.follow(peer);
    this.#effects.send(peer.link, { type: PacketType.newLeader, zxid: makeZxid(epoch, 0), configText });
    if (isChanging) this.#sendOutstanding(peer);
  }

  #sendOutstanding(peer: LearnerPeer): void {
    if (peer.isObserver) return;
    const { log, committed } = this.#proposals;
    for (let i = log.indexAfter(committed); i < log.length; i++) {
      const { zxid, payload } = log.at(i);
      this.#effects.sendProposal(peer.link, zxid, payload);
    }
  }

  /** A change of the membership is about to be committed. */
  activate(zxid: Zxid, designatedLeader: number): void {
    this.#designated.set(zxid, designatedLeader);
  }

  /** UPTODATE, and the commits that waited for it. */
  welcome(peer: LearnerPeer): void {
    const { committed, epoch } = this.#proposals;
    this.#effects.send(peer.link, { type: PacketType.upToDate });
    if (peer.isObserver) return;
    const first = maxZxid(nextZxid(peer.committed), makeZxid(epoch, 1));
    for (let zxid = first; zxid <= committed; zxid = nextZxid(zxid)) {
      this.#sendCommit(peer, zxid);
    }
  }

  propose(zxid: Zxid, payload: Uint8Array): void {
    for (const peer of this.#peers.followers) this.#effects.sendProposal(peer.link, zxid, payload);
  }

  /** More has been committed. For our followers the COMMIT of a txn covers all txns before it. */
  commit(before: Zxid): void {
    for (const peer of this.#peers.followers) {
      if (peer.state !== PeerState.serving) continue;
      if (peer.held === null) this.#sendCommits(peer, before);
      else this.#sendEachTxn(peer, before);
    }
    for (const peer of this.#peers.observers) this.#sendEachTxn(peer, before);
  }

  #sendCommits(peer: LearnerPeer, before: Zxid): void {
    const { committed } = this.#proposals;
    for (const zxid of this.#designated.keys()) if (zxid > before && zxid < committed) this.#sendCommit(peer, zxid);
    this.#sendCommit(peer, committed);
  }

  #sendEachTxn(peer: LearnerPeer, before: Zxid): void {
    const { log, committed } = this.#proposals;
    for (let i = log.indexAfter(before); i < log.length; i++) {
      const entry = log.at(i);
      if (entry.zxid > committed) return;
      this.#maybeSendTxn(peer, entry);
    }
  }

  /** True when this learner has been told that everything up to `zxid` is committed. */
  hasSentCommit(peer: LearnerPeer | undefined, zxid: Zxid): boolean {
    return this.#proposals.committed >= zxid && peer?.held?.mustWait(zxid) !== true;
  }

  /** @param confirms false: the leader has its last answer, but its own lease is over */
  ping({ link }: LearnerPeer, confirms = true): void {
    const zxid = confirms ? this.#proposals.lastProposed : ZXID_ZERO;
    this.#effects.send(link, { type: PacketType.ping, zxid });
  }

  /** Sends SYNC once a ticket is answered; at once if it already is. */
  sync(peer: LearnerPeer, ticket: number, lastAnswered: number): void {
    peer.held?.onSync(this.#proposals.lastTxn);
    if (ticket <= lastAnswered) this.#sendSync(peer);
    else this.#syncs.push({ ticket, peer });
  }

  /** Every ticket up to this one is answered. */
  onSynced(ticket: number): void {
    for (
      let oldest = this.#syncs.peek();
      oldest !== undefined && oldest.ticket <= ticket;
      oldest = this.#syncs.peek()
    ) {
      this.#syncs.shift();
      if (this.#peers.isConnected(oldest.peer)) this.#sendSync(oldest.peer);
    }
  }

  #sendSync(peer: LearnerPeer): void {
    this.#effects.send(peer.link, { type: PacketType.sync });
    const { held } = peer;
    if (held === null) return;
    held.onSynced();
    for (let entry = held.take(); entry !== null; entry = held.take()) this.#sendTxn(peer, entry);
  }

  #maybeSendTxn(peer: LearnerPeer, entry: HistoryEntry): void {
    if (peer.held?.mustWait(entry.zxid)) peer.held.hold(entry);
    else this.#sendTxn(peer, entry);
  }

  #sendTxn(peer: LearnerPeer, { zxid, payload }: HistoryEntry): void {
    if (!peer.isObserver) this.#sendCommit(peer, zxid);
    else if (this.#designated.has(zxid)) this.#sendActivation(peer, zxid, payload);
    else this.#effects.sendInform(peer.link, zxid, payload);
  }

  #sendCommit({ link }: LearnerPeer, zxid: Zxid): void {
    const designatedLeader = this.#designated.get(zxid);
    if (designatedLeader === undefined) this.#effects.send(link, { type: PacketType.commit, zxid });
    else this.#effects.send(link, { type: PacketType.commitAndActivate, zxid, designatedLeader });
  }

  #sendActivation({ link }: LearnerPeer, zxid: Zxid, payload: Uint8Array): void {
    const entry = readTxnEntry(new JuteReader(payload, PAYLOAD_BYTES_MAX));
    const designatedLeader = this.#designated.get(zxid)!;
    assert(entry !== null, 'what a leader has proposed can be read');
    this.#effects.send(link, { type: PacketType.informAndActivate, designatedLeader, entry, payload });
  }
}

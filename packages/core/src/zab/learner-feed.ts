/**
 * What a leader tells its learners of the broadcast, as it happens.
 *
 *     history … ─► NEWLEADER ─► … proposals … ─► UPTODATE ─► the commits that waited ─► proposals, commits, SYNC …
 *                announce                        welcome                               propose, commit, sync
 *
 * An observer is sent INFORM in the place of PROPOSAL and COMMIT. One of Apache's learners is sent no commit that must
 * wait for a SYNC, see `HeldCommits`.
 */
import { Fifo, makeZxid, maxZxid, nextZxid, PacketType, type Zxid } from '@meerkat/protocol';
import type { HistoryEntry } from './history.ts';
import type { LeaderEffects } from './leader-host.ts';
import { type LearnerPeer, PeerState } from './learner-peer.ts';
import type { LearnerPeers } from './learner-peers.ts';
import type { Proposals } from './proposals.ts';

export class LearnerFeed {
  readonly #peers: LearnerPeers;
  readonly #proposals: Proposals;
  readonly #effects: LeaderEffects;
  readonly #configText: string;
  /** Syncs of learners that wait, in the order of their tickets. */
  readonly #syncs: Fifo<{ readonly ticket: number; readonly peer: LearnerPeer }> = new Fifo();

  constructor(peers: LearnerPeers, proposals: Proposals, effects: LeaderEffects, configText: string) {
    this.#peers = peers;
    this.#proposals = proposals;
    this.#effects = effects;
    this.#configText = configText;
  }

  /** Syncs of learners that are not answered yet. */
  get pendingSyncs(): number {
    return this.#syncs.length;
  }

  /** The whole history is on its way: what is outstanding follows, NEWLEADER, and from now on what happens. */
  announce(peer: LearnerPeer): void {
    const { log, committed, epoch } = this.#proposals;
    peer.committed = committed;
    if (!peer.isObserver) {
      for (let i = log.indexAfter(committed); i < log.length; i++) {
        const { zxid, payload } = log.at(i);
        this.#effects.sendProposal(peer.link, zxid, payload);
      }
    }
    this.#peers.follow(peer);
    const configText = this.#configText;
    this.#effects.send(peer.link, { type: PacketType.newLeader, zxid: makeZxid(epoch, 0), configText });
  }

  /** UPTODATE, and the commits that waited for it. */
  welcome(peer: LearnerPeer): void {
    const { committed, epoch } = this.#proposals;
    this.#effects.send(peer.link, { type: PacketType.upToDate });
    if (peer.isObserver) return;
    const first = maxZxid(nextZxid(peer.committed), makeZxid(epoch, 1));
    for (let zxid = first; zxid <= committed; zxid = nextZxid(zxid)) {
      this.#effects.send(peer.link, { type: PacketType.commit, zxid });
    }
  }

  propose(zxid: Zxid, payload: Uint8Array): void {
    for (const peer of this.#peers.followers) this.#effects.sendProposal(peer.link, zxid, payload);
  }

  /** More is committed than before. */
  commit(before: Zxid): void {
    const { log, committed } = this.#proposals;
    const { followers, observers } = this.#peers;
    for (let i = log.indexAfter(before); i < log.length; i++) {
      const entry = log.at(i);
      if (entry.zxid > committed) return;
      for (const peer of followers) if (peer.state === PeerState.serving) this.#maybeTellCommit(peer, entry);
      for (const peer of observers) this.#maybeTellCommit(peer, entry);
    }
  }

  /** True when this learner has been told that everything up to `zxid` is committed. */
  hasTold(peer: LearnerPeer | undefined, zxid: Zxid): boolean {
    return this.#proposals.committed >= zxid && peer?.held?.mustWait(zxid) !== true;
  }

  /** Learners that do not serve yet answer no ping. */
  ping(peers: readonly LearnerPeer[]): void {
    const ping = { type: PacketType.ping, zxid: this.#proposals.lastProposed };
    for (const peer of peers) if (peer.state === PeerState.serving) this.#effects.send(peer.link, ping);
  }

  /** Sends SYNC as soon as a ticket is answered, which it may be already. */
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
    for (let entry = held.take(); entry !== null; entry = held.take()) this.#tellCommit(peer, entry);
  }

  #maybeTellCommit(peer: LearnerPeer, entry: HistoryEntry): void {
    if (peer.held?.mustWait(entry.zxid)) peer.held.hold(entry);
    else this.#tellCommit(peer, entry);
  }

  #tellCommit({ link, isObserver }: LearnerPeer, { zxid, payload }: HistoryEntry): void {
    if (isObserver) this.#effects.sendInform(link, zxid, payload);
    else this.#effects.send(link, { type: PacketType.commit, zxid });
  }
}

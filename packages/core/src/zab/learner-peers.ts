import { assert } from '../base/assert.ts';
import type { LinkId } from './leader-host.ts';
import { type LearnerPeer, PeerState } from './learner-peer.ts';

/** The learners that are connected to a leader, including those that have not identified themselves. */
export class LearnerPeers {
  readonly #ofLink = new Map<LinkId, LearnerPeer>();
  #followers: readonly LearnerPeer[] = [];
  #observers: readonly LearnerPeer[] = [];

  /** All of them, in the order in which they connected. */
  values(): IterableIterator<LearnerPeer> {
    return this.#ofLink.values();
  }

  /** Learners that receive proposals as they are made. */
  get followers(): readonly LearnerPeer[] {
    return this.#followers;
  }

  /** Learners that receive committed txns as they are committed. */
  get observers(): readonly LearnerPeer[] {
    return this.#observers;
  }

  get(link: LinkId): LearnerPeer | undefined {
    return this.#ofLink.get(link);
  }

  isConnected(peer: LearnerPeer): boolean {
    return this.#ofLink.has(peer.link);
  }

  /** The admitted connection of a server. */
  standingOf(serverId: number | null): LearnerPeer | null {
    for (const peer of this.#ofLink.values()) {
      if (peer.serverId === serverId && peer.state !== PeerState.connected) return peer;
    }
    return null;
  }

  /** Ids of the voters for which `hold` is true. */
  votersThat(hold: (peer: LearnerPeer) => boolean): number[] {
    const ids: number[] = [];
    for (const peer of this.#ofLink.values()) if (peer.isVoter && hold(peer)) ids.push(peer.serverId);
    return ids;
  }

  connect(peer: LearnerPeer): void {
    assert(!this.#ofLink.has(peer.link), 'a link connects once');
    this.#ofLink.set(peer.link, peer);
  }

  /** Adds a learner to the broadcast. */
  follow(peer: LearnerPeer): void {
    if (peer.isObserver) this.#observers = [...this.#observers, peer];
    else this.#followers = [...this.#followers, peer];
  }

  forget(peer: LearnerPeer): void {
    this.#ofLink.delete(peer.link);
    this.#followers = this.#followers.filter((other) => other !== peer);
    this.#observers = this.#observers.filter((other) => other !== peer);
  }
}

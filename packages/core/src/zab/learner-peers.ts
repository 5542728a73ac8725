import { assert } from '../base/assert.ts';
import type { LinkId } from './leader-host.ts';
import { type LearnerPeer, PeerState } from './learner-peer.ts';

/** The learners that are connected to a leader, those included that have not said who they are. */
export class LearnerPeers {
  readonly #ofLink = new Map<LinkId, LearnerPeer>();
  #followers: readonly LearnerPeer[] = [];
  #observers: readonly LearnerPeer[] = [];

  /** All of them, in the order in which they connected. */
  values(): IterableIterator<LearnerPeer> {
    return this.#ofLink.values();
  }

  /** Those that are sent what is proposed, as it happens. */
  get followers(): readonly LearnerPeer[] {
    return this.#followers;
  }

  /** Those that are sent what is committed, as it happens. */
  get observers(): readonly LearnerPeer[] {
    return this.#observers;
  }

  get(link: LinkId): LearnerPeer | undefined {
    return this.#ofLink.get(link);
  }

  isConnected(peer: LearnerPeer): boolean {
    return this.#ofLink.has(peer.link);
  }

  /** The connection that speaks for a server. */
  standingOf(serverId: number | null): LearnerPeer | null {
    for (const peer of this.#ofLink.values()) {
      if (peer.serverId === serverId && peer.state !== PeerState.connected) return peer;
    }
    return null;
  }

  /** Ids of the voters' connections of which it holds. */
  votersThat(hold: (peer: LearnerPeer) => boolean): number[] {
    const ids: number[] = [];
    for (const peer of this.#ofLink.values()) if (peer.isVoter && hold(peer)) ids.push(peer.serverId);
    return ids;
  }

  connect(peer: LearnerPeer): void {
    assert(!this.#ofLink.has(peer.link), 'a link connects once');
    this.#ofLink.set(peer.link, peer);
  }

  /** From now on it is sent what happens. */
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

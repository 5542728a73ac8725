import type { Durable } from '../base/durable.ts';
import type { Electorate } from '../election/electorate.ts';
import type { History } from './history.ts';
import { findOutranking, LaterPromises, type LeaderState } from './later-promises.ts';
import type { LeaderEffects, PeerVotes } from './leader-host.ts';
import type { LeaderPhases } from './leader-phases.ts';
import type { LearnerPeer } from './learner-peer.ts';
import { findUnbelievablePromise, Promises } from './promises.ts';
import type { ZabOptions } from './zab-options.ts';

/** The epoch of a leader: how it is chosen, when it is durable, and who has promised a later one. */
export class LeaderEpoch {
  readonly #options: ZabOptions;
  readonly #phases: LeaderPhases;
  readonly #effects: Pick<LeaderEffects, 'acceptEpoch' | 'staysOut'>;
  readonly #promises: Promises;
  readonly #laterPromises: LaterPromises;
  #number = -1;
  /** This epoch, once it is durable as acceptedEpoch and as currentEpoch. */
  accepted: Durable<number> | null = null;
  adopted: Durable<number> | null = null;

  constructor(
    options: ZabOptions,
    phases: LeaderPhases,
    electorate: Electorate,
    history: History,
    peerVotes: PeerVotes,
    effects: Pick<LeaderEffects, 'acceptEpoch' | 'staysOut'>,
  ) {
    this.#options = options;
    this.#phases = phases;
    this.#effects = effects;
    this.#promises = new Promises(options.serverId, electorate, history);
    this.#laterPromises = new LaterPromises(peerVotes);
  }

  /** −1 until it is chosen. */
  get number(): number {
    return this.#number;
  }

  /** Why this server cannot lead, human-readable; null when it can. */
  get unfitness(): string | null {
    return this.#promises.unfitness;
  }

  /** Records the epoch that a learner had accepted before this one. */
  record(peer: LearnerPeer, acceptedEpoch: number): void {
    this.#promises.record(peer.serverId, peer.isVoter, acceptedEpoch);
  }

  /**
   * Chooses the epoch if a quorum's promises allow it.
   *
   * @param present voters that have said what they promised and are connected
   * @returns why this server cannot lead; null when it can or must wait
   */
  choose(present: readonly number[]): string | null {
    const choice = this.#promises.choose(present, this.#phases.ageMs >= this.#options.tickTimeMs);
    if (choice.kind === 'unfit') return choice.reason;
    if (choice.kind === 'epoch') {
      this.#number = choice.epoch;
      this.#effects.acceptEpoch(this.#number);
    }
    return null;
  }

  /** A voter has promised this epoch (ACKEPOCH). */
  confirm(serverId: number): void {
    this.#promises.confirm(serverId);
  }

  /** True once a quorum, this server included, has promised this epoch. */
  get isConfirmed(): boolean {
    return this.#promises.areConfirmed;
  }

  /** A voter has accepted a later epoch. @returns why its connection is to be closed; null when it is not */
  onLaterPromise(peer: LearnerPeer, accepted: number): string | null {
    const excess = findUnbelievablePromise(peer.name, accepted, this.#number);
    if (excess !== null) {
      this.#effects.staysOut(excess);
    } else if (this.#laterPromises.maybeBump(peer, accepted, this.#reign)) {
      this.#effects.acceptEpoch(accepted);
    }
    return excess;
  }

  /** A later epoch that this server accepts for the sake of a voter before it hands over; null while there is none. */
  get pendingBump(): { readonly accepted: number; readonly reason: string } | null {
    return this.#laterPromises.pendingEpochBump;
  }

  /** A voter stands for election. @returns why this leader is to hand over; null when it is not */
  onCandidate(serverId: number, historyEpoch: number): string | null {
    const reason = findOutranking(serverId, historyEpoch, this.#reign);
    if (reason !== null) this.#effects.staysOut(`${reason} This leader makes way for the longer history`);
    return reason;
  }

  get #reign(): LeaderState {
    const { syncLimit, tickTimeMs } = this.#options;
    return { epoch: this.#number, ledMs: this.#phases.ledMs, syncLimitMs: syncLimit * tickTimeMs };
  }
}

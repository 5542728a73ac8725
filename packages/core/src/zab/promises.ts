/**
 * The promises reported by voters (acceptedEpoch), and which of them a leader believes.
 *
 * The next epoch must be later than any promised by a member of its quorum. But a number may come from a damaged file
 * or from a foreign process, and epochs that are used up cannot be reused (`MAX_EPOCH`). So whether a promise is
 * believed depends on what else confirms it:
 *
 *     this server's own promise      another voter's promise
 *                 │ + EPOCHS_NEAR              │ + EPOCHS_FAR
 *     ── at once ─────┼──── when it is needed ─────┼──── never ──►
 *
 * It is needed when a tick has passed without a quorum of voters whose promises are believed at once. A single voter's
 * promise gets ahead only if it led failed attempts: each takes a quorum that sends FOLLOWERINFO, of which no server
 * receives LEADERINFO.
 */
import { epochOf, MAX_EPOCH } from '@meerkat/protocol';
import type { Electorate } from '../election/electorate.ts';
import { EPOCHS_FAR, EPOCHS_NEAR } from '../election/plausible.ts';
import type { History } from './history.ts';

export type EpochChoice =
  /** Later than every promise of this quorum. */
  | { readonly kind: 'epoch'; readonly epoch: number }
  /** Too few voters have reported a promise that is believed. */
  | { readonly kind: 'wait' }
  /** This server cannot lead. @see docs/zab.md, "A server that stays out" */
  | { readonly kind: 'unfit'; readonly reason: string };

const WAIT: EpochChoice = { kind: 'wait' };

export class Promises {
  readonly #serverId: number;
  readonly #electorate: Electorate;
  readonly #own: Pick<History, 'acceptedEpoch' | 'lastZxid'>;
  /** By server id. A promise remains valid when the connection is gone. */
  readonly #ofVoters = new Map<number, number>();
  readonly #ofOthers = new Map<number, number>();
  /** Voters that have promised the chosen epoch. Their promise remains valid when they reconnect. */
  readonly #confirmed = new Set<number>();
  #unfitness: string | null = null;

  constructor(serverId: number, electorate: Electorate, own: Pick<History, 'acceptedEpoch' | 'lastZxid'>) {
    this.#serverId = serverId;
    this.#electorate = electorate;
    this.#own = own;
  }

  /** Promises of observers and servers outside the electorate are recorded too, but not needed for a quorum. */
  record(serverId: number, isVoter: boolean, acceptedEpoch: number): void {
    (isVoter ? this.#ofVoters : this.#ofOthers).set(serverId, acceptedEpoch);
  }

  /**
   * @param present connected voters that have reported their promise
   * @param isLate others have had time to connect: promises that are far ahead are believed now
   */
  choose(present: readonly number[], isLate: boolean): EpochChoice {
    const believed = present.filter((id) => this.#isBelieved(id, isLate));
    if (!this.#electorate.isQuorum([this.#serverId, ...believed])) return WAIT;
    const doubt = this.#findDoubt();
    if (doubt !== null) return isLate ? this.#refuse(doubt) : WAIT;
    const epoch = this.#latestBelieved(isLate) + 1;
    if (epoch <= MAX_EPOCH) return { kind: 'epoch', epoch };
    return this.#refuse(describeEnd(epoch - 1));
  }

  /** Why this server cannot lead, human-readable; null when it may. */
  get unfitness(): string | null {
    return this.#unfitness;
  }

  /** A voter has promised the epoch that was chosen (ACKEPOCH). It says −1 when it connects again. */
  confirm(serverId: number): void {
    this.#confirmed.add(serverId);
  }

  /** True once a quorum, this server included, has promised the epoch that was chosen. */
  get areConfirmed(): boolean {
    return this.#electorate.isQuorum([this.#serverId, ...this.#confirmed]);
  }

  #refuse(reason: string): EpochChoice {
    this.#unfitness = reason;
    return { kind: 'unfit', reason };
  }

  /** Includes voters that have disconnected: their promises remain valid. */
  #latestBelieved(isLate: boolean): number {
    let latest: number = this.#own.acceptedEpoch;
    for (const [id, epoch] of this.#ofVoters) if (this.#isBelieved(id, isLate)) latest = Math.max(latest, epoch);
    for (const epoch of this.#ofOthers.values()) if (this.#isNear(epoch)) latest = Math.max(latest, epoch);
    return latest;
  }

  #isBelieved(id: number, isLate: boolean): boolean {
    const epoch = this.#ofVoters.get(id)!;
    if (this.#isNear(epoch)) return true;
    const others = Math.max(this.#own.acceptedEpoch, this.#latestOfVotersBut(id));
    return isLate && (epoch <= others || (epoch < MAX_EPOCH && epoch - others <= EPOCHS_FAR));
  }

  #isNear(epoch: number): boolean {
    const { acceptedEpoch } = this.#own;
    return epoch <= acceptedEpoch || (epoch < MAX_EPOCH && epoch - acceptedEpoch <= EPOCHS_NEAR);
  }

  #latestOfVotersBut(id: number | null): number {
    let latest = 0;
    for (const [other, epoch] of this.#ofVoters) if (other !== id) latest = Math.max(latest, epoch);
    return latest;
  }

  /**
   * The new epoch must also exceed this server's own promise. That needs confirmation by its history or by another
   * voter's promise, unless this server is a quorum by itself.
   *
   * @returns why its own promise is not confirmed, human-readable; null when it is
   */
  #findDoubt(): string | null {
    const { acceptedEpoch, lastZxid } = this.#own;
    const borneOut = Math.max(epochOf(lastZxid), this.#latestOfVotersBut(null));
    if (acceptedEpoch - borneOut <= EPOCHS_FAR || this.#electorate.isQuorum([this.#serverId])) return null;
    return (
      `this server has accepted epoch ${acceptedEpoch}, but its history and what the other voters have accepted end with ` +
      `epoch ${borneOut}: ${adviseRepair(borneOut)}`
    );
  }
}

/**
 * Whether an established leader makes way for a voter that has promised a later epoch: only if failed elections
 * elsewhere could have advanced the epoch that far by now, one per `syncLimit` ticks. So such promises cannot advance
 * the epoch any faster, no matter what they claim.
 *
 * @param lead epochs by which the promise is ahead
 * @param ledMs milliseconds since the epoch was established
 */
export function isLeadBelieved(lead: number, ledMs: number, syncLimitMs: number): boolean {
  return lead <= EPOCHS_FAR && lead * syncLimitMs <= ledMs;
}

/** What to do about a promise that no leader of this epoch will make way for, human-readable; null if one may. */
export function findUnbelievablePromise(name: string, acceptedEpoch: number, epoch: number): string | null {
  if (acceptedEpoch < MAX_EPOCH && acceptedEpoch - epoch <= EPOCHS_FAR) return null;
  return `${name} has accepted epoch ${acceptedEpoch}, and this leader is of epoch ${epoch}: ${adviseRepair(epoch)}`;
}

export function describeEnd(acceptedEpoch: number): string {
  return (
    `this server has accepted epoch ${acceptedEpoch}, and epoch ${MAX_EPOCH} is the last: no server that has ` +
    'accepted it can lead. See docs/zab.md, "The end of the epochs"'
  );
}

function adviseRepair(epoch: number): string {
  return (
    'elections cannot have advanced that far. Is its file acceptedEpoch damaged? While the others serve, stop that ' +
    `server, write ${epoch} into the file and start it again. See docs/zab.md, "A server that stays out"`
  );
}

/**
 * What the voters say they have promised (acceptedEpoch), and how far a leader believes them.
 *
 * The next epoch must be later than any that a member of its quorum has promised. But a number may come from a damaged
 * file or from a stranger, and epochs that are used up never come back (`MAX_EPOCH`). So how far a promise is believed
 * depends on what else bears it out:
 *
 *     this server's own promise      another voter's promise
 *                 │ + EPOCHS_NEAR              │ + EPOCHS_FAR
 *     ── at once ─────┼──── when it is needed ─────┼──── never ──►
 *
 * It is needed when a tick has passed without a quorum of voters whose promises are believed at once. A promise that
 * runs ahead alone is one that a candidate has made in elections that came to nothing: each takes a quorum that says
 * FOLLOWERINFO, and not one of it that hears LEADERINFO.
 */
import { epochOf, MAX_EPOCH } from '@meerkat/protocol';
import { EPOCHS_FAR, EPOCHS_NEAR } from '../election/believable.ts';
import type { Electorate } from '../election/electorate.ts';
import type { History } from './history.ts';

export type EpochChoice =
  /** Later than every promise of this quorum. */
  | { readonly kind: 'epoch'; readonly epoch: number }
  /** Too few voters whose promise is believed have said what it is. */
  | { readonly kind: 'wait' }
  /** This server cannot lead. @see docs/zab.md, "A server that stays out" */
  | { readonly kind: 'unfit'; readonly reason: string };

const WAIT: EpochChoice = { kind: 'wait' };

export class Promises {
  readonly #serverId: number;
  readonly #electorate: Electorate;
  readonly #own: Pick<History, 'acceptedEpoch' | 'lastZxid'>;
  /** By server id. A promise holds when its connection is gone. */
  readonly #ofVoters = new Map<number, number>();
  readonly #ofOthers = new Map<number, number>();
  /** Voters that have promised the epoch that was chosen. Their promise holds when they connect again. */
  readonly #confirmed = new Set<number>();
  #unfitness: string | null = null;

  constructor(serverId: number, electorate: Electorate, own: Pick<History, 'acceptedEpoch' | 'lastZxid'>) {
    this.#serverId = serverId;
    this.#electorate = electorate;
    this.#own = own;
  }

  /** Observers and servers outside the electorate promise too; nobody needs them. */
  record(serverId: number, isVoter: boolean, acceptedEpoch: number): void {
    (isVoter ? this.#ofVoters : this.#ofOthers).set(serverId, acceptedEpoch);
  }

  /**
   * @param present voters that have said what they promised and are connected
   * @param isLate others have had time to connect: what is far ahead is believed now
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

  /** Why this server cannot lead, for people; null when nothing speaks against it. */
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

  /** Those that are gone again count too: their promises hold. */
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
   * This server's own promise is to be surpassed, too: what is wrong with that, for people; null when nothing is. Its
   * history bears it out, or somebody else's promise does; where this server is a quorum by itself, nobody need.
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
 * Whether an established leader makes way for a voter that has promised a later epoch than its own: by then elections
 * that failed elsewhere could have led so far, one in each `syncLimit` ticks. Whatever such promises say, together they
 * move the epoch no faster than that.
 *
 * @param lead epochs by which the promise is ahead
 * @param ledMs milliseconds since the epoch was established
 */
export function isLeadBelieved(lead: number, ledMs: number, syncLimitMs: number): boolean {
  return lead <= EPOCHS_FAR && lead * syncLimitMs <= ledMs;
}

/** A promise that no leader of this epoch ever makes way for: what to do about it, for people; null when it may. */
export function findExcess(name: string, acceptedEpoch: number, epoch: number): string | null {
  if (acceptedEpoch < MAX_EPOCH && acceptedEpoch - epoch <= EPOCHS_FAR) return null;
  return `${name} has accepted epoch ${acceptedEpoch}, and this leader is of epoch ${epoch}: ${adviseRepair(epoch)}`;
}

export function describeEnd(acceptedEpoch: number): string {
  return (
    `this server has accepted epoch ${acceptedEpoch}, and after epoch ${MAX_EPOCH} there is none: nobody who has ` +
    'accepted it can lead. See docs/zab.md, "The end of the epochs"'
  );
}

function adviseRepair(epoch: number): string {
  return (
    'no elections can have led so far. Is its file acceptedEpoch damaged? While the others serve, stop that server, ' +
    `write ${epoch} into the file and start it again. See docs/zab.md, "A server that stays out"`
  );
}

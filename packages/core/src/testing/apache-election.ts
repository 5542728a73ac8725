import { type ElectionNotification, ServerState, VOTE_NONE, ZXID_VOTE_NONE, type Zxid } from '@meerkat/protocol';
import type { Clock } from '../base/ports.ts';
import type { ElectionEffects, Standing } from '../election/election-host.ts';
import type { Electorate } from '../election/electorate.ts';

/** The fields of a `Vote` that the model uses: 4 of them while LOOKING, all 6 in other states. */
interface ApacheVote {
  readonly leader: number;
  readonly zxid: Zxid;
  readonly round: number;
  readonly peerEpoch: number;
  readonly state: ServerState;
  readonly version: number;
}

interface Received extends ApacheVote {
  readonly from: number;
}

const FINALIZE_WAIT_MS = 200;
const INTERVAL_MIN_MS = 200;
const INTERVAL_MAX_MS = 60_000;

/**
 * The election of Apache ZooKeeper 3.8.0, implemented from the description of its behaviour and not from our own
 * machine, so that the two can be combined in one ensemble. It differs from ours:
 *
 * - it always waits 200 ms before it decides, and drops notifications that arrive meanwhile unless they beat its vote;
 * - it answers observers at once, and an observer of a later round answers those answers;
 * - it keeps counting the votes of a server whose connection broke, and those of a leader from before it was LOOKING
 *   again;
 * - it sends nothing when it has decided; the last notification to a peer is repeated over a new connection.
 */
export class ApacheElection {
  state: ServerState = ServerState.looking;
  round = 0;
  readonly #serverId: number;
  readonly #clock: Clock;
  readonly #electorate: Electorate;
  readonly #effects: Pick<ElectionEffects, 'sendNotification' | 'decided'>;
  #standing: Standing | null = null;
  #proposal: ApacheVote = NONE;
  #currentVote: ApacheVote = NONE;
  readonly #recvset = new Map<number, ApacheVote>();
  readonly #outOfElection = new Map<number, ApacheVote>();
  #queue: Received[] = [];
  #isSettling = false;
  #deadlineMs = Number.POSITIVE_INFINITY;
  #intervalMs = INTERVAL_MIN_MS;
  readonly #lastSent = new Map<number, ElectionNotification>();
  readonly #connected = new Set<number>();

  constructor(serverId: number, clock: Clock, electorate: Electorate, effects: ElectionEffects) {
    this.#serverId = serverId;
    this.#clock = clock;
    this.#electorate = electorate;
    this.#effects = effects;
  }

  get vote(): ApacheVote {
    return this.state === ServerState.looking ? this.#proposal : this.#currentVote;
  }

  get nextDeadlineMs(): number {
    return this.#deadlineMs;
  }

  look(standing: Standing): void {
    this.#standing = standing;
    this.state = ServerState.looking;
    this.round++;
    this.#recvset.clear();
    this.#outOfElection.clear();
    this.#intervalMs = INTERVAL_MIN_MS;
    this.#isSettling = false;
    this.#proposal = this.#initialVote();
    if (this.#currentVote === NONE) this.#currentVote = this.#proposal;
    this.#sendNotifications();
    this.#waitForMessage();
    this.#drain();
  }

  onPeerConnected(id: number): void {
    this.#connected.add(id);
    const last = this.#lastSent.get(id);
    if (last !== undefined) this.#effects.sendNotification(id, last);
  }

  onPeerUnreachable(id: number): void {
    this.#connected.delete(id);
  }

  onEpochEstablished(epoch: number): void {
    this.#currentVote = { ...this.#currentVote, peerEpoch: epoch };
  }

  onTick(): void {
    if (this.#clock.monotonicMs() < this.#deadlineMs) return;
    if (this.#isSettling) {
      this.#decide(this.#currentProposal(), this.#recvset);
      return;
    }
    if (this.#connected.size > 0) this.#sendNotifications();
    this.#intervalMs = Math.min(2 * this.#intervalMs, INTERVAL_MAX_MS);
    this.#waitForMessage();
    this.#drain();
  }

  /** The receiving thread: answers at once, and queues the rest for an election in progress. */
  onNotification(from: number, n: ElectionNotification): void {
    const isLooking = this.state === ServerState.looking;
    const isSenderLooking = n.state === ServerState.looking;
    if (!this.#electorate.voters.has(from)) {
      this.#send(from, { ...this.#currentVote, round: this.round });
    } else if (isLooking) {
      this.#queue.push({ ...n, from, round: n.electionEpoch });
      if (isSenderLooking && n.electionEpoch < this.round) this.#send(from, { ...this.#proposal, round: this.round });
      this.#drain();
    } else if (isSenderLooking) {
      this.#send(from, this.#currentVote);
    }
  }

  /** lookForLeader */
  #drain(): void {
    for (let n = this.#queue.shift(); n !== undefined; n = this.#queue.shift()) {
      if (this.state !== ServerState.looking) {
        this.#queue = [];
        return;
      }
      if (this.#isSettling) {
        if (this.#beats(n, this.#proposal)) {
          this.#queue.push(n);
          this.#isSettling = false;
          this.#waitForMessage();
        } else {
          this.#deadlineMs = this.#clock.monotonicMs() + FINALIZE_WAIT_MS;
        }
        continue;
      }
      this.#waitForMessage();
      const { voters } = this.#electorate;
      if (!voters.has(n.from) || !voters.has(n.leader)) continue;
      if (n.state === ServerState.looking) this.#onLooking(n);
      else if (n.state !== ServerState.observing) this.#onDecided(n);
    }
  }

  #onLooking(n: Received): void {
    if (this.#initialVote().zxid === -1 || n.zxid === -1) return;
    if (n.round < this.round) return;
    if (n.round > this.round) {
      this.round = n.round;
      this.#recvset.clear();
      const own = this.#initialVote();
      this.#proposal = this.#beats(n, own) ? { ...n, state: ServerState.looking } : own;
      this.#sendNotifications();
    } else if (this.#beats(n, this.#proposal)) {
      this.#proposal = { ...n, state: ServerState.looking };
      this.#sendNotifications();
    }
    this.#recvset.set(n.from, n);
    if (!this.#hasQuorum(this.#recvset, this.#currentProposal())) return;
    this.#isSettling = true;
    this.#deadlineMs = this.#clock.monotonicMs() + FINALIZE_WAIT_MS;
  }

  #onDecided(n: Received): void {
    if (n.round === this.round) {
      this.#recvset.set(n.from, { ...n, version: 0 });
      if (this.#hasQuorum(this.#recvset, n) && this.#checkLeader(this.#recvset, n)) {
        this.#decide(n, this.#recvset);
        return;
      }
    }
    this.#outOfElection.set(n.from, n);
    if (this.#hasQuorum(this.#outOfElection, n) && this.#checkLeader(this.#outOfElection, n)) {
      this.round = n.round;
      this.#decide(n, this.#outOfElection);
    }
  }

  #currentProposal(): ApacheVote {
    return { ...this.#proposal, round: this.round, state: ServerState.looking };
  }

  #decide(vote: ApacheVote, votes: ReadonlyMap<number, ApacheVote>): void {
    const supporters = this.#supporters(votes, vote);
    const { leading, following, observing } = ServerState;
    const learner = this.#standing?.learnerType === 'observer' ? observing : following;
    const state = vote.leader === this.#serverId ? leading : learner;
    this.state = state;
    this.#currentVote = { ...vote, state };
    this.#queue = [];
    this.#isSettling = false;
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    const { leader, zxid, peerEpoch } = vote;
    this.#effects.decided({
      state,
      leader,
      historyEpoch: peerEpoch,
      historyZxid: zxid,
      checksPromises: false,
      round: this.round,
      supporters,
    });
  }

  #checkLeader(votes: ReadonlyMap<number, ApacheVote>, n: ApacheVote): boolean {
    if (n.leader === this.#serverId) return this.round === n.round;
    return votes.get(n.leader)?.state === ServerState.leading;
  }

  #hasQuorum(votes: ReadonlyMap<number, ApacheVote>, vote: ApacheVote): boolean {
    return this.#electorate.isQuorum(this.#supporters(votes, vote));
  }

  #supporters(votes: ReadonlyMap<number, ApacheVote>, vote: ApacheVote): readonly number[] {
    return [...votes].filter(([, other]) => equals(other, vote)).map(([id]) => id);
  }

  /** totalOrderPredicate */
  #beats(n: ApacheVote, c: ApacheVote): boolean {
    if (!this.#electorate.canLead(n.leader)) return false;
    return (
      n.peerEpoch > c.peerEpoch ||
      (n.peerEpoch === c.peerEpoch && (n.zxid > c.zxid || (n.zxid === c.zxid && n.leader > c.leader)))
    );
  }

  #initialVote(): ApacheVote {
    const { lastZxid, currentEpoch, learnerType } = this.#standing!;
    const isParticipant = learnerType === 'participant';
    return {
      leader: this.#electorate.current.voters.has(this.#serverId) ? this.#serverId : VOTE_NONE,
      zxid: isParticipant ? lastZxid : ZXID_VOTE_NONE,
      peerEpoch: isParticipant ? currentEpoch : VOTE_NONE,
      round: this.round,
      state: ServerState.looking,
      version: 2,
    };
  }

  #sendNotifications(): void {
    const vote = { ...this.#proposal, round: this.round };
    for (const id of this.#electorate.voters) {
      if (id === this.#serverId) this.#queue.push({ ...vote, from: id, state: this.state });
      else this.#send(id, vote);
    }
  }

  #send(to: number, { leader, zxid, peerEpoch, round }: ApacheVote): void {
    const vote = { leader, zxid, peerEpoch, electionEpoch: round };
    const notification = { state: this.state, ...vote, version: 2, configText: 'version=0', announces: 0 };
    this.#lastSent.set(to, notification);
    if (this.#connected.has(to)) this.#effects.sendNotification(to, notification);
  }

  #waitForMessage(): void {
    this.#deadlineMs = this.#clock.monotonicMs() + this.#intervalMs;
  }
}

const NONE: ApacheVote = {
  leader: VOTE_NONE,
  zxid: ZXID_VOTE_NONE,
  peerEpoch: VOTE_NONE,
  round: -1,
  state: ServerState.looking,
  version: 2,
};

/** Vote.equals */
function equals(a: ApacheVote, b: ApacheVote): boolean {
  if (a.leader !== b.leader) return false;
  if (a.state === ServerState.looking || b.state === ServerState.looking) {
    return a.zxid === b.zxid && a.round === b.round && a.peerEpoch === b.peerEpoch;
  }
  return a.version > 0 !== b.version > 0 || a.peerEpoch === b.peerEpoch;
}

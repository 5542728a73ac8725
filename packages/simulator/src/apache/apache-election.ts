import {
  type ElectionNotification,
  JuteReader,
  JuteWriter,
  parseMembership,
  readElectionNotification,
  ServerState,
  VOTE_NONE,
  writeElectionNotification,
  ZXID_VOTE_NONE,
  type Zxid,
} from '@meerkat/protocol';
import { ApacheElectionSockets } from './apache-election-sockets.ts';
import { type ApacheHost, ApacheTimers, memberOf } from './apache-host.ts';

/** `Vote`. While looking, four of the fields distinguish votes; afterwards the version replaces the others. */
interface ApacheVote {
  readonly leader: number;
  readonly zxid: Zxid;
  readonly round: number;
  readonly peerEpoch: number;
  readonly state: ServerState;
  readonly version: number;
}

interface ReceivedVote extends ApacheVote {
  readonly from: number;
}

export interface ApacheDecision {
  readonly state: ServerState;
  readonly leader: number;
}

/**
 * The election of 3.8.0 (FastLeaderElection), structured like its loop: received notifications are queued, the loop
 * waits for the queue with its own timeout, and another thread answers at once what does not depend on the loop.
 */
export class ApacheElection {
  state: ServerState = ServerState.looking;
  round = 0;
  readonly #host: ApacheHost;
  readonly #sockets: ApacheElectionSockets;
  readonly #timers: ApacheTimers;
  readonly #decided: (decision: ApacheDecision) => void;
  #proposal: ApacheVote = NO_VOTE;
  #currentVote: ApacheVote = NO_VOTE;
  readonly #recvset = new Map<number, ApacheVote>();
  readonly #outOfElection = new Map<number, ApacheVote>();
  #queue: ReceivedVote[] = [];
  #isSettling = false;
  #isDraining = false;
  #intervalMs = 0;
  #cancelWait: () => void = () => {};

  constructor(host: ApacheHost, decided: (decision: ApacheDecision) => void) {
    this.#host = host;
    this.#sockets = new ApacheElectionSockets(host, (from, bytes) => this.#onMessage(from, bytes));
    this.#timers = new ApacheTimers(host.timeline);
    this.#decided = decided;
  }

  get vote(): { readonly leader: number; readonly zxid: Zxid; readonly peerEpoch: number } {
    return this.state === ServerState.looking ? this.#proposal : this.#currentVote;
  }

  get sockets(): ApacheElectionSockets {
    return this.#sockets;
  }

  open(): void {
    this.#sockets.open();
    this.#currentVote = { ...this.#initialVote(), round: -1 };
  }

  close(): void {
    this.#timers.cancelAll();
    this.#sockets.close();
  }

  look(): void {
    this.state = ServerState.looking;
    this.round++;
    this.#recvset.clear();
    this.#outOfElection.clear();
    this.#intervalMs = this.#host.timings.notificationMinMs;
    this.#isSettling = false;
    this.#proposal = this.#initialVote();
    this.#sendNotifications();
    this.#wait(this.#intervalMs);
    this.#drain();
  }

  /** `updateElectionVote` */
  onServing(epoch: number): void {
    this.#currentVote = { ...this.#currentVote, peerEpoch: epoch };
  }

  /** The receiving thread. */
  #onMessage(from: number, bytes: Uint8Array): void {
    const n = readElectionNotification(new JuteReader(bytes));
    if (n === null) {
      this.#host.complain(`server ${from} sent ${bytes.length} bytes that are no notification: 3.8.0 ignores them`);
      return;
    }
    this.#checkConfig(from, n);
    const isLooking = this.state === ServerState.looking;
    const isSenderLooking = n.state === ServerState.looking;
    if (!this.#host.quorum.voters.has(from)) {
      this.#send(from, { ...this.#currentVote, round: this.round });
    } else if (isLooking) {
      this.#queue.push({ ...n, from, round: n.electionEpoch });
      if (isSenderLooking && n.electionEpoch < this.round) this.#send(from, { ...this.#proposal, round: this.round });
      this.#drain();
    } else if (isSenderLooking) {
      this.#send(from, this.#currentVote);
    }
  }

  /** The effect of a configuration in a notification on 3.8.0. */
  #checkConfig(from: number, { version, configText }: ElectionNotification): void {
    const who = `the notification of server ${from}`;
    if (version < 2 || configText === null) {
      this.#host.warn(`${who} has no configuration, as before 3.5`);
      return;
    }
    if (configText === '') return;
    const membership = parseMembership(configText);
    if ('fault' in membership) {
      this.#host.complain(`${who} has a configuration that 3.8.0 cannot read (${membership.fault}); the vote is used`);
      return;
    }
    const voters = membership.members.filter((member) => member.role === 'participant').length;
    if (voters <= 1 && membership.members.length > voters) {
      this.#host.complain(`${who} has observers of ${voters} participants: the receiving thread of 3.8.0 ends`);
    }
    if (membership.members.some((member) => member.secureClient !== null)) {
      this.#host.complain(`${who} has a secure client address, which is an error before 3.9`);
    }
    if (membership.version > this.#host.membership.version && this.state === ServerState.looking) {
      this.#host.complain(`${who} has a newer configuration: 3.8.0 restarts its election each time`);
    }
  }

  /** lookForLeader, until the queue is empty. */
  #drain(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    while (this.state === ServerState.looking) {
      const n = this.#queue.shift();
      if (n === undefined) break;
      if (this.#isSettling) this.#settle(n);
      else this.#onVote(n);
    }
    this.#isDraining = false;
  }

  #settle(n: ReceivedVote): void {
    const { finalizeWaitMs } = this.#host.timings;
    if (this.#beats(n, this.#proposal)) {
      this.#queue.push(n);
      this.#isSettling = false;
      this.#wait(this.#intervalMs);
    } else this.#wait(finalizeWaitMs);
  }

  #onVote(n: ReceivedVote): void {
    this.#wait(this.#intervalMs);
    const { voters } = this.#host.quorum;
    if (!voters.has(n.from) || !voters.has(n.leader)) return;
    if (n.state === ServerState.looking) this.#onLooking(n);
    else if (n.state !== ServerState.observing) this.#onDecided(n);
  }

  #onLooking(n: ReceivedVote): void {
    const own = this.#initialVote();
    if (own.zxid === -1 || n.zxid === -1 || n.round < this.round) return;
    if (n.round > this.round) {
      this.round = n.round;
      this.#recvset.clear();
      this.#proposal = this.#beats(n, own) ? { ...n, state: ServerState.looking } : own;
      this.#sendNotifications();
    } else if (this.#beats(n, this.#proposal)) {
      this.#proposal = { ...n, state: ServerState.looking };
      this.#sendNotifications();
    }
    this.#recvset.set(n.from, n);
    if (!this.#hasQuorum(this.#recvset, { ...this.#proposal, round: this.round })) return;
    this.#isSettling = true;
    this.#wait(this.#host.timings.finalizeWaitMs);
  }

  #onDecided(n: ReceivedVote): void {
    if (n.round === this.round) {
      this.#recvset.set(n.from, { ...n, version: 0 });
      if (this.#hasQuorum(this.#recvset, n) && this.#checkLeader(this.#recvset, n)) {
        this.#decide(n);
        return;
      }
    }
    this.#outOfElection.set(n.from, n);
    if (this.#hasQuorum(this.#outOfElection, n) && this.#checkLeader(this.#outOfElection, n)) {
      this.round = n.round;
      this.#decide(n);
    }
  }

  #onTimeout(): void {
    if (this.#isSettling) {
      this.#decide({ ...this.#proposal, round: this.round });
      return;
    }
    if (this.#sockets.haveDelivered) this.#sendNotifications();
    else this.#sockets.connectAll();
    this.#intervalMs = Math.min(2 * this.#intervalMs, this.#host.timings.notificationMaxMs);
    this.#wait(this.#intervalMs);
    this.#drain();
  }

  #decide(vote: ApacheVote): void {
    const { serverId, membership } = this.#host;
    const { leading, following, observing } = ServerState;
    const learner = memberOf(membership, serverId)?.role === 'observer' ? observing : following;
    this.state = vote.leader === serverId ? leading : learner;
    this.#currentVote = { ...vote, state: this.state };
    this.#queue = [];
    this.#isSettling = false;
    this.#cancelWait();
    this.#decided({ state: this.state, leader: vote.leader });
  }

  #checkLeader(votes: ReadonlyMap<number, ApacheVote>, n: ApacheVote): boolean {
    if (n.leader === this.#host.serverId) return this.round === n.round;
    return votes.get(n.leader)?.state === ServerState.leading;
  }

  #hasQuorum(votes: ReadonlyMap<number, ApacheVote>, vote: ApacheVote): boolean {
    return this.#host.quorum.isReachedBy([...votes].filter(([, other]) => equals(other, vote)).map(([id]) => id));
  }

  /** totalOrderPredicate */
  #beats(n: ApacheVote, c: ApacheVote): boolean {
    if (this.#host.quorum.weightOf(n.leader) === 0) return false;
    if (n.peerEpoch !== c.peerEpoch) return n.peerEpoch > c.peerEpoch;
    return n.zxid > c.zxid || (n.zxid === c.zxid && n.leader > c.leader);
  }

  #initialVote(): ApacheVote {
    const { serverId, quorum, database, disk } = this.#host;
    const isVoter = quorum.voters.has(serverId);
    return {
      leader: isVoter ? serverId : VOTE_NONE,
      zxid: isVoter ? database.lastProcessedZxid : ZXID_VOTE_NONE,
      peerEpoch: isVoter ? disk.currentEpoch : VOTE_NONE,
      round: this.round,
      state: ServerState.looking,
      version: 2,
    };
  }

  #sendNotifications(): void {
    const vote = { ...this.#proposal, round: this.round };
    for (const id of this.#host.quorum.voters) {
      if (id === this.#host.serverId) this.#queue.push({ ...vote, from: id, state: this.state });
      else this.#send(id, vote);
    }
  }

  #send(to: number, { leader, zxid, peerEpoch, round }: ApacheVote): void {
    const writer = new JuteWriter();
    const vote = { state: this.state, leader, zxid, electionEpoch: round, peerEpoch };
    writeElectionNotification(writer, { ...vote, version: 2, configText: this.#host.configText, announces: 0 });
    this.#sockets.send(to, writer.toBytes());
  }

  #wait(ms: number): void {
    this.#cancelWait();
    this.#cancelWait = this.#timers.after(ms, () => this.#onTimeout());
  }
}

const NO_VOTE: ApacheVote = {
  leader: VOTE_NONE,
  zxid: ZXID_VOTE_NONE,
  peerEpoch: VOTE_NONE,
  round: -1,
  state: ServerState.looking,
  version: 2,
};

/** `Vote.equals` */
function equals(a: ApacheVote, b: ApacheVote): boolean {
  if (a.leader !== b.leader) return false;
  if (a.state === ServerState.looking || b.state === ServerState.looking) {
    return a.zxid === b.zxid && a.round === b.round && a.peerEpoch === b.peerEpoch;
  }
  return a.version > 0 !== b.version > 0 || a.peerEpoch === b.peerEpoch;
}

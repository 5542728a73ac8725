import { Announcement, type ElectionNotification, makeZxid, ServerState, type Zxid } from '@meerkat/protocol';
import { Election } from '../election/election.ts';
import { DEFAULT_ELECTION_OPTIONS, type Decision, type Standing } from '../election/election-host.ts';
import { Electorate } from '../election/electorate.ts';
import { makeQuorum, type QuorumShape } from '../election/quorum.ts';
import { ManualClock } from './test-server.ts';

export const THREE = { voters: [1, 2, 3] };
export const FIVE = { voters: [1, 2, 3, 4, 5] };

export interface Sent extends ElectionNotification {
  readonly to: number;
}

/** A single election; the test plays the peers. Every peer is connected, and either Apache's or ours. */
export class TestElection {
  readonly clock: ManualClock = new ManualClock();
  readonly election: Election;
  readonly electorate: Electorate;
  readonly decisions: Decision[] = [];
  readonly configsReceived: string[] = [];
  /** Leaders that it was told not to follow, and candidates with a later history than this leader's. */
  readonly olderEpochLeads: string[] = [];
  readonly outranked: string[] = [];
  decisionsLost = 0;
  /** What the peers announce in every notification. */
  readonly #announces: number;
  #sent: Sent[] = [];
  #standing: Standing | null = null;

  constructor(serverId: number, shape: QuorumShape, { areOurs = false, peers = [...shape.voters], leaseMs = 0 } = {}) {
    this.#announces = areOurs ? Announcement.settlesEarly + Announcement.refusesOlderEpochs : 0;
    const options = { serverId, ...DEFAULT_ELECTION_OPTIONS, leaseMs };
    this.electorate = new Electorate(makeQuorum(shape));
    this.election = new Election(options, this.clock, this.electorate, 'version=0', {
      sendNotification: (to, notification) => this.#sent.push({ to, ...notification }),
      decided: (decision) => this.decisions.push(decision),
      decisionLost: () => {
        this.decisionsLost++;
      },
      olderEpochLeads: (leader, leaderEpoch) => this.olderEpochLeads.push(`of epoch ${leaderEpoch}: ${leader}`),
      outranked: (serverId, historyEpoch) => this.outranked.push(`by epoch ${historyEpoch}: ${serverId}`),
      configReceived: (_from, text) => this.configsReceived.push(text),
    });
    for (const id of peers) {
      if (id === serverId) continue;
      this.election.onPeerConnected(id);
    }
  }

  get decision(): Decision | undefined {
    return this.decisions.at(-1);
  }

  /** Everything sent since the last call. */
  takeSent(): readonly Sent[] {
    const sent = this.#sent;
    this.#sent = [];
    return sent;
  }

  /** Another membership is proposed, or takes effect. */
  change(current: QuorumShape, lastSeen: QuorumShape | null, configText: string): void {
    this.electorate.change(makeQuorum(current), lastSeen === null ? null : makeQuorum(lastSeen));
    this.election.onElectorateChanged(configText, this.#standing);
  }

  look(standing: Partial<Standing> = {}): void {
    this.#standing = {
      lastZxid: makeZxid(1, 1),
      currentEpoch: 1,
      learnerType: 'participant',
      isCandidate: true,
      ...standing,
    };
    this.election.look(this.#standing);
  }

  /** A vote of a server that is looking. */
  ballot(from: number, leader: number, round: number, rest: Partial<ElectionNotification> = {}): void {
    this.#deliver(from, ServerState.looking, leader, round, rest);
  }

  following(from: number, leader: number, round: number, rest: Partial<ElectionNotification> = {}): void {
    this.#deliver(from, ServerState.following, leader, round, rest);
  }

  leading(from: number, round: number, rest: Partial<ElectionNotification> = {}): void {
    this.#deliver(from, ServerState.leading, from, round, rest);
  }

  advance(ms: number): void {
    const untilMs = this.clock.nowMs + ms;
    while (this.election.nextDeadlineMs <= untilMs) {
      this.clock.nowMs = this.election.nextDeadlineMs;
      this.election.onTick();
    }
    this.clock.nowMs = untilMs;
  }

  #deliver(
    from: number,
    state: ServerState,
    leader: number,
    electionEpoch: number,
    rest: Partial<ElectionNotification>,
  ): void {
    const zxid: Zxid = makeZxid(1, 1);
    const vote = { state, leader, zxid, electionEpoch, peerEpoch: 1 };
    const config = { version: 2, configText: 'version=0', announces: this.#announces };
    this.election.onNotification(from, { ...vote, ...config, ...rest });
  }
}

import type { ElectionNotification, ServerState, Zxid } from '@meerkat/protocol';

export interface ElectionOptions {
  readonly serverId: number;
  /** Silence, in milliseconds, after which a vote of a quorum has won (Apache's `finalizeWait`). */
  readonly settleMs: number;
  /** Milliseconds until a server that receives nothing resends its vote; doubles each time up to the maximum. */
  readonly notificationIntervalMinMs: number;
  readonly notificationIntervalMaxMs: number;
  /** Announced to the others, see `announcedLease`. Default 0. */
  readonly leaseMs?: number;
}

export const DEFAULT_ELECTION_OPTIONS: Omit<ElectionOptions, 'serverId'> = {
  settleMs: 200,
  notificationIntervalMinMs: 200,
  notificationIntervalMaxMs: 60_000,
};

/** A server's persistent state at the start of an election. */
export interface Standing {
  /** Last zxid in its log; −1 when its data directory is empty and must not be trusted. */
  readonly lastZxid: Zxid;
  readonly currentEpoch: number;
  /**
   * An observer finds the leader but is never counted and never leads, even if the configuration lists it as a voter.
   */
  readonly learnerType: 'participant' | 'observer';
  /** False for a server that followers cannot reach: it votes for others and follows, but is not a candidate. */
  readonly isCandidate: boolean;
}

export interface Decision {
  readonly state: typeof ServerState.leading | typeof ServerState.following | typeof ServerState.observing;
  /** Server id of the leader. */
  readonly leader: number;
  /** Epoch of the leader's history when it was elected; once its new epoch is established, that one. */
  readonly historyEpoch: number;
  /** Last zxid of the leader's history when it was elected. */
  readonly historyZxid: Zxid;
  /** True when the leader checks promised epochs for plausibility; Apache leaders accept any epoch. */
  readonly checksPromises: boolean;
  readonly round: number;
  /** The voters whose votes or claims led to this decision. */
  readonly supporters: readonly number[];
}

export interface ElectionEffects {
  sendNotification(to: number, notification: ElectionNotification): void;
  /** The search is over. Called once per `look`, as the last effect of an event. */
  decided(decision: Decision): void;
  /**
   * The decision no longer holds: too few of the voters that made this server the leader still support it, or the
   * leader that it follows is itself looking. Called at most once per decision. A role that has no quorum yet should
   * `look` again instead of waiting for `initLimit`; once it has one, its connections are the better indicator.
   */
  decisionLost(): void;
  /**
   * A quorum follows this leader, but this server's history is of a later epoch. It keeps looking, because following
   * would discard its history. Called each time the quorum repeats its claim.
   */
  olderEpochLeads(leader: number, leaderEpoch: number): void;
  /** This server leads an established epoch, and a voter with a history of a later epoch is a candidate. */
  outranked(serverId: number, historyEpoch: number): void;
  /** A peer has a different configuration, and this server is looking, so it may adopt that one. */
  configReceived(from: number, configText: string): void;
}

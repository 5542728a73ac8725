import type { ElectionNotification, ServerState, Zxid } from '@meerkat/protocol';

export interface ElectionOptions {
  readonly serverId: number;
  /** Silence, in milliseconds, after which a vote of a quorum has won (Apache's `finalizeWait`). */
  readonly settleMs: number;
  /** Milliseconds until a server that hears nothing says its vote again; doubles each time up to the maximum. */
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

/** What a server brings into an election, as its storage holds it. */
export interface Standing {
  /** Last zxid in its log; −1 when its empty directory must not be trusted. */
  readonly lastZxid: Zxid;
  readonly currentEpoch: number;
  /** An observer finds the leader but is never counted and never leads, whatever the configuration says of it. */
  readonly learnerType: 'participant' | 'observer';
  /** False of a server that followers cannot reach: it votes for others and follows, but does not stand for leader. */
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
  /** The leader believes a promise only as far as elections can have led; Apache's believe any. */
  readonly judgesPromises: boolean;
  readonly round: number;
  /** The voters whose votes or claims made it. */
  readonly supporters: readonly number[];
}

export interface ElectionEffects {
  sendNotification(to: number, notification: ElectionNotification): void;
  /** The search is over. Told once per `look`, as the last effect of an event. */
  decided(decision: Decision): void;
  /**
   * What was decided does not hold: too few of the voters that made this server the leader still stand by it, or the
   * leader that it follows looks for one itself. Told at most once per decision. A role that has not brought a quorum
   * together yet does well to `look` again, instead of waiting out `initLimit`; later its connections know better.
   */
  decisionLost(): void;
  /**
   * A quorum has found this leader, but the history of this server is of a later epoch. It goes on looking: it would have
   * to give up its history. Told whenever that quorum says so again.
   */
  keptOut(leader: number, leaderEpoch: number): void;
  /** This server leads an established epoch, and a voter stands for election with a history of a later one. */
  outranked(serverId: number, historyEpoch: number): void;
  /** A peer follows another configuration, and this server is looking, which is when it may take one over. */
  configHeard(from: number, configText: string): void;
}

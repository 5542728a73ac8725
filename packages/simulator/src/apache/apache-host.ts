import type { Member, Membership, TxnEntry, Zxid } from '@meerkat/protocol';
import type { SeededRandom } from '../seeded-random.ts';
import type { Timeline } from '../timeline.ts';
import type { VirtualNetwork } from '../virtual-network.ts';
import type { ApacheDatabase } from './apache-database.ts';
import type { ApacheDisk } from './apache-disk.ts';
import type { ApacheQuorum } from './apache-quorum.ts';

/** Timings of a 3.8.0 server in milliseconds; the limits are numbers of ticks. */
export interface ApacheTimings {
  readonly tickTimeMs: number;
  readonly initLimit: number;
  readonly syncLimit: number;
  readonly notificationMinMs: number;
  readonly notificationMaxMs: number;
  /** How long it waits for better votes once it could decide. */
  readonly finalizeWaitMs: number;
  readonly electionConnectMs: number;
  /** Pause between a learner's attempts to connect to its leader, of which there are five. */
  readonly leaderConnectPauseMs: number;
  readonly logSyncMinMs: number;
  readonly logSyncMaxMs: number;
  /** Maximum delay of the reading thread between queueing the history and acknowledging it. */
  readonly newLeaderPauseMaxMs: number;
}

export const APACHE_TIMINGS: ApacheTimings = {
  tickTimeMs: 2000,
  initLimit: 10,
  syncLimit: 5,
  notificationMinMs: 200,
  notificationMaxMs: 60_000,
  finalizeWaitMs: 200,
  electionConnectMs: 5000,
  leaderConnectPauseMs: 100,
  logSyncMinMs: 0,
  logSyncMaxMs: 4,
  newLeaderPauseMaxMs: 2,
};

/** Shared by the parts of one server. */
export interface ApacheHost {
  readonly serverId: number;
  readonly hostName: string;
  readonly timeline: Timeline;
  readonly network: VirtualNetwork;
  readonly random: SeededRandom;
  readonly timings: ApacheTimings;
  readonly membership: Membership;
  readonly configText: string;
  readonly quorum: ApacheQuorum;
  readonly disk: ApacheDisk;
  readonly database: ApacheDatabase;
  /** Real log files have their preallocated length, so the log is hardly ever within the limit. */
  readonly isLogSyncEnabled: boolean;
  /** Another server did something that 3.8.0 does not tolerate. */
  complain(what: string): void;
  /** Something that 3.8.0 logs as a warning, and that may be caused by the network. */
  warn(what: string): void;
  /** `System.exit` */
  exit(code: number, why: string): void;
  /** The role starts to serve, in this epoch. */
  onServing(epoch: number): void;
  /** The role is over. Called once. */
  onRoleEnded(reason: string): void;
  onApplied(zxid: Zxid, entry: TxnEntry): void;
  /** Leader and learner: the oldest sync of the server's own clients is answered. */
  onSynced(): void;
  onRevalidated(sessionId: bigint, isValid: boolean): void;
  /** Sessions that the server's clients have used since the last call. */
  takeTouched(): readonly { readonly sessionId: bigint; readonly timeoutMs: number }[];
}

export function memberOf(membership: Membership, serverId: number): Member | null {
  return membership.members.find((member) => member.serverId === serverId) ?? null;
}

/** Timers that are cancelled together. */
export class ApacheTimers {
  readonly #timeline: Timeline;
  readonly #cancels = new Set<() => void>();

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  after(ms: number, run: () => void): () => void {
    const cancel = this.#timeline.after(ms, () => {
      this.#cancels.delete(cancel);
      run();
    });
    this.#cancels.add(cancel);
    return () => {
      this.#cancels.delete(cancel);
      cancel();
    };
  }

  cancelAll(): void {
    for (const cancel of this.#cancels) cancel();
    this.#cancels.clear();
  }
}

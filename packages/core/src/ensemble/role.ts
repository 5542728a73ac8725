import type { Zxid } from '@meerkat/protocol';
import type { Durable } from '../base/durable.ts';
import type { EpochFileName } from '../storage/epoch-files.ts';
import type { RecoveredState } from './member.ts';

/** What a server of an ensemble does between two elections. */
export interface Role {
  /** Server id of the leader. */
  readonly leader: number;
  readonly isEstablished: boolean;
  /** True while nothing new is begun: the role is about to end. */
  readonly isLeaving: boolean;
  start(): void;
  onLogSynced(durable: Durable<Zxid>): void;
  onEpochDurable(name: EpochFileName, epoch: Durable<number>): void;
  /** The database has been read anew from the disk, after the log was truncated. */
  onRecovered(state: RecoveredState): void;
  onTruncateRefused(reason: string): void;
  onSnapshotInstalled(lastZxid: Durable<Zxid>): void;
  onTick(): void;
  /** The turn ends; what is sent now leaves with it. */
  onTurnEnd(): void;
  /** Monotonic milliseconds; Infinity when nothing is due. */
  nextDeadlineMs(): number;
  /** Ends the role in good order: a leader hands over first. `onEnded` follows. */
  leave(reason: string): void;
  /** Closes everything at once; nothing is told any more. */
  abandon(reason: string): void;
}

import type { Acl, ConnectRequest } from '@meerkat/protocol';
import type { Authenticator, SessionPasswords, Trace } from '../base/ports.ts';
import type { ServerStats } from '../base/server-stats.ts';
import type { FourLetterWords } from '../base/server-view.ts';
import type { Turn } from '../base/turn.ts';
import type { Permission } from '../request/permission.ts';
import type { Pipeline } from '../request/pipeline.ts';
import type { WorkMeter } from '../request/work-meter.ts';
import type { ConnectDecision } from '../session/connect-decision.ts';
import type { AnswerGate } from './answer-gate.ts';
import type { OutputPool } from './output-pool.ts';
import type { WaitLimits } from './throttled-input.ts';

/** What a connection reports to the owner of all connections (`ClientConnections`). */
export interface ConnectionEvents<Connection> {
  /** Units of work that one connection may use in this turn. */
  readonly turnShare: number;
  /** Units of work that all connections together may use in a turn, before long requests wait for the next one. */
  readonly turnUnits: number;
  /** Decides when replies may leave. */
  readonly gate: AnswerGate;
  /** The connection has requested something and is no longer silent, or is about to close. */
  onAsked(connection: Connection): void;
  /** The connection waits for the server to serve; `resumeReading` is called then. */
  onAwaitingServing(connection: Connection): void;
  /** The connection has output; `flush` is called at the end of the turn, or before. */
  onOutput(connection: Connection): void;
  /** The connection has events to send; `flushEvents` is called at the end of this turn or of one of the next. */
  onEvents(connection: Connection): void;
  /** A connection's input has been processed: output may leave now. */
  onRead(): void;
  /** The connection is not read until the server has less to do; `resumeReading` is called then. */
  onHeldBack(connection: Connection): void;
  /** The connection is held back until at least this time of the turn's clock. */
  onPause(untilMs: number): void;
  /** The connection has used up its share of this turn; `onTurn` is called in one of the next. */
  onShareUsed(connection: Connection): void;
  /** The kernel has not taken all output of the connection, which holds this many bytes in memory. */
  onUntaken(connection: Connection, bytes: number): void;
  /** The connection's output has been taken completely. */
  onTaken(connection: Connection): void;
  onClosed(connection: Connection): void;
  /** Minimum bytes of a large request. */
  readonly largeRequestBytes: number;
  /**
   * The length of a large request is known.
   *
   * @returns false when there is no room for it
   */
  admitLarge(connection: Connection, bytes: number): boolean;
  /** A large request has arrived completely. */
  onLargeComplete(connection: Connection): void;
}

/** What a connection needs from the server around it. */
export interface ConnectionHost<Connection> {
  readonly connections: ConnectionEvents<Connection>;
  readonly turn: Turn;
  readonly pipeline: Pipeline;
  readonly permission: Permission;
  readonly authenticator: Authenticator;
  readonly passwords: SessionPasswords;
  readonly fourLetterWords: FourLetterWords;
  readonly stats: ServerStats;
  readonly outputPool: OutputPool;
  readonly trace: Trace;
  readonly work: WorkMeter;
  readonly frameBytesMax: number;
  /** True while requests are accepted. */
  readonly isServing: boolean;
  /** True in read-only mode. */
  readonly isReadOnly: boolean;
  /** True when a client that connected at that time may still wait for this server to have a role. */
  mayAwaitServing(openedMs: number): boolean;
  /** True once nothing new is started: requests in flight are answered, new input waits for the end. */
  readonly isStopping: boolean;
  /** Maximum requests of one session that may wait for an answer. */
  readonly sessionRequestsMax: number;
  /** True while as much is in progress as `request_throttle_max_requests` allows. */
  readonly isThrottled: boolean;
  /** How long requests may wait while throttled. */
  readonly requestWaits: WaitLimits;
  /** Reports a request that is refused because it has waited too long. */
  refuseLateRequest(waitedMs: number): void;
  /** Reports a connection that is closed because there is no room for its request. */
  refuseLargeRequest(reason: string): void;
  /** True while more is in progress than `globalOutstandingLimit`. */
  readonly isOverloaded: boolean;
  aclOf(aclId: number): readonly Acl[];
  /** A view of a znode's data, valid until the next change; null when the znode does not exist. */
  dataOf(path: string): Uint8Array | null;
  decideConnect(request: ConnectRequest): ConnectDecision;
}

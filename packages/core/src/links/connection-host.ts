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

/** What a connection tells of itself to the one that keeps all of them (`ClientConnections`). */
export interface ConnectionEvents<Connection> {
  /** Units of work that one connection may have of this turn. */
  readonly turnShare: number;
  /** Units of work that all connections together may have of a turn, before what is long waits for the next one. */
  readonly turnUnits: number;
  /** When what is answered may leave. */
  readonly gate: AnswerGate;
  /** The connection has asked for something: it is silent no more, or about to close. */
  onAsked(connection: Connection): void;
  /** The connection reads on at `resumeReading`. */
  onAwaitingServing(connection: Connection): void;
  /** The connection has output; `flush` is called at the end of the turn, or before. */
  onOutput(connection: Connection): void;
  /** The connection has events to send; `flushEvents` is called at the end of this turn or of one of the next. */
  onEvents(connection: Connection): void;
  /** A connection has read what came: this is a moment at which output may leave. */
  onRead(): void;
  /** The connection has stopped reading until the server has less to do; `resumeReading` is called then. */
  onHeldBack(connection: Connection): void;
  /** The connection, which is held back, reads on at this moment of the turn's clock at the earliest. */
  onPause(untilMs: number): void;
  /** The connection has had its share of this turn; `onTurn` is called in one of the next. */
  onShareUsed(connection: Connection): void;
  /** The kernel has not taken all that the connection has sent; it holds so many bytes in memory. */
  onUntaken(connection: Connection, bytes: number): void;
  /** It has taken everything since. */
  onTaken(connection: Connection): void;
  onClosed(connection: Connection): void;
  /** Bytes from which a request is large. */
  readonly largeRequestBytes: number;
  /** The length of a large request is known. @returns false when there is no room for it */
  admitLarge(connection: Connection, bytes: number): boolean;
  /** All of a large request has come. */
  onLargeComplete(connection: Connection): void;
}

/** What a connection needs of the server around it. */
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
  /** True while requests are accepted at all. */
  readonly isServing: boolean;
  /** True while reads alone are answered. */
  readonly isReadOnly: boolean;
  /** True when a client that came then may wait for this server to have a role. */
  mayAwaitServing(openedMs: number): boolean;
  /** True once nothing new is begun: what is in flight is answered, what comes waits for the end. */
  readonly isStopping: boolean;
  /** Requests of one session that may wait for an answer. */
  readonly sessionRequestsMax: number;
  /** True while as much is in progress as `request_throttle_max_requests` allows. */
  readonly isThrottled: boolean;
  /** How long requests may wait for that. */
  readonly requestWaits: WaitLimits;
  /** A request is refused because it has waited for so long. */
  refuseLateRequest(waitedMs: number): void;
  /** A connection is closed for a request for which there is no room. */
  refuseLargeRequest(reason: string): void;
  /** True while more is in progress than `globalOutstandingLimit`. */
  readonly isOverloaded: boolean;
  aclOf(aclId: number): readonly Acl[];
  /** A view of the data of a znode, valid until the next change; null when there is none. */
  dataOf(path: string): Uint8Array | null;
  decideConnect(request: ConnectRequest): ConnectDecision;
}

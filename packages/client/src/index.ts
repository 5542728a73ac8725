/**
 * The ZooKeeper client for TypeScript: pipelined, typed, honest about what it knows.
 *
 * @module @meerkat/client
 */
export { type Acl, type ClientInfo, joinPath, nameOf, Perm, parentOf } from '@meerkat/protocol';
export { onAbort } from './abort.ts';
export {
  type AclMaker,
  type AuthCredentials,
  acl,
  CREATOR_ALL,
  digestAuth,
  digestId,
  formatPerms,
  OPEN,
  type Perms,
  parsePerms,
  READ_ONLY,
} from './acl.ts';
export { Client } from './client.ts';
export type { Stall } from './client-session.ts';
export type { Clock } from './clock.ts';
export { bytes, nullableBytes } from './codec/bytes.ts';
export type { Codec, CodecValue } from './codec/codec.ts';
export { DecodeError } from './codec/decode-error.ts';
export { type GzipOptions, gzip } from './codec/gzip.ts';
export { json } from './codec/json.ts';
export { SchemaError, type SchemaIssue, type SchemaResult, type StandardSchema } from './codec/standard-schema.ts';
export { text } from './codec/text.ts';
export { connect } from './connect.ts';
export { type ParsedTarget, parseConnectString } from './connect-string.ts';
export { type CreateProtectedOptions, withoutProtection } from './conveniences/create-protected.ts';
export type { DeleteProgress, DeleteRecursiveOptions } from './conveniences/delete-recursive.ts';
export type { CreateParentsOptions, EnsurePathOptions } from './conveniences/ensure-path.ts';
export type { ExpectedVersionOptions } from './conveniences/idempotent.ts';
export type { Change, UpdateOptions, UpdateOrCreateOptions } from './conveniences/update.ts';
export type { Data } from './data.ts';
export { instrument, type OpenTelemetryApi } from './diagnostics/opentelemetry.ts';
export type { RequestTrace } from './diagnostics/request-trace.ts';
export type { Outcome, RetryClass, ZooKeeperCode } from './error-table.ts';
export {
  AbortedError,
  type AnyZooKeeperError,
  ApiError,
  AuthFailedError,
  BadArgumentsError,
  BadReplyError,
  BadVersionError,
  ClosedError,
  ConnectError,
  ConnectionLossError,
  DataInconsistencyError,
  EphemeralOnLocalSessionError,
  InvalidAclError,
  InvalidCallbackError,
  isZooKeeperError,
  MarshallingError,
  NewConfigNoQuorumError,
  NoAuthError,
  NoChildrenForEphemeralsError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  NotReadOnlyError,
  NoWatcherError,
  OperationTimeoutError,
  QuotaExceededError,
  ReconfigDisabledError,
  ReconfigInProgressError,
  RequestTimeoutError,
  RequestTooLargeError,
  RuntimeInconsistencyError,
  SaslRequiredError,
  SessionExpiredError,
  SessionLostError,
  SessionMovedError,
  SystemError,
  ThrottledError,
  TimeoutError,
  TransactionError,
  UnimplementedError,
  UnknownCodeError,
  UnknownSessionError,
} from './errors.ts';
export type { TicketSourceOptions } from './kerberos/ticket-source.ts';
export type { BackOff } from './machine/dialer.ts';
export type { AttemptFailure, FailedAttempt, HostPort, Random, SaslExchange, Target } from './machine/ports.ts';
export type { AclOfZnode, Children, Created, Znode } from './machine/replies.ts';
export type { SessionIdentity } from './machine/session-ports.ts';
export { Stat, type StatJson } from './machine/stat.ts';
export type { ClientState, StateChange } from './machine/state.ts';
export type { WatchEvent, WatchEventType } from './machine/watch-listener.ts';
export { retryClassOf } from './make-error.ts';
export type { MultiRead, ReadResult, ReadResults, ReadValue } from './multi-read.ts';
export type { Observation, Observed, ObserveOptions } from './observe.ts';
export type {
  CreateOptions,
  ExpectedVersion,
  ReconfigOptions,
  VersionOptions,
  Watched,
  WatchSelection,
  ZnodeMode,
} from './operations.ts';
export type { ConnectOptions } from './options.ts';
export type { About, CallOptions, ReadConsistency, ReadOptions } from './requester.ts';
export { type RetryOptions, type RetryPolicies, type RetryPolicy, retry } from './retry.ts';
export { type DigestMd5Options, digestMd5 } from './sasl/digest-md5.ts';
export { type KerberosOptions, kerberos } from './sasl/kerberos.ts';
export type { SaslMechanism } from './session-host.ts';
export type { SessionInfo } from './session-info.ts';
export { Budget, type Surroundings } from './surroundings.ts';
export type {
  CreatedInTransaction,
  Done,
  Transaction,
  TransactionResult,
} from './transaction.ts';
export {
  makeNodeTransport,
  type NodeTransportOptions,
  type TlsConnectionOptions,
  type TlsOptions,
} from './transport/node-transport.ts';
export type { Transport, TransportEvents, TransportStream } from './transport/transport.ts';
export type { WatchGap, WatchStreamEvent } from './watch-buffer.ts';
export type { GapReason } from './watch-sink.ts';
export type { WatchMode } from './watch-source.ts';
export type { WatchOptions, WatchStream } from './watch-stream.ts';
export type { CreateShape } from './write-requests.ts';
export { ZooKeeperError } from './zookeeper-error.ts';

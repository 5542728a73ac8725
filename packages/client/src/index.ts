export { type Acl, type ClientInfo, Perm } from '@meerkat/protocol';
export { Client } from './client.ts';
export type { Stall } from './client-session.ts';
export type { Clock } from './clock.ts';
export type { Codec } from './codec/codec.ts';
export { connect } from './connect.ts';
export type { Data } from './data.ts';
export * from './errors.ts';
export type { BackOff } from './machine/dialer.ts';
export type { AttemptFailure, FailedAttempt, HostPort, Random, SaslExchange, Target } from './machine/ports.ts';
export type { AclOfZnode, Children, Created, Znode } from './machine/replies.ts';
export type { SessionIdentity } from './machine/session.ts';
export { Stat } from './machine/stat.ts';
export type { ClientState, StateChange } from './machine/state.ts';
export type { WatchEvent, WatchEventType } from './machine/watches.ts';
export type {
  CreateOptions,
  ReconfigOptions,
  SessionInfo,
  VersionOptions,
  Watched,
  WatchSelection,
  ZnodeMode,
} from './operations.ts';
export type { ConnectOptions } from './options.ts';
export type { CallOptions, ReadConsistency, ReadOptions } from './requester.ts';
export { makeNodeTransport, type TlsOptions } from './transport/node-transport.ts';
export type { Transport, TransportEvents, TransportStream } from './transport/transport.ts';

/**
 * A real ZooKeeper-compatible server or ensemble inside your tests, and a proxy that breaks connections on demand.
 *
 * @module @meerkat/testing
 */
export type { CoreOptions, ServerView, Trace, TraceEvent } from '@meerkat/core';
export type { CertificateOptions, ClientAuth, KeyType, Logger, LogLevel, ServerOptions } from '@meerkat/server';
export { ServerError, TextLogger } from '@meerkat/server';
export { findFreePorts } from './free-ports.ts';
export type { CutOptions, CutRule, Direction, ProxiedConnection } from './proxied-connection.ts';
export { type RefuseOptions, TcpProxy, type TcpProxyOptions } from './tcp-proxy.ts';
export { type ClientTls, TestCertificates, type TestCertificatesOptions } from './test-certificates.ts';
export { type EnsembleMember, TestEnsemble, type TestEnsembleOptions, type WaitOptions } from './test-ensemble.ts';
export { type KillOptions, type Storage, TestServer, type TestServerOptions, type TestSession } from './test-server.ts';

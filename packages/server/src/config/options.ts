import { type CoreOptions, DEFAULT_CORE_OPTIONS } from '@meerkat/core';
import type { AuditOptions } from '../audit/audit-log.ts';
import { type AuthOptions, DEFAULT_AUTH_OPTIONS } from '../auth/authenticator.ts';
import type { SessionRules } from '../auth/session-secrets.ts';
import type { AdminOptions, MetricsPortOptions } from '../http/options.ts';
import type { QuorumSaslOptions } from '../sasl/quorum-sasl.ts';
import { DEFAULT_QUORUM_TLS_OPTIONS, DEFAULT_TLS_OPTIONS, type TlsOptions } from '../tls/options.ts';

/** Everything that configuration decides outside the core. */
export interface ServerOptions {
  /** As written; the files are in `version-2` below it. */
  readonly dataDirectory: string;
  readonly dataLogDirectory: string;
  /** Absolute path of the zoo.cfg that changes of the membership are written into; null: they are forgotten at a restart. */
  readonly staticFile: string | null;
  /** False: a missing data directory stops the start (`datadir.autocreate`). */
  readonly createsDirectories: boolean;
  /** 0 = any free port; null = none, and then there is a secure one. */
  readonly clientPort: number | null;
  /** The name or address to listen on; null = every address of the machine. */
  readonly clientHost: string | null;
  /** For clients that speak TLS; 0 = any free port, null = none. */
  readonly secureClientPort: number | null;
  readonly secureClientHost: string | null;
  /** Clients may speak TLS on `clientPort` too. */
  readonly clientPortUnification: boolean;
  /** For clients. */
  readonly tls: TlsOptions;
  /** Other servers are connected to with TLS. */
  readonly sslQuorum: boolean;
  /** Other servers may connect with TLS or without; otherwise as this one connects to them. */
  readonly quorumPortUnification: boolean;
  /** Between servers. */
  readonly quorumTls: TlsOptions;
  /** null: nothing is audited. */
  readonly audit: AuditOptions | null;
  /** From what the passwords of sessions are made; null: by Apache's formula. */
  readonly sessionSecrets: { readonly path: string; readonly rules: SessionRules } | null;
  /** SASL between servers; null: they do not authenticate. */
  readonly quorumSasl: QuorumSaslOptions | null;
  /** Connections that the kernel may hold before they are accepted; −1 = the runtime's default. */
  readonly listenBacklog: number;
  readonly tcpKeepAlive: boolean;
  /** Threads that have the sockets of clients; 0 = the thread of the core has them. */
  readonly clientThreads: number;
  /** Other servers are listened for on every address of the machine instead of the one in the list of members. */
  readonly quorumListensOnAllIps: boolean;
  readonly auth: AuthOptions;
  /** The four-letter words that are answered besides `srvr`; '*' stands for all. */
  readonly fourLetterWordsAllowed: readonly string[];
  /** `readonlymode.enabled`: allows `isro` too. */
  readonly readOnlyModeEnabled: boolean;
  /** Resident memory in bytes beyond which nothing may grow; 0 = unlimited. */
  readonly residentBytesMax: number;
  /** Free bytes of the disks below which nothing may grow; 0 = never. */
  readonly diskFreeBytesMin: number;
  /** Null = no admin port: what embeds a server wants none, and `zoo.cfg` has one unless it says otherwise. */
  readonly admin: AdminOptions | null;
  /** Null = no port for Prometheus. */
  readonly metricsPort: MetricsPortOptions | null;
  /** Whether metrics of the process stand beside ZooKeeper's. */
  readonly showsProcessMetrics: boolean;
}

export const DEFAULT_SERVER_OPTIONS: Omit<ServerOptions, 'dataDirectory' | 'dataLogDirectory'> = {
  staticFile: null,
  createsDirectories: true,
  clientPort: 2181,
  clientHost: null,
  secureClientPort: null,
  secureClientHost: null,
  clientPortUnification: false,
  tls: DEFAULT_TLS_OPTIONS,
  sslQuorum: false,
  quorumPortUnification: false,
  quorumTls: DEFAULT_QUORUM_TLS_OPTIONS,
  audit: null,
  sessionSecrets: null,
  quorumSasl: null,
  listenBacklog: -1,
  tcpKeepAlive: false,
  clientThreads: 0,
  quorumListensOnAllIps: false,
  auth: DEFAULT_AUTH_OPTIONS,
  fourLetterWordsAllowed: [],
  readOnlyModeEnabled: false,
  residentBytesMax: 0,
  diskFreeBytesMin: 64 * 1024 * 1024,
  admin: null,
  metricsPort: null,
  showsProcessMetrics: true,
};

/** A whole configuration: what a zoo.cfg says, or what an embedding program puts together. */
export interface Configuration {
  readonly core: CoreOptions;
  readonly server: ServerOptions;
}

/** A configuration for data in one directory, with ZooKeeper's defaults for the rest. */
export function makeConfiguration(
  dataDirectory: string,
  overrides: { readonly core?: Partial<CoreOptions>; readonly server?: Partial<ServerOptions> } = {},
): Configuration {
  const server: ServerOptions = {
    ...DEFAULT_SERVER_OPTIONS,
    dataDirectory,
    dataLogDirectory: dataDirectory,
    ...overrides.server,
  };
  return {
    server,
    core: {
      ...DEFAULT_CORE_OPTIONS,
      snapshotDirectory: `${server.dataDirectory}/version-2`,
      logDirectory: `${server.dataLogDirectory}/version-2`,
      ...overrides.core,
    },
  };
}

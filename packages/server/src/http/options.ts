import { DEFAULT_TLS_OPTIONS, type TlsOptions } from '../tls/options.ts';

/** Connections of one port that answers by HTTP. */
export const CONNECTIONS_MAX = 64;

/** True of what the system says about a port, such as `EADDRINUSE`; otherwise its stores are what cannot be used. */
export function isSystemFault(reason: string): boolean {
  return /^E[A-Z]+$/.test(reason);
}

/** TLS on a port that answers by HTTP. */
export interface HttpTls {
  readonly options: TlsOptions;
  /** The port takes plain HTTP, too. */
  readonly isUnified: boolean;
}

/** The admin port (`admin.*`). */
export interface AdminOptions {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  /** Where ZooKeeper's commands are. */
  readonly commandUrl: string;
  /** Idle timeout of a connection, in milliseconds. */
  readonly idleTimeoutMs: number;
  /** Minimum interval: milliseconds between restores, the same number of microseconds between snapshots. */
  readonly rateLimitMs: number;
  readonly snapshotEnabled: boolean;
  readonly restoreEnabled: boolean;
  /** Bytes of a snapshot to be restored, unpacked. */
  readonly restoreBytesMax: number;
  /** The address of who asks is the last one of X-Forwarded-For. */
  readonly usesForwardedFor: boolean;
  /** Whether the console is there, at /console/. */
  readonly consoleEnabled: boolean;
  /** Whether it may change znodes. */
  readonly consoleIsWritable: boolean;
  /** What `initial_configuration` shows, without secrets. */
  readonly configurationText: string;
  /** Null: plain HTTP. */
  readonly tls: HttpTls | null;
}

export const DEFAULT_ADMIN_OPTIONS: AdminOptions = {
  host: '127.0.0.1',
  port: 8080,
  commandUrl: '/commands',
  idleTimeoutMs: 30_000,
  rateLimitMs: 300_000,
  snapshotEnabled: true,
  restoreEnabled: true,
  restoreBytesMax: 2 ** 32,
  usesForwardedFor: false,
  consoleEnabled: false,
  consoleIsWritable: false,
  configurationText: '',
  tls: null,
};

/** As Apache's, which by default requests no certificate. */
export const DEFAULT_ADMIN_TLS_OPTIONS: TlsOptions = {
  ...DEFAULT_TLS_OPTIONS,
  prefix: 'admin.ssl',
  clientAuth: 'none',
};

/** Ports of their own for Prometheus (`metricsProvider.*`). */
export interface MetricsPortOptions {
  readonly host: string;
  /** 0 = any free port; null = no port without TLS. */
  readonly port: number | null;
  /** The TLS port; null = none. May be the same port. */
  readonly secure: { readonly port: number; readonly options: TlsOptions } | null;
}

/** Where Apache's port for Prometheus is, on loopback alone. */
export const DEFAULT_METRICS_PORT: { readonly host: string; readonly port: number } = { host: '127.0.0.1', port: 7000 };

export const DEFAULT_METRICS_TLS_OPTIONS: TlsOptions = { ...DEFAULT_TLS_OPTIONS, prefix: 'metricsProvider.ssl' };

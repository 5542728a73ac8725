/** The admin port (`admin.*`). */
export interface AdminOptions {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  /** Where ZooKeeper's commands are. */
  readonly commandUrl: string;
  /** Milliseconds for which a connection may say nothing. */
  readonly idleTimeoutMs: number;
  /** A snapshot may follow another one after as many microseconds, a restore another one after as many milliseconds. */
  readonly rateLimitMs: number;
  readonly snapshotEnabled: boolean;
  readonly restoreEnabled: boolean;
  /** Whether the console is there, at /console/. */
  readonly consoleEnabled: boolean;
  /** Whether it may change znodes. */
  readonly consoleIsWritable: boolean;
  /** What `initial_configuration` shows, without secrets. */
  readonly configurationText: string;
}

export const DEFAULT_ADMIN_OPTIONS: AdminOptions = {
  host: '127.0.0.1',
  port: 8080,
  commandUrl: '/commands',
  idleTimeoutMs: 30_000,
  rateLimitMs: 300_000,
  snapshotEnabled: true,
  restoreEnabled: true,
  consoleEnabled: false,
  consoleIsWritable: false,
  configurationText: '',
};

/** A port of its own for Prometheus (`metricsProvider.*`). */
export interface MetricsPortOptions {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
}

export const DEFAULT_METRICS_PORT: MetricsPortOptions = { host: '127.0.0.1', port: 7000 };

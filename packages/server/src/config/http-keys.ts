import { accepted, type Key, later, security, supported } from './key.ts';
import * as kinds from './kinds.ts';

const port = kinds.integer({ min: 0, max: 65_535 });

const APACHE_METRICS = 'org.apache.zookeeper.metrics.';
/** Apache's classes, and whether each opens a port for Prometheus. */
const PROVIDERS: Readonly<Record<string, boolean>> = {
  [`${APACHE_METRICS}impl.DefaultMetricsProvider`]: false,
  [`${APACHE_METRICS}impl.NullMetricsProvider`]: false,
  [`${APACHE_METRICS}prometheus.PrometheusMetricsProvider`]: true,
};

/** ZooKeeper serves by default unless it finds the word `false`. */
const unlessFalse: kinds.Kind<boolean> = { expected: 'true or false', parse: (text) => text !== 'false' };

const url: kinds.Kind<string> = {
  expected: 'a path such as /commands',
  parse: (text) => (/^\/[\w./-]*[\w-]$/.test(text) ? text : null),
};

/** The keys of the ports that answer by HTTP. */
export const HTTP_KEYS: readonly Key[] = [
  supported('admin.enableServer', unlessFalse, 'true', 'Answer [admin commands](admin.md) by HTTP', (draft, value) => {
    draft.adminEnabled = value;
  }),
  supported(
    'admin.serverAddress',
    kinds.host,
    '127.0.0.1',
    "Where the admin port is open: loopback alone, where Apache's is open to all",
    (draft, value) => {
      draft.admin.host = value;
    },
  ),
  supported('admin.serverPort', port, '8080', 'The admin port. One in use is a warning', (draft, value) => {
    draft.admin.port = value;
  }),
  supported('admin.commandURL', url, '/commands', 'Where the commands are', (draft, value) => {
    draft.admin.commandUrl = value;
  }),
  supported(
    'admin.idleTimeout',
    kinds.integer({ min: 1, unit: 'ms' }),
    '30000',
    'Time that an idle admin connection stays open',
    (draft, value) => {
      draft.admin.idleTimeoutMs = value;
    },
  ),
  supported(
    'admin.rateLimiterIntervalInMS',
    kinds.integer({ min: 0, unit: 'ms' }),
    '300000',
    'Time between two restores by admin command. A thousandth of it is the time between two snapshots: ZooKeeper takes the number for microseconds there',
    (draft, value) => {
      draft.admin.rateLimitMs = value;
    },
  ),
  supported(
    'admin.snapshot.enabled',
    kinds.boolean,
    'true',
    'Offer the admin commands snapshot and archive',
    (draft, value) => {
      draft.admin.snapshotEnabled = value;
    },
  ),
  supported(
    'console.enabled',
    kinds.boolean,
    'false',
    'Show the [console](console.md) on the admin port, at /console/. Ours alone',
    (draft, value) => {
      draft.admin.consoleEnabled = value;
    },
  ),
  supported('console.write', kinds.boolean, 'false', 'Let the console change znodes. Ours alone', (draft, value) => {
    draft.admin.consoleIsWritable = value;
  }),
  supported('admin.restore.enabled', kinds.boolean, 'true', 'Offer the admin command restore', (draft, value) => {
    draft.admin.restoreEnabled = value;
  }),
  accepted('admin.httpVersion', kinds.anything, '11', 'There is HTTP/1.1'),
  security('admin.portUnification', ['false'], 'TLS on the admin port'),
  security('admin.forceHttps', ['false'], 'TLS on the admin port'),
  security('admin.needClientAuth', ['false'], 'TLS on the admin port'),
  supported(
    'metricsProvider.className',
    kinds.oneOf(...Object.keys(PROVIDERS)),
    'org.apache.zookeeper.metrics.impl.DefaultMetricsProvider',
    'With the PrometheusMetricsProvider a port for [Prometheus](metrics.md) is open; mntr and the admin port show metrics in any case',
    (draft, value) => {
      draft.metricsPortEnabled = PROVIDERS[value] === true;
    },
  ),
  supported(
    'metricsProvider.httpHost',
    kinds.host,
    '127.0.0.1',
    "Where the port for Prometheus is open: loopback alone, where Apache's is open to all",
    (draft, value) => {
      draft.metricsPort.host = value;
    },
  ),
  supported('metricsProvider.httpPort', port, '7000', 'The port for Prometheus', (draft, value) => {
    draft.metricsPort.port = value;
  }),
  supported(
    'metricsProvider.exportJvmInfo',
    kinds.boolean,
    'true',
    'Show metrics of the process and of the heap there, too',
    (draft, value) => {
      draft.server.showsProcessMetrics = value;
    },
  ),
  accepted('metricsProvider.numWorkerThreads', kinds.integer({ min: 1 }), '1', 'Nothing is counted by other threads'),
  accepted('metricsProvider.maxQueueSize', kinds.integer({ min: 1 }), '1000000', 'Nothing is counted by other threads'),
  accepted(
    'metricsProvider.workerShutdownTimeoutMs',
    kinds.integer({ min: 0 }),
    '1000',
    'Nothing is counted by other threads',
  ),
  accepted(
    'metricsProvider.prometheusMetricsSummaryRotateIntervalSeconds',
    kinds.integer({ min: 1 }),
    '60',
    'The window of quantiles is eight to ten minutes',
  ),
  security('metricsProvider.httpsPort', ['-1'], 'TLS on the port for Prometheus'),
  security('metricsProvider.ssl.*', [], 'TLS on the port for Prometheus'),
  later('metricsProvider.*', [], 'Settings of other metrics providers'),
];

import { accepted, type Key, later, security, supported } from './key.ts';
import * as kinds from './kinds.ts';
import { contextKeys } from './tls-keys.ts';

const port = kinds.integer({ min: 0, max: 65_535 });
const portOrNone = kinds.integer({ min: -1, max: 65_535 });

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
  supported(
    'admin.portUnification',
    kinds.boolean,
    'false',
    'The admin port speaks [TLS](admin.md#tls) too: the first byte decides',
    (draft, value) => {
      draft.adminPortUnification = value;
    },
  ),
  supported(
    'admin.forceHttps',
    kinds.boolean,
    'false',
    'The admin port speaks TLS alone; counts more than `admin.portUnification`',
    (draft, value) => {
      draft.adminForceHttps = value;
    },
  ),
  supported(
    'admin.needClientAuth',
    kinds.boolean,
    'false',
    'Who speaks TLS with the admin port has to show a certificate',
    (draft, value) => {
      draft.adminTls.clientAuth = value ? 'need' : 'none';
    },
  ),
  ...contextKeys('admin.ssl', (draft) => draft.adminTls),
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
      draft.metricsHost = value;
    },
  ),
  supported(
    'metricsProvider.httpPort',
    portOrNone,
    '7000',
    'The port for Prometheus; −1 is none, as is no such line beside `metricsProvider.httpsPort`',
    (draft, value) => {
      draft.metricsHttpPort = value;
    },
  ),
  supported(
    'metricsProvider.httpsPort',
    portOrNone,
    '-1',
    'The port for Prometheus with TLS; that of `metricsProvider.httpPort` takes both (Apache: from 3.10)',
    (draft, value) => {
      draft.metricsHttpsPort = value;
    },
  ),
  supported(
    'metricsProvider.ssl.need.client.auth',
    kinds.boolean,
    'true',
    'Who speaks TLS there has to show a certificate',
    (draft, value) => {
      draft.metricsNeedsClientAuth = value;
    },
  ),
  supported(
    'metricsProvider.ssl.want.client.auth',
    kinds.boolean,
    'true',
    'Without `need.client.auth`: may show one, which is checked',
    (draft, value) => {
      draft.metricsWantsClientAuth = value;
    },
  ),
  ...contextKeys('metricsProvider.ssl', (draft) => draft.metricsTls),
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
  security('admin.ssl.*', [], 'another setting of TLS on the admin port'),
  security('metricsProvider.ssl.*', [], 'another setting of TLS on the port for Prometheus'),
  later('metricsProvider.*', [], 'Settings of other metrics providers'),
];

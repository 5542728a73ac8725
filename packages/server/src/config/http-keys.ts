import { accepted, type Key, security, supported } from './key.ts';
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
  supported('admin.enableServer', unlessFalse, 'true', 'Open the [admin port](admin.md)', (draft, value) => {
    draft.adminEnabled = value;
  }),
  supported(
    'admin.serverAddress',
    kinds.host,
    '127.0.0.1',
    'Where the admin port listens (Apache: everywhere)',
    (draft, value) => {
      draft.admin.host = value;
    },
  ),
  supported('admin.serverPort', port, '8080', 'The admin port; one in use is a warning', (draft, value) => {
    draft.admin.port = value;
  }),
  supported('admin.commandURL', url, '/commands', 'Path of the admin commands', (draft, value) => {
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
    'Time between two `restore`; a thousandth of it between two `snapshot`, as Apache',
    (draft, value) => {
      draft.admin.rateLimitMs = value;
    },
  ),
  supported('admin.snapshot.enabled', kinds.boolean, 'true', 'Offer `snapshot` and `archive`', (draft, value) => {
    draft.admin.snapshotEnabled = value;
  }),
  supported(
    'IPAuthenticationProvider.usexforwardedfor',
    kinds.boolean,
    'false',
    'The address of an admin caller is the last one of X-Forwarded-For: set it behind a proxy only',
    (draft, value) => {
      draft.admin.usesForwardedFor = value;
    },
  ),
  supported(
    'console.enabled',
    kinds.boolean,
    'false',
    '[Console](console.md) at /console/ of the admin port (Meerkat)',
    (draft, value) => {
      draft.admin.consoleEnabled = value;
    },
  ),
  supported('console.write', kinds.boolean, 'false', 'Let the console change znodes (Meerkat)', (draft, value) => {
    draft.admin.consoleIsWritable = value;
  }),
  supported('admin.restore.enabled', kinds.boolean, 'true', 'Offer `restore`', (draft, value) => {
    draft.admin.restoreEnabled = value;
  }),
  supported(
    'admin.restore.maxBytes',
    kinds.integer({ min: 1, max: 2 ** 50, unit: 'bytes' }),
    '4294967296',
    'Longest snapshot that `restore` takes, unpacked (Meerkat)',
    (draft, value) => {
      draft.admin.restoreBytesMax = value;
    },
  ),
  accepted('admin.httpVersion', kinds.anything, '11', 'HTTP/1.1 is spoken'),
  supported(
    'admin.portUnification',
    kinds.boolean,
    'false',
    'The admin port takes [TLS](admin.md#tls) too',
    (draft, value) => {
      draft.adminPortUnification = value;
    },
  ),
  supported(
    'admin.forceHttps',
    kinds.boolean,
    'false',
    'The admin port takes TLS only; counts more',
    (draft, value) => {
      draft.adminForceHttps = value;
    },
  ),
  supported(
    'admin.needClientAuth',
    kinds.boolean,
    'false',
    'TLS on the admin port needs a certificate',
    (draft, value) => {
      draft.adminTls.clientAuth = value ? 'need' : 'none';
    },
  ),
  ...contextKeys('admin.ssl', (draft) => draft.adminTls),
  supported(
    'metricsProvider.className',
    kinds.oneOf(...Object.keys(PROVIDERS)),
    'org.apache.zookeeper.metrics.impl.DefaultMetricsProvider',
    '`org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider` opens a port for [Prometheus](metrics.md); `mntr` and the admin port show metrics anyway',
    (draft, value) => {
      draft.metricsPortEnabled = PROVIDERS[value] === true;
    },
  ),
  supported(
    'metricsProvider.httpHost',
    kinds.host,
    '127.0.0.1',
    'Where the port for Prometheus listens (Apache: everywhere)',
    (draft, value) => {
      draft.metricsHost = value;
    },
  ),
  supported(
    'metricsProvider.httpPort',
    portOrNone,
    '7000',
    'Port for Prometheus; −1 = none, as without this line beside `httpsPort`',
    (draft, value) => {
      draft.metricsHttpPort = value;
    },
  ),
  supported(
    'metricsProvider.httpsPort',
    portOrNone,
    '-1',
    'Port for Prometheus with TLS; equal to `httpPort`: both on one (Apache: from 3.10)',
    (draft, value) => {
      draft.metricsHttpsPort = value;
    },
  ),
  supported(
    'metricsProvider.ssl.need.client.auth',
    kinds.boolean,
    'true',
    'TLS on the port for Prometheus needs a certificate',
    (draft, value) => {
      draft.metricsNeedsClientAuth = value;
    },
  ),
  supported(
    'metricsProvider.ssl.want.client.auth',
    kinds.boolean,
    'true',
    'Without `need.client.auth`: one that is shown is checked',
    (draft, value) => {
      draft.metricsWantsClientAuth = value;
    },
  ),
  ...contextKeys('metricsProvider.ssl', (draft) => draft.metricsTls),
  supported(
    'metricsProvider.exportJvmInfo',
    kinds.boolean,
    'true',
    'Show metrics of process and heap',
    (draft, value) => {
      draft.server.showsProcessMetrics = value;
    },
  ),
  accepted('metricsProvider.numWorkerThreads', kinds.integer({ min: 1 }), '1', "Apache's threads, queues and caches"),
  accepted('metricsProvider.maxQueueSize', kinds.integer({ min: 1 }), '1000000', "Apache's threads, queues and caches"),
  accepted(
    'metricsProvider.workerShutdownTimeoutMs',
    kinds.integer({ min: 0 }),
    '1000',
    "Apache's threads, queues and caches",
  ),
  accepted(
    'metricsProvider.prometheusMetricsSummaryRotateIntervalSeconds',
    kinds.integer({ min: 1 }),
    '60',
    'Quantiles are of eight to ten minutes',
  ),
  security('admin.ssl.*', [], 'another setting of TLS on the admin port'),
  security('metricsProvider.ssl.*', [], 'another setting of TLS on the port for Prometheus'),
];

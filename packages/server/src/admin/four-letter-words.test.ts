import { readFileSync } from 'node:fs';
import {
  type ConnectionView,
  DEFAULT_ENSEMBLE_OPTIONS,
  FiredWatches,
  type FourLetterWords,
  Meters,
  ServerStats,
  type ServerView,
} from '@meerkat/core';
import { type Membership, parseMembership } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { makeConfiguration } from '../config/options.ts';
import { Exposition } from '../metrics/exposition.ts';
import { LoopDelay } from '../metrics/loop-delay.ts';
import { Metrics } from '../metrics/metrics.ts';
import { MonitorBaseline } from '../metrics/monitor-baseline.ts';
import { FULL_VERSION, MEERKAT_VERSION } from '../version.ts';
import { makeFourLetterWords } from './four-letter-words.ts';
import { formatDate, formatDouble, formatRemote } from './java-text.ts';
import { TraceMask } from './trace-mask.ts';

/** The answers of Apache's servers, with our version where their own stood. */
const RECORDED: ReadonlyMap<string, string> = new Map(
  ['./apache-3.8.0.txt', './apache-3.8.0-ensemble.txt']
    .flatMap((file) => readFileSync(new URL(file, import.meta.url), 'utf8').split('<end>\n'))
    .flatMap((part) => {
      const [, name, text] = /(?:^|\n)=== (.*)\n([\s\S]*)$/.exec(part) ?? [];
      return name === undefined || text === undefined ? [] : [[name, text.replace('<version>', FULL_VERSION)] as const];
    }),
);

function recorded(name: string): string {
  const text = RECORDED.get(name);
  if (text === undefined) throw new Error(`there is no recording "${name}"`);
  return text;
}

const CLOCK = { monotonicMs: () => 0, wallMs: () => 0 };

/** Names that 3.8.0, which was recorded, does not have. */
const SINCE_3_9 = [
  ...['snapshot_error_count', 'snapshot_rate_limited_count', 'restore_error_count', 'restore_rate_limited_count'],
  ...['avg', 'min', 'max', 'cnt', 'sum'].map((part) => `${part}_restore_time`),
].map((name) => `zk_${name}`);

/** What has a label each, of which a fresh server has none. */
const SETS = `quota_count_limit_per_namespace quota_bytes_limit_per_namespace quota_count_usage_per_namespace
  quota_bytes_usage_per_namespace quota_exceeded_error_per_namespace read_per_namespace write_per_namespace
  learner_handler_qp_size learner_handler_qp_time_ms ack_latency`.split(/\s+/);

const OF_3_4 =
  `version server_state avg_latency max_latency min_latency packets_received packets_sent num_alive_connections
  outstanding_requests znode_count watch_count ephemerals_count approximate_data_size open_file_descriptor_count
  max_file_descriptor_count`.split(/\s+/);

const ANN = 0x100001b82e40000n;
const BEN = 0x100001b82e40001n;

function connection(port: number, more: Partial<ConnectionView> = {}): ConnectionView {
  return {
    remote: { ip: Uint8Array.of(127, 0, 0, 1), host: '127.0.0.1', port },
    isSecure: false,
    sessionId: 0n,
    sessionTimeoutMs: 0,
    isReading: true,
    isWriting: false,
    outstandingRequests: 0,
    packetsReceived: 0,
    packetsSent: 0,
    lastOperation: null,
    establishedWallMs: 0,
    lastCxid: 0,
    lastZxid: 0,
    lastResponseMs: 0,
    lastLatencyMs: 0,
    minLatencyMs: 0,
    averageLatencyMs: 0,
    maxLatencyMs: 0,
    ...more,
  };
}

function view(more: Partial<ServerView> = {}): ServerView {
  return {
    refusals: () => [],
    isServing: true,
    isReadOnly: false,
    serverId: 1,
    lastZxid: 0,
    znodeCount: 5,
    ephemeralCount: 0,
    approximateDataSize: 44,
    outstandingRequests: 0,
    sessionCount: 0,
    localSessionCount: null,
    localSessionBuckets: () => [],
    stats: new ServerStats(),
    meters: new Meters(CLOCK),
    watches: {
      summary: () => ({ connections: 0, paths: 0, watches: 0 }),
      bySession: () => new Map(),
      byPath: () => new Map(),
      fired: new FiredWatches(),
      count: 0,
    },
    connectionCount: 0,
    connections: () => [],
    sessions: () => [],
    sessionIds: () => [],
    timeoutMsOf: () => null,
    sessionBuckets: () => [],
    connectionBuckets: () => [],
    quotas: () => [],
    sessionsWithEphemerals: () => [],
    ephemeralsOf: () => [],
    ephemeralCountOf: () => 0,
    digests: () => [],
    database: () => null,
    resetConnectionStats() {},
    ensemble: null,
    ...more,
  };
}

/** Its answers in one piece. */
type Words = Omit<FourLetterWords, 'answer'> & { answer(word: string, argument: bigint | null): string };

function words(serverView: ServerView, allowed: readonly string[] = ['*']): Words {
  const configuration = makeConfiguration('/data', {
    core: { tickTimeMs: 2000, sessionTimeoutMinMs: 4000, sessionTimeoutMaxMs: 40_000 },
    server: { fourLetterWordsAllowed: allowed },
  });
  const parts = {
    configuration,
    metrics: new Metrics(CLOCK, 1000),
    baseline: new MonitorBaseline(),
    traceMask: new TraceMask(),
  };
  return inOnePiece(makeFourLetterWords({ ...parts, clientPort: () => 39567, ...NO_TLS })(serverView));
}

const NO_TLS = {
  secureClientPort: () => -1,
  tls: () => ({
    handshakes: 0,
    clientCertificateDays: null,
    quorumCertificateDays: null,
    adminCertificateDays: null,
    plainAdminConnections: 0,
    httpHandshakesFailed: 0,
    httpConnectionsExceeded: 0,
  }),
};

function inOnePiece(made: FourLetterWords): Words {
  return {
    isWord: (word) => made.isWord(word),
    hasArgument: (word) => made.hasArgument(word),
    answer: (word, argument) => [...made.answer(word, argument)].join(''),
  };
}

/** The server of the recording on its fresh directory: only the connection that asks. */
function freshView(port: number, stats: Partial<ServerStats>): ServerView {
  const asking = connection(port, { isReading: false, packetsReceived: 1 });
  return view({
    stats: Object.assign(new ServerStats(), stats),
    connectionCount: 1,
    connections: () => [asking],
    connectionBuckets: () => [{ expiresAtWallMs: Date.UTC(2026, 10, 21, 9, 34, 6), members: [asking] }],
  });
}

/** The server of the recording with its two sessions. */
function busyView(stats: Partial<ServerStats>, ...connections: readonly ConnectionView[]): ServerView {
  return view({
    stats: Object.assign(new ServerStats(), stats),
    lastZxid: 6,
    znodeCount: 9,
    connectionCount: connections.length,
    connections: () => connections,
    watches: {
      summary: () => ({ connections: 2, paths: 2, watches: 3 }),
      bySession: () =>
        new Map([
          [ANN, ['/a', '/zz']],
          [BEN, ['/a']],
        ]),
      byPath: () =>
        new Map([
          ['/a', [ANN, BEN]],
          ['/zz', [ANN]],
        ]),
      fired: new FiredWatches(),
      count: 4,
    },
  });
}

const latencies = { latencyMin: 0, latencyMax: 6, latencyTotal: 16, latencyCount: 11 };
const ann = connection(60494, {
  packetsReceived: 7,
  packetsSent: 7,
  sessionId: ANN,
  lastOperation: 'PING',
  establishedWallMs: 1795253630765,
  sessionTimeoutMs: 10_000,
  lastCxid: 5,
  lastZxid: 6,
  lastResponseMs: 1854775.7,
  averageLatencyMs: 2,
  maxLatencyMs: 6,
});
const ben = connection(60510, {
  packetsReceived: 4,
  packetsSent: 4,
  sessionId: BEN,
  lastOperation: 'GETC',
  establishedWallMs: 1795253630775,
  sessionTimeoutMs: 10_000,
  lastCxid: 3,
  lastZxid: 6,
  lastResponseMs: 1854774,
  maxLatencyMs: 1,
});
const silent = connection(60514);
const asking = (port: number): ConnectionView => connection(port, { isReading: false, packetsReceived: 1 });

describe("the text is that of Apache's server", () => {
  test.each([
    ['srvr', freshView(1, { packetsReceived: 2, packetsSent: 1 })],
    ['stat', freshView(60366, { packetsReceived: 3, packetsSent: 2 })],
    ['cons', freshView(60388, {})],
    ['ruok', view()],
    ['wchs', view()],
    ['wchc', view()],
    ['wchp', view()],
    ['isro', view()],
    ['gtmk', view()],
    ['hash', view()],
  ] as const)('%s of a fresh server', (word, serverView) => {
    expect(words(serverView).answer(word, null)).toBe(recorded(`fresh ${word}`));
  });

  test.each([
    ['srvr', busyView({ packetsReceived: 27, packetsSent: 26, ...latencies }, ann, ben, silent, asking(1))],
    ['stat', busyView({ packetsReceived: 28, packetsSent: 27, ...latencies }, ann, ben, silent, asking(60528))],
    ['cons', busyView({}, ann, asking(60544), ben, silent)],
    ['wchs', busyView({})],
    ['wchc', busyView({})],
    ['wchp', busyView({})],
    ['crst', busyView({})],
    ['srst', busyView({})],
  ] as const)('%s with two sessions', (word, serverView) => {
    expect(words(serverView).answer(word, null)).toBe(recorded(`busy ${word}`));
  });

  test('cons after crst', () => {
    const reset = {
      packetsReceived: 0,
      packetsSent: 0,
      lastOperation: 'NA',
      lastCxid: -1,
      lastZxid: -1,
      lastResponseMs: 0,
      minLatencyMs: Number.MAX_SAFE_INTEGER,
      averageLatencyMs: 0,
      maxLatencyMs: 0,
    };
    const serverView = busyView({}, asking(60680), { ...ann, ...reset }, { ...ben, ...reset }, silent);
    expect(words(serverView).answer('cons', null)).toBe(recorded('busy cons-after-crst'));
  });

  test('hash with three digests', () => {
    const digests = [
      { zxid: 0x80, digest: 14116339405n },
      { zxid: 0x100, digest: 12624885375n },
      { zxid: 0x180, digest: 13196171975n },
    ];
    expect(words(view({ digests: () => digests })).answer('hash', null)).toBe(recorded('busy hash'));
  });

  test('stmk keeps a mask for gtmk, negative ones included', () => {
    const server = words(view());
    expect(server.answer('stmk', 18n)).toBe(recorded('busy stmk'));
    expect(server.answer('gtmk', null)).toBe(recorded('busy gtmk'));
    expect(server.answer('stmk', -1n)).toBe(recorded('busy stmk-neg'));
  });

  test('conf, sizes aside', () => {
    const withoutSizes = (text: string): string => text.replaceAll(/Size=\d+/g, 'Size=');
    expect(withoutSizes(words(view()).answer('conf', null))).toBe(withoutSizes(recorded('fresh conf')));
  });

  test('dirs, sizes aside', () => {
    expect(words(view()).answer('dirs', null)).toBe(recorded('fresh dirs').replaceAll('457', '0'));
  });

  test('dump, of a fresh server and with sessions, ephemerals and connections', () => {
    // The recording was made in UTC; the time zone of this machine decides what a date looks like here.
    const localised = (text: string): string =>
      text.replaceAll(/expire at \w+ \w+ \d+ 09:34:(\d\d) UTC 2026/g, (_all, second: string) => {
        return `expire at ${formatDate(Date.UTC(2026, 10, 21, 9, 34, Number(second)))}`;
      });
    expect(words(freshView(60390, {})).answer('dump', null)).toBe(localised(recorded('fresh dump')));
    const serverView = view({
      sessionBuckets: () => [{ expiresAtWallMs: Date.UTC(2026, 10, 21, 9, 34, 2), members: [ANN, BEN] }],
      connectionBuckets: () => [
        { expiresAtWallMs: Date.UTC(2026, 10, 21, 9, 34, 6), members: [ann, asking(60546), ben, silent] },
      ],
      sessionsWithEphemerals: () => [BEN, ANN],
      ephemeralsOf: (id) => (id === BEN ? ['/b'] : ['/a/e2', '/a/e1']),
    });
    expect(words(serverView).answer('dump', null)).toBe(localised(recorded('busy dump')));
  });

  test('envi has the same keys in the same order', () => {
    const [title, ...lines] = words(view()).answer('envi', null).split('\n');
    expect(title).toBe('Environment:');
    const keys = ['Environment:', ...lines.slice(0, -1).map((line) => line.slice(0, line.indexOf('=')))];
    expect(keys).toEqual(recorded('fresh envi-keys').split('\n'));
  });

  test('mntr has every name of a server on its own, those that came with 3.9 too, and no other', () => {
    const lines = words(view()).answer('mntr', null).split('\n').slice(0, -1);
    expect(lines[0]).toBe(`zk_version\t${FULL_VERSION}`);
    expect(lines[1]).toBe('zk_server_state\tstandalone');
    for (const line of lines) expect(line).toMatch(/^zk_\w+\t\S+/);
    const names = lines.map((line) => line.slice(0, line.indexOf('\t')));
    expect(names.toSorted()).toEqual([...recorded('fresh mntr-keys').trimEnd().split('\n'), ...SINCE_3_9].toSorted());
  });

  test('the page for Prometheus has every name of mntr, as a summary what mntr sums up, and no other of ZooKeeper', () => {
    const source = { view: view(), metrics: new Metrics(CLOCK, 1000), tls: NO_TLS.tls };
    const page = [...new Exposition(source, new LoopDelay(), false).format(0)].join('');
    const types = new Map([...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
    const keys = [...recorded('fresh mntr-keys').trimEnd().split('\n'), ...SINCE_3_9].map((key) => key.slice(3));
    const summaries = keys.flatMap((key) => (key.startsWith('cnt_') ? [key.slice(4)] : []));
    const others = keys.filter((key) => !summaries.some((name) => key.endsWith(`_${name}`)));
    for (const name of summaries) expect(types.get(name), name).toBe('summary');
    for (const name of others) {
      if (!/^(version|server_state)$/.test(name)) expect(types.get(name), name).toMatch(/^(gauge|counter)$/);
    }
    const known = new Set([...summaries, ...others]);
    const more = [...types.keys()].filter((name = '') => !known.has(name) && !name.startsWith('meerkat_'));
    expect(more.toSorted()).toEqual(SETS.toSorted());
  });

  test('mntr tells what collectors of the time of 3.4 look for in its first 4096 bytes', () => {
    const beginning = words(view()).answer('mntr', null).slice(0, 4096);
    for (const name of OF_3_4) expect(beginning).toContain(`zk_${name}\t`);
  });

  test('srst sets back what mntr counts', () => {
    const server = view();
    const answers = words(server);
    server.meters.reads.add(4000);
    server.meters.sentBytes = 10;
    expect(answers.answer('mntr', null)).toContain('zk_max_readlatency\t4\n');
    answers.answer('srst', null);
    expect(answers.answer('mntr', null)).toMatch(
      /zk_response_bytes\t0\n[\s\S]*zk_max_readlatency\t0\nzk_cnt_readlatency\t0\n/,
    );
    server.meters.reads.add(2000);
    const line = 'zk_avg_readlatency\t2.0\nzk_min_readlatency\t2\nzk_max_readlatency\t2\nzk_cnt_readlatency\t1\n';
    expect(answers.answer('mntr', null)).toContain(line);
    expect(server.meters.reads.count).toBe(2);
  });
});

describe("the text is that of Apache's server in an ensemble", () => {
  const membership = parseMembership(
    `server.1=127.0.0.1:33999:39111:participant
server.2=127.0.0.1:38609:43401:participant
server.3=127.0.0.1:45837:33347:observer
version=0`,
  ) as Membership;
  const sizes = { last: 89, min: 48, max: 89, reset() {} };
  const learners = [
    { serverId: 1, isObserver: false, isVoter: true, isSynchronized: true },
    { serverId: 3, isObserver: true, isVoter: false, isSynchronized: true },
  ];
  const roleOf = { leader: 'leading', follower: 'following', observer: 'observing' } as const;
  type Mode = keyof typeof roleOf;

  /** A server of the recorded ensemble, whose leader is server 2. */
  function member(mode: Mode, more: Partial<ServerView> = {}): Words {
    const serverId = { follower: 1, leader: 2, observer: 3 }[mode];
    const configuration = makeConfiguration('/data', {
      core: {
        serverId,
        tickTimeMs: 500,
        sessionTimeoutMinMs: 1000,
        connectionsPerHostMax: 0,
        ensemble: { ...DEFAULT_ENSEMBLE_OPTIONS, membership, initLimit: 20, syncLimit: 10 },
      },
      server: { fourLetterWordsAllowed: ['*'] },
    });
    const parts = {
      configuration,
      metrics: new Metrics(CLOCK, 1000),
      baseline: new MonitorBaseline(),
      traceMask: new TraceMask(),
    };
    const isLeader = mode === 'leader';
    const ensemble = {
      membership,
      hosts: () => [],
      role: roleOf[mode],
      leader: 2,
      connectedServers: [],
      observerMaster: mode === 'observer' ? 2 : null,
      feedsObservers: false,
      learners: () => (isLeader ? learners : []),
      pendingSyncs: 0,
      proposalSizes: isLeader ? sizes : null,
    };
    const serverView = view({ serverId, lastZxid: 0x100000002, znodeCount: 6, ensemble, ...more });
    return inOnePiece(makeFourLetterWords({ ...parts, clientPort: () => 38731, ...NO_TLS })(serverView));
  }

  test.each(['leader', 'observer'] as const)('srvr of the %s', (mode) => {
    const stats = Object.assign(new ServerStats(), { packetsReceived: 2, packetsSent: 1 });
    const answer = member(mode, { stats, connectionCount: 1 }).answer('srvr', null);
    expect(answer).toBe(recorded(`${mode} srvr`));
  });

  test.each(['follower', 'observer'] as const)('conf of the %s, sizes aside', (mode) => {
    const withoutSizes = (text: string): string => text.replaceAll(/Size=\d+/g, 'Size=');
    expect(withoutSizes(member(mode).answer('conf', null))).toBe(withoutSizes(recorded(`${mode} conf`)));
  });

  test('dump of the follower, which does not know when sessions expire', () => {
    const id = 0x100018567070000n;
    const answer = member('follower', {
      sessionIds: () => [id],
      timeoutMsOf: () => 10_000,
      sessionsWithEphemerals: () => [id],
      ephemeralsOf: () => ['/eph'],
    }).answer('dump', null);
    expect(answer).toBe(recorded('follower dump'));
  });

  test.each(['leader', 'follower', 'observer'] as const)('what mntr of the %s says of its part', (mode) => {
    const lines = member(mode).answer('mntr', null).split('\n');
    const expected = recorded(`${mode} mntr`).trimEnd().split('\n');
    expect(lines.slice(1, 3)).toEqual(expected.slice(0, 2));
    for (const line of expected) expect(lines).toContain(line);
    expect(lines.some((line) => line.startsWith('zk_leader_uptime\t'))).toBe(mode === 'leader');
  });
});

describe('the allow-list', () => {
  test('only srvr is answered unless more are allowed', () => {
    const server = words(view(), []);
    expect(server.answer('srvr', null)).toContain('Mode: standalone');
    expect(server.answer('ruok', null)).toBe('ruok is not executed because it is not in the whitelist.\n');
    expect(words(view(), ['ruok']).answer('ruok', null)).toBe('imok');
  });

  test('comes before the bytes behind stmk', () => {
    expect(words(view(), ['stmk']).hasArgument('stmk')).toBe(true);
    expect(words(view(), ['stmk']).hasArgument('mntr')).toBe(false);
    expect(words(view(), []).hasArgument('stmk')).toBe(false);
  });

  test('the words of ZooKeeper are words whether allowed or not, others are not', () => {
    const server = words(view(), []);
    expect(server.isWord('mntr')).toBe(true);
    expect(server.isWord('MNTR')).toBe(false);
    expect(server.isWord('\u0000\u0000\u0000,')).toBe(false);
    expect(server.isWord('\u00ff\u00f4\u00ff\u00fd')).toBe(true);
    expect(server.answer('\u00ff\u00f4\u00ff\u00fd', null)).toContain('telnet close is not executed');
  });
});

test('while the server is not serving, only what needs no database is answered', () => {
  const server = words(view({ isServing: false }));
  const text = 'This ZooKeeper instance is not currently serving requests';
  for (const word of ['conf', 'cons', 'crst', 'dump', 'srst', 'stat', 'srvr', 'wchs', 'wchc', 'wchp', 'mntr', 'dirs']) {
    expect(server.answer(word, null), word).toBe(`${text}\n`);
  }
  expect(server.answer('hash', null)).toBe(text);
  expect(server.answer('isro', null)).toBe('null');
  expect(server.answer('ruok', null)).toBe('imok');
});

describe("Java's texts", () => {
  test('doubles have a point, and an exponent when they are small or large', () => {
    expect([0, 1, 1.45454, 0.0001, 0.00005, 1e7, 12345678.5, 2.5].map(formatDouble)).toEqual([
      '0.0',
      '1.0',
      '1.4545',
      '1.0E-4',
      '1.0E-4',
      '1.0E7',
      '1.23456785E7',
      '2.5',
    ]);
  });

  test('an address of version 6 stands in brackets, all its groups written', () => {
    const ip = new Uint8Array(16);
    ip[15] = 1;
    expect(formatRemote({ ip, host: '::1', port: 51234 })).toBe('/[0:0:0:0:0:0:0:1]:51234');
  });
});

test('the version is that of the package', () => {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  expect(MEERKAT_VERSION).toBe(manifest.version);
  expect(FULL_VERSION).toMatch(/^3\.9\.5-meerkat-\d+\.\d+\.\d+, built on \d{4}-\d\d-\d\d \d\d:\d\d UTC$/);
});

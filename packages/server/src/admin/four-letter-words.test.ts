import { type ConnectionView, FiredWatches, ServerStats, type ServerView } from '@meerkat/core';
import { describe, expect, test } from 'vitest';
import { formatDate } from './java-text.ts';
import { words } from './testing/asked-words.ts';
import { recorded } from './testing/recorded-answers.ts';
import { connection, view } from './testing/server-views.ts';

const ANN = 0x100001b82e40000n;
const BEN = 0x100001b82e40001n;

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

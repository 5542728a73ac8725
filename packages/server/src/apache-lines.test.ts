import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { PeerAddress, TraceEvent } from '@meerkat/core';
import { expect, test } from 'vitest';
import { ApacheLogger, readLoggerOptions } from './logger.ts';
import { TraceLog } from './trace-log.ts';

const remote: PeerAddress = { ip: Uint8Array.of(10, 0, 0, 1), host: '10.0.0.1', port: 4000 };
const clock = { monotonicMs: () => 0, wallMs: () => 0 };

/** What operators search for, and what has to happen for it. */
const SEARCHED: readonly (readonly [fragment: string, ...events: TraceEvent[]])[] = [
  ['Expiring session 0x1b, timeout of 4000ms exceeded', { kind: 'session-expired', sessionId: 0x1bn, timeoutMs: 4000 }],
  [
    'Too many connections from /10.0.0.1 - max is 60',
    {
      kind: 'connection-refused',
      remote,
      reason: 'its address has 60 connections, as many as maxClientCnxns allows',
    },
  ],
  [
    'Len error 2000000',
    {
      kind: 'connection-closed',
      remote,
      sessionId: 0n,
      reason: 'it announced a frame of 2000000 bytes, and jute.maxbuffer allows 1048575',
    },
  ],
  [
    'Refusing session(0x7) request for client /10.0.0.1:4000 as it has seen zxid 0x2a our last zxid is 0x1 client must try another server',
    { kind: 'session-refused', remote, sessionId: 7n, reason: 'it has seen zxid 0x2a and this server is at 0x1' },
  ],
  ['Snapshotting: 0x1f to /d/snapshot.1f', { kind: 'snapshot-started', file: '/d/snapshot.1f' }],
  ['Snapshot taken in 12 ms', { kind: 'snapshot-written', file: '/d/snapshot.1f', bytes: 1, ms: 12 }],
  ['Creating new log file: log.20', { kind: 'log-file-started', file: '/d/log.20' }],
  ['Purge task started.', { kind: 'purge-started' }],
  ['Purge task completed.', { kind: 'purge-ended' }],
  ['Removing file: /d/log.1', { kind: 'files-purged', files: ['/d/log.1'] }],
  ['Quota exceeded: /app', { kind: 'quota-exceeded', path: '/app', limit: 'count 3', isHard: true }],
  ['LOOKING', { kind: 'role-changed', role: 'looking', leader: null, reason: 'x' }],
  [
    'LEADING - LEADER ELECTION TOOK - 0 MS',
    { kind: 'role-changed', role: 'looking', leader: null, reason: 'x' },
    { kind: 'role-changed', role: 'leading', leader: 1, reason: 'x' },
  ],
  [
    'Have quorum of supporters, sids: [[1, 3]]; starting up and setting last processed zxid: 0x200000000',
    { kind: 'role-changed', role: 'leading', leader: 1, reason: 'x' },
    { kind: 'learner-synchronized', serverId: 3, zxid: 1 },
    { kind: 'epoch-established', epoch: 2, zxid: 0x2_0000_0000 },
  ],
  [
    'Shutdown called. For the reason no quorum follows',
    { kind: 'role-changed', role: 'leading', leader: 1, reason: 'x' },
    { kind: 'role-changed', role: 'looking', leader: null, reason: 'no quorum follows' },
  ],
  [
    'Exception when following the leader: it has gone',
    { kind: 'role-changed', role: 'following', leader: 2, reason: 'x' },
    { kind: 'role-changed', role: 'looking', leader: null, reason: 'it has gone' },
  ],
  [
    'Peer state changed: following - broadcast',
    { kind: 'role-changed', role: 'following', leader: 1, reason: 'x' },
    { kind: 'epoch-established', epoch: 1, zxid: 2 },
  ],
  [
    'Sending DIFF zxid=0x2a for peer sid: 3',
    { kind: 'learner-synchronizing', serverId: 3, mode: 'diff', from: 1, zxid: 42 },
  ],
  [
    'Sending snapshot last zxid of peer is 0x1, zxid of leader is 0x2a',
    { kind: 'learner-synchronizing', serverId: 3, mode: 'snap', from: 1, zxid: 42 },
  ],
  ['Getting a diff from the leader 0x2a', { kind: 'catching-up', leader: 3, mode: 'diff', zxid: 42 }],
  ['Getting a snapshot from leader 0x2a', { kind: 'catching-up', leader: 3, mode: 'snap', zxid: 42 }],
  ['Truncating log to get in sync with the leader 0x2a', { kind: 'catching-up', leader: 3, mode: 'trunc', zxid: 42 }],
  ['Connection broken for id 3, my id = 1', { kind: 'peer-lost', serverId: 3, reason: 'closed by peer' }],
  ['New election. My id = 1, proposed zxid=0x2a', { kind: 'election-started', zxid: 42 }],
  [
    'Closing connection to peer due to transaction timeout.',
    { kind: 'learner-closed', serverId: 3, reason: 'server 3 has not acknowledged 200000001 within syncLimit' },
  ],
  ['******* GOODBYE server 3 ********', { kind: 'learner-closed', serverId: 3, reason: 'x' }],
  [
    'fsync-ing the write ahead log in SyncThread:0 took 1500ms',
    { kind: 'warning', message: 'writing and syncing 10 bytes of /d/log.1 took 1500 ms: clients wait that long' },
  ],
  [
    'Cannot open channel to 3 at election address 10.0.0.3:3888',
    { kind: 'warning', message: 'looks for a leader: …; without a connection: 3 (nothing listens at 10.0.0.3:3888)' },
  ],
];

/** Shown by other tests. */
const ELSEWHERE = ['Established session 0x', 'binding to port', 'Started AdminServer on address', 'Processing'];
const OF_THE_END = ['Unable to load database on disk', 'Severe unrecoverable error', 'Exiting JVM with code 3'];

test.each(SEARCHED.map(([fragment, ...events]) => ({ fragment, events })))('$fragment', ({ fragment, events }) => {
  const lines: string[] = [];
  const log = new TraceLog(new ApacheLogger('info', 1, (line) => lines.push(line)), clock);
  for (const event of events) log.emit(event);
  // The layout that log pipelines of Apache's servers take apart.
  const texts = lines.map((line) => {
    const found = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \[myid:1\] - (INFO |WARN ) \[[^:]+:[^@]+@\d+\] - (.*)\n$/.exec(
      line,
    );
    expect(found, line).not.toBeNull();
    return found?.[2] ?? '';
  });
  expect(texts.map((text) => text.replace(/TOOK - \d+ MS/, 'TOOK - 0 MS'))).toContain(fragment);
});

test('session creation and resumption are logged at debug level', () => {
  const lines: string[] = [];
  const log = new TraceLog(new ApacheLogger('debug', 1, (line) => lines.push(line)), clock);
  log.emit({ kind: 'session-created', sessionId: 0x1bn, timeoutMs: 4000, remote });
  log.emit({ kind: 'session-resumed', sessionId: 0x1cn, timeoutMs: 5000, remote });
  expect(lines.filter((line) => line.includes('Established')).map((line) => line.replace(/^.*@0\] - /, ''))).toEqual([
    'Established session 0x1b with negotiated timeout 4000 for client /10.0.0.1:4000\n',
    'Established session 0x1c with negotiated timeout 5000 for client /10.0.0.1:4000\n',
  ]);
});

test('ports that listen, and four-letter words, which are asked for too often for more than debugging', () => {
  const texts: string[] = [];
  const logger = new ApacheLogger('debug', 1, (line) => texts.push(line.replace(/^.*@0\] - /, '')));
  logger.log('info', 'x', { event: 'ready', host: '127.0.0.1', port: 2181 });
  logger.log('info', 'x', { event: 'admin-listening', host: '127.0.0.1', port: 8080 });
  new TraceLog(logger, clock).emit({ kind: 'connection-closed', remote, sessionId: 0n, reason: 'it asked "ruok"' });
  expect(texts).toEqual(
    expect.arrayContaining([
      'binding to port 127.0.0.1:2181\n',
      'Started AdminServer on address 127.0.0.1, port 8080 and command URL /commands\n',
      'Processing ruok command from /10.0.0.1:4000\n',
    ]),
  );
});

/** As Apache 3.8.0 logs them of a follower whose leader is killed, and of the leader that comes then. */
test("a server's states are told in Apache's order", () => {
  const lines: string[] = [];
  const log = new TraceLog(new ApacheLogger('info', 1, (line) => lines.push(line)), clock);
  log.emit({ kind: 'role-changed', role: 'looking', leader: null, reason: 'x' });
  log.emit({ kind: 'role-changed', role: 'following', leader: 2, reason: 'x' });
  log.emit({ kind: 'catching-up', leader: 2, mode: 'diff', zxid: 0 });
  log.emit({ kind: 'epoch-established', epoch: 1, zxid: 0 });
  log.emit({ kind: 'role-changed', role: 'looking', leader: null, reason: 'x' });
  log.emit({ kind: 'role-changed', role: 'leading', leader: 1, reason: 'x' });
  for (const serverId of [2, 3]) {
    log.emit({ kind: 'learner-synchronizing', serverId, mode: 'diff', from: 0, zxid: 0 });
  }
  log.emit({ kind: 'epoch-established', epoch: 2, zxid: 0 });
  const states = lines.flatMap(
    (line) => /Peer state changed: (.*)|- ([A-Z]{7,9})$/m.exec(line)?.slice(1).join('') ?? [],
  );
  expect(states.map((state) => state.replace('undefined', ''))).toEqual([
    'LOOKING',
    'following',
    'FOLLOWING',
    'following - discovery',
    'following - synchronization',
    'following - synchronization - diff',
    'following - broadcast',
    'looking',
    'LOOKING',
    'leading',
    'LEADING',
    'leading - discovery',
    'leading - synchronization',
    'leading - broadcast',
  ]);
});

test('a server that fails, at the start or later', () => {
  const lines: string[] = [];
  const logger = new ApacheLogger('info', 1, (line) => lines.push(line));
  for (const event of ['not-started', 'stopping', 'exit']) logger.log('error', 'x', { event, exitCode: 3 });
  const texts = OF_THE_END.map((text) => expect.stringContaining(` - ${text}`));
  expect(lines).toEqual(expect.arrayContaining(texts));
});

test.runIf(existsSync('/usr/share/java/zookeeper.jar'))("the texts are those of Apache's server", () => {
  const script =
    'import sys, zipfile; jar = zipfile.ZipFile("/usr/share/java/zookeeper.jar"); sys.stdout.buffer.write(b"".join(map(jar.read, jar.namelist())))';
  const jar = execFileSync('python3', ['-c', script], { maxBuffer: 64 * 1024 * 1024 });
  for (const fragment of [
    ...SEARCHED.map(([text]) => text),
    ...OF_THE_END,
    'ZooKeeper audit is enabled',
    ...ELSEWHERE,
  ]) {
    const [beginning = ''] = /^[A-Za-z*][A-Za-z* =-]*/.exec(fragment.replace(/^LEADING - /, '')) ?? [];
    expect(jar.includes(beginning.trimEnd().replace(/ (server|SyncThread)$/, '')), beginning).toBe(true);
  }
});

test('is asked for by MEERKAT_LOG=zookeeper', () => {
  expect(readLoggerOptions({ MEERKAT_LOG: 'zookeeper' }).format).toBe('zookeeper');
});

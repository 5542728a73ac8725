import type { PeerAddress } from '@meerkat/core';
import { makeZxid } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { JsonLogger, readLoggerOptions, TextLogger } from './logger.ts';
import { TraceLog } from './trace-log.ts';

const remote: PeerAddress = { ip: Uint8Array.of(10, 0, 0, 1), host: '10.0.0.1', port: 4000 };

/** A log whose clock stands where the test puts it. */
function makeLog(): { lines: string[]; log: TraceLog; clock: { ms: number } } {
  const lines: string[] = [];
  const clock = { ms: 0 };
  const logger = new TextLogger('info', (line) => lines.push(line.replace(/^[-\d]+ [:.\d]+ /, '')));
  return { lines, clock, log: new TraceLog(logger, { monotonicMs: () => clock.ms, wallMs: () => 0 }) };
}

test('a line names peer, session and reason; everyday ends are not shown', () => {
  const { lines, log } = makeLog();
  log.emit({ kind: 'connection-closed', remote, sessionId: 0x10000abc0000n, reason: 'it does not read' });
  log.emit({ kind: 'connection-closed', remote, sessionId: 0n, reason: 'closed by peer' });
  log.emit({ kind: 'connection-closed', remote, sessionId: 0n, reason: 'it asked "ruok"' });
  log.emit({ kind: 'connection-closed', remote, sessionId: 1n, reason: 'the server has lost its leader: x' });
  log.emit({ kind: 'connection-closed', remote, sessionId: 0n, reason: 'the server is not serving yet' });
  expect(lines).toEqual(['WARN  client 10.0.0.1:4000 closed of session 0x10000abc0000: it does not read\n']);
});

test('a client that disconnects without closing its session is logged', () => {
  const { lines, log } = makeLog();
  log.emit({ kind: 'connection-closed', remote, sessionId: 0x1bn, reason: 'closed by peer' });
  log.emit({ kind: 'connection-closed', remote, sessionId: 0x1cn, reason: 'its session is closed' });
  expect(lines).toEqual(['INFO  client 10.0.0.1:4000 closed of session 0x1b: closed by peer\n']);
});

test('what a client sends cannot start a line of its own', () => {
  const { lines, log } = makeLog();
  log.emit({ kind: 'auth-failed', remote, scheme: 'x\nERROR forged\u001b[31m', reason: null });
  expect(lines).toEqual(['WARN  client 10.0.0.1:4000 failed to authenticate by "x ERROR forged [31m"\n']);
});

test('refusals for one reason are told once a second, with how many there were', () => {
  const { lines, clock, log } = makeLog();
  for (let i = 0; i < 250; i++) log.emit({ kind: 'connection-refused', remote, reason: 'there are too many' });
  clock.ms = 1000;
  log.emit({ kind: 'connection-refused', remote, reason: 'there are too many' });
  expect(lines).toEqual([
    'WARN  client 10.0.0.1:4000 refused: there are too many\n',
    'WARN  client 10.0.0.1:4000 refused: there are too many (and 249 more before)\n',
  ]);
});

test('a flood of bad connections fills a hundred lines a second, and the rest is counted', () => {
  const { lines, clock, log } = makeLog();
  for (let i = 0; i < 250; i++)
    log.emit({ kind: 'connection-closed', remote, sessionId: 0n, reason: 'it sent nonsense' });
  expect(lines).toHaveLength(100);
  clock.ms = 1000;
  log.emit({ kind: 'connection-closed', remote, sessionId: 0n, reason: 'it sent nonsense' });
  expect(lines.slice(100)).toEqual([
    'WARN  150 more lines about connections were left out\n',
    'WARN  client 10.0.0.1:4000 closed: it sent nonsense\n',
  ]);
});

test('a limit that is reached is told with how many were refused', () => {
  const { lines, log } = makeLog();
  log.emit({ kind: 'limit-reached', limit: 'watches', reason: 'there are 3 watches', refused: 12 });
  expect(lines).toEqual(['WARN  a limit is reached: there are 3 watches (12 refusals since the line before)\n']);
});

test('roles and synchronizations are told; what each txn does is not', () => {
  const { lines, log } = makeLog();
  log.emit({ kind: 'role-changed', role: 'looking', leader: null, reason: 'it has no leader' });
  log.emit({ kind: 'role-changed', role: 'following', leader: 3, reason: 'round 1 has decided' });
  log.emit({ kind: 'role-changed', role: 'leading', leader: 1, reason: 'round 2 has decided' });
  log.emit({ kind: 'learner-synchronizing', serverId: 2, mode: 'diff', from: 0x100000001, zxid: 0x100000001 });
  log.emit({ kind: 'learner-synchronizing', serverId: 2, mode: 'trunc', from: 0x100000009, zxid: 0x100000007 });
  log.emit({ kind: 'learner-synchronizing', serverId: 4, mode: 'snap', from: 0, zxid: 0x100000007 });
  log.emit({ kind: 'learner-synchronized', serverId: 2, zxid: 0x100000007 });
  log.emit({ kind: 'catching-up', leader: 3, mode: 'diff', zxid: 0x100000007 });
  log.emit({ kind: 'catching-up', leader: 3, mode: 'trunc', zxid: 0x100000007 });
  log.emit({ kind: 'catching-up', leader: 3, mode: 'snap', zxid: 0x100000007 });
  log.emit({ kind: 'peer-lost', serverId: 2, reason: 'closed by peer' });
  log.emit({ kind: 'epoch-established', epoch: 2, zxid: 0x100000007 });
  log.emit({ kind: 'proposed', zxid: 0x200000001 });
  log.emit({ kind: 'committed', zxid: 0x200000001 });
  log.emit({ kind: 'learner-closed', serverId: 2, reason: 'closed by peer' });
  log.emit({ kind: 'learner-closed', serverId: null, reason: 'closed by peer' });
  expect(lines).toEqual([
    'INFO  looks for a leader: it has no leader\n',
    'INFO  follows server 3: round 1 has decided\n',
    'INFO  leads: round 2 has decided\n',
    'INFO  server 2 is at zxid 0x100000001 and is sent what follows\n',
    'INFO  server 2 is at zxid 0x100000009 and has to truncate its log to zxid 0x100000007\n',
    'INFO  server 4 is at zxid 0x0 and is sent a snapshot of zxid 0x100000007\n',
    'INFO  server 2 has the history up to zxid 0x100000007\n',
    'INFO  server 3 sends the txns that this server has not got\n',
    'INFO  server 3 demands that the log is truncated to zxid 0x100000007\n',
    'INFO  server 3 sends a snapshot of zxid 0x100000007\n',
    'INFO  the connection to server 2 for elections has ended: closed by peer\n',
    'INFO  epoch 2 is established: clients are served\n',
    'INFO  server 2 has left this leader: closed by peer\n',
    'INFO  a server that had not said who it is has left this leader: closed by peer\n',
  ]);
});

test('the environment chooses form and level, and nonsense counts as not set', () => {
  expect(readLoggerOptions({})).toEqual({ format: 'text', level: 'info' });
  expect(readLoggerOptions({ MEERKAT_LOG: 'JSON', MEERKAT_LOG_LEVEL: 'Debug' })).toEqual({
    format: 'json',
    level: 'debug',
  });
  expect(readLoggerOptions({ MEERKAT_LOG: 'x', MEERKAT_LOG_LEVEL: 'x' })).toEqual({ format: 'text', level: 'info' });
});

test('a line is cut at 2000 characters', () => {
  const { lines, log } = makeLog();
  log.emit({ kind: 'auth-failed', remote, scheme: 'x'.repeat(1_000_000), reason: null });
  log.emit({ kind: 'warning', message: `server 3 follows ${'y'.repeat(500_000)}` });
  const beginning = 'client 10.0.0.1:4000 failed to authenticate by "';
  expect(lines).toEqual([
    `WARN  ${beginning}${'x'.repeat(2000 - beginning.length)}… and ${1_000_000 + beginning.length + 1 - 2000} more characters\n`,
    expect.stringMatching(/^WARN {2}server 3 follows y+… and 498017 more characters\n$/),
  ]);
});

test('and so is a record, with each of its fields', () => {
  const logged: unknown[] = [];
  const pino = { warn: (fields: unknown, message: string) => logged.push(fields, message) };
  new JsonLogger(pino as never).log('warn', 'm'.repeat(3000), { scheme: 's'.repeat(3000), size: 3 });
  const cut = (letter: string): string => `${letter.repeat(2000)}… and 1000 more characters`;
  expect(logged).toEqual([{ scheme: cut('s'), size: 3 }, cut('m')]);
});

test('strangers at the quorum port write no more lines than clients', () => {
  const { lines, log } = makeLog();
  for (let i = 0; i < 500; i++) log.emit({ kind: 'learner-closed', serverId: null, reason: 'closed by peer' });
  log.emit({ kind: 'learner-closed', serverId: 2, reason: 'closed by peer' });
  expect(lines).toHaveLength(101);
  expect(lines.at(-1)).toContain('server 2 has left');
});

test('the same warning is said once a minute, another one at once', () => {
  const { lines, clock, log } = makeLog();
  for (const ms of [0, 1, 59_999, 60_000]) {
    clock.ms = ms;
    log.emit({ kind: 'warning', message: 'another list of members' });
    if (ms === 1) log.emit({ kind: 'warning', message: 'the disk is slow' });
  }
  expect(lines).toEqual([
    'WARN  another list of members\n',
    'WARN  the disk is slow\n',
    'WARN  another list of members\n',
  ]);
});

test('who connects to the election port is no client, and may leave without a word', () => {
  const { lines, log } = makeLog();
  log.emit({ kind: 'connection-refused', remote, reason: 'on the election port: closed by peer' });
  log.emit({
    kind: 'connection-refused',
    remote,
    reason: 'on the election port: it claims to be server 1, which is this one',
  });
  expect(lines).toEqual([
    'WARN  connection from 10.0.0.1:4000 refused: on the election port: it claims to be server 1, which is this one\n',
  ]);
});

test('a server that is told to forget what the leader does not know is warned of', () => {
  const { lines, log } = makeLog();
  const learner = { kind: 'learner-synchronizing', serverId: 3, mode: 'snap' } as const;
  log.emit({ ...learner, from: makeZxid(1, 7), zxid: makeZxid(2, 9) });
  log.emit({ ...learner, from: makeZxid(1, 7), zxid: makeZxid(1, 2) });
  expect(lines).toEqual([
    'INFO  server 3 is at zxid 0x100000007 and is sent a snapshot of zxid 0x200000009\n',
    'WARN  server 3 is at zxid 0x100000007 and is sent a snapshot of zxid 0x100000002 in place of txns that this leader does not know: was its data directory that of another ensemble?\n',
  ]);
});

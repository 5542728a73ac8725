import { OPEN_ACL, OpCode, type Txn, type Zxid } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { Database } from '../tree/database.ts';
import { ReadOnlySessions } from './read-only-sessions.ts';

const TICK_MS = 100;
/** Sessions of server 1 and of server 2. */
const OWN = 1n << 56n;
const FOREIGN = 2n << 56n;

type Logged = { readonly sessionId: bigint; readonly txn: Txn };

function sessionsOf(...txns: readonly Logged[]): ReadOnlySessions {
  return new ReadOnlySessions(1, true, databaseOf(txns), TICK_MS, 0);
}

function databaseOf(txns: readonly Logged[]): Database {
  const database = new Database({ extendedTypesEnabled: true, digestEnabled: true }, { emit() {} });
  txns.forEach(({ sessionId, txn }, i) => {
    database.apply({ sessionId, cxid: i, zxid: (0x100000001 + i) as Zxid, time: 0 }, txn, IGNORED);
  });
  return database;
}
const IGNORED = { onCreated() {}, onDeleted() {}, onDataChanged() {} };

const begins = (sessionId: bigint) => ({ sessionId, txn: { type: OpCode.createSession, timeoutMs: 4000 } as const });
const locks = (sessionId: bigint) => ({
  sessionId,
  txn: {
    type: OpCode.create,
    path: '/lock',
    data: null,
    acl: OPEN_ACL,
    isEphemeral: true,
    parentCversion: 1,
  } as const,
});

test('a session in the log is resumed, regardless of the server that created it', () => {
  const sessions = sessionsOf(begins(OWN), begins(FOREIGN));
  for (const id of [OWN, FOREIGN])
    expect(sessions.resume(id, 4000, 0)).toMatchObject({ kind: 'resume', session: { id } });
});

test('the id of a session in the log is not given again', () => {
  expect([OWN, FOREIGN].map((id) => sessionsOf(begins(OWN)).isTaken(id))).toEqual([true, false]);
});

test('a session with ephemerals is closed without a reply: this server cannot know whether it is alive', () => {
  expect(sessionsOf(begins(OWN), locks(OWN)).resume(OWN, 4000, 0)).toMatchObject({ kind: 'close' });
});

test('the client of an unknown session of another server is not told that it has ended', () => {
  expect(sessionsOf().resume(FOREIGN, 4000, 0)).toMatchObject({ kind: 'close' });
});

test('the client of an unknown own session is told that it has ended, unless this server does not log txns', () => {
  expect(sessionsOf().resume(OWN, 4000, 0)).toMatchObject({ kind: 'refuse' });
  const observer = new ReadOnlySessions(1, false, databaseOf([]), TICK_MS, 0);
  expect(observer.resume(OWN, 4000, 0)).toMatchObject({ kind: 'close' });
});

test('a session that times out is disconnected, and can be resumed later', () => {
  const sessions = sessionsOf(begins(OWN));
  sessions.resume(OWN, 1000, 0);
  const silent: bigint[] = [];
  for (let nowMs = 0; nowMs <= 1500; nowMs += TICK_MS) sessions.onTick(nowMs, (id) => silent.push(id));
  expect(silent).toEqual([OWN]);
  expect(sessions.get(OWN), 'it is forgotten until then').toBeUndefined();
  expect(sessions.resume(OWN, 1000, 1600)).toMatchObject({ kind: 'resume' });
});

import { CreateMode, ErrorCode, OPEN_ACL, OpCode, PacketType, type Request } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import { create, exists } from '../testing/core-requests.ts';
import { createTxn, errorTxn, ForwardingLearner, idOf, setRoot, xidsOf } from '../testing/forwarding-learner.ts';

describe('a learner forwards', () => {
  test('a new session with its timeout, and the client has it once its txn is applied', () => {
    const learner = new ForwardingLearner();
    const client = learner.client().create(4000);
    expect(learner.asked).toMatchObject([
      { type: PacketType.request, cxid: 0, op: -10, body: bytesOf((b) => b.int(4000)) },
    ]);
    const { sessionId } = learner.asked[0]!;
    expect(sessionId >> 56n).toBe(2n);
    const zxid = learner.proposeTxn(sessionId, 0, { type: OpCode.createSession, timeoutMs: 4000 });
    expect(client.session).toBeNull();
    learner.commit(zxid);
    expect(client.session).toMatchObject({ id: sessionId, timeoutMs: 4000 });
  });

  test('a write unchanged, with the identities of its client', () => {
    const learner = new ForwardingLearner();
    const client = learner.connect();
    client.send(5, setRoot);
    const body = bytesOf((b) => b.text('/zookeeper').buffer(null).int(-1));
    const authInfo = client.identities;
    expect(learner.asked.at(-1)).toEqual({
      type: PacketType.request,
      sessionId: idOf(client),
      cxid: 5,
      op: OpCode.setData,
      body,
      authInfo,
    });
  });

  test('nothing for a while after a long multi, longer while clients of other servers write', () => {
    const learner = new ForwardingLearner();
    const client = learner.connect(8000);
    const parts = 4096 + 960;
    const multi: Request = {
      op: OpCode.multi,
      ops: new Array(parts).fill({ op: OpCode.check, path: '/', version: -1 }),
    };
    const txns = new Array(parts).fill({ type: OpCode.check, path: '/', version: 0 });
    const answer = (xid: number, nowMs: number) => {
      client.send(xid, multi);
      learner.commit(learner.proposeTxn(idOf(client), xid, { type: OpCode.multi, txns }), nowMs);
      return client.waiting.pausedUntilMs - nowMs;
    };
    expect(answer(1, 10_000)).toBe(15);
    learner.commit(learner.proposeTxn(5n, 1, errorTxn(ErrorCode.noNode)), 10_000);
    expect(answer(2, 10_500)).toBe(768);
    expect(answer(3, 20_000)).toBe(15);
  });

  test('at most a megabyte of one client until the leader has answered some of it', () => {
    const learner = new ForwardingLearner();
    const client = learner.connect();
    const { session } = client;
    const isFull = () => client.waiting.isFull(Number.POSITIVE_INFINITY, false);
    const set: Request = { op: OpCode.setData, path: '/a', data: new Uint8Array(600_000), version: -1 };
    client.send(1, set);
    expect(isFull()).toBe(false);
    client.send(2, set);
    expect(isFull()).toBe(true);
    learner.commitTxn(session!.id, 1, errorTxn(ErrorCode.noNode));
    expect(isFull()).toBe(false);
  });

  test('a multi, and answers a create2 in it as such, although its txn has a create', () => {
    const learner = new ForwardingLearner();
    const client = learner.connect();
    const made = { path: '/a', data: null, acl: OPEN_ACL, flags: CreateMode.persistent, ttl: -1 };
    const ops = [
      { op: OpCode.create, ...made },
      { op: OpCode.create2, ...made, path: '/b' },
    ] as const;
    client.send(5, { op: OpCode.multi, ops });
    const txns = [createTxn('/a'), createTxn('/b')];
    const zxid = learner.proposeTxn(idOf(client), 5, { type: OpCode.multi, txns });
    learner.commit(zxid);
    const record = bytesOf((b) => {
      b.int(1).boolean(false).int(0).text('/a');
      b.int(15).boolean(false).int(0).text('/b');
      // Stat: zxids, times, versions, owner, data and children
      b.long(zxid).long(zxid).long(0).long(0).int(0).int(0).int(0).long(0).int(0).int(0).long(zxid);
      return b.int(-1).boolean(true).int(-1);
    });
    expect(client.replies).toEqual([{ xid: 5, zxid, error: ErrorCode.ok, record }]);
  });

  test('a closeSession, and closes the connection once it is applied', () => {
    const learner = new ForwardingLearner();
    const client = learner.connect();
    client.send(5, { op: OpCode.closeSession });
    client.send(6, setRoot);
    expect(learner.asked.at(-1)).toMatchObject({ cxid: 5, op: -11, body: new Uint8Array(0) });
    learner.commitTxn(idOf(client), 5, { type: OpCode.closeSession, paths: [] });
    expect(xidsOf(client)).toEqual([5]);
    expect(client.closeReason).toBe('its session is closed');
    expect(learner.serving.database.sessions.size).toBe(0);
  });

  test('the closeSession of a session that has already ended, and closes the connection after the reply', () => {
    const learner = new ForwardingLearner();
    const client = learner.connect();
    client.send(5, { op: OpCode.closeSession });
    learner.commitTxn(idOf(client), 5, errorTxn(ErrorCode.sessionExpired));
    expect(client.replies.map(({ error }) => error)).toEqual([ErrorCode.sessionExpired]);
    expect(client.isOpen).toBe(false);
  });

  test('no reads and no pings', () => {
    const learner = new ForwardingLearner();
    const client = learner.connect();
    const asked = learner.asked.length;
    client.send(1, exists('/'));
    client.send(2, { op: OpCode.ping });
    expect(xidsOf(client)).toEqual([1, -2]);
    expect(learner.asked).toHaveLength(asked);
  });

  test("an administrator's request to end a session, even if its client is at another server", () => {
    const learner = new ForwardingLearner();
    learner.commitTxn(77n, 0, { type: OpCode.createSession, timeoutMs: 4000 });
    expect(learner.serving.expireSession(78n)).toBe(false);
    expect(learner.serving.expireSession(77n)).toBe(true);
    expect(learner.asked).toMatchObject([{ sessionId: 77n, cxid: 0, op: -11 }]);
    learner.commitTxn(77n, 0, { type: OpCode.closeSession, paths: [] });
    expect(learner.serving.pipeline.inFlightCount).toBe(0);
  });
});

describe('a txn answers', () => {
  test('the write with the same session and xid, followed by what waits behind it, and no other client', () => {
    const learner = new ForwardingLearner();
    const [ann, bob] = [learner.connect(), learner.connect()];
    ann.send(1, create('/a'));
    ann.send(2, exists('/a'));
    bob.send(1, create('/b'));
    bob.send(2, exists('/a'));
    learner.commitTxn(idOf(ann), 1, createTxn('/a'));
    expect(ann.replies.map(({ xid, zxid, error }) => [xid, zxid, error])).toEqual([
      [1, 3, 0],
      [2, 3, 0],
    ]);
    expect(ann.replies[0]?.record).toEqual(bytesOf((b) => b.text('/a')));
    expect(bob.replies).toEqual([]);
    learner.commitTxn(idOf(bob), 1, errorTxn(ErrorCode.noAuth));
    expect(bob.replies.map(({ xid, error }) => [xid, error])).toEqual([
      [1, ErrorCode.noAuth],
      [2, ErrorCode.ok],
    ]);
  });

  test('no write that was forwarded after the txn was proposed', () => {
    const learner = new ForwardingLearner();
    const session = 77n;
    const earlier = learner.proposeTxn(session, 1, createTxn('/a'));
    const client = learner.reconnect(session);
    client.send(1, create('/a'));
    learner.commit(earlier);
    expect(client.replies).toEqual([]);
    learner.commitTxn(session, 1, errorTxn(ErrorCode.nodeExists));
    expect(client.replies.map(({ error }) => error)).toEqual([ErrorCode.nodeExists]);
  });

  test('no write of another type: an observer receives late what another server forwarded', () => {
    const learner = new ForwardingLearner();
    const client = learner.reconnect(77n);
    client.send(1, { op: OpCode.delete, path: '/b', version: -1 });
    learner.commitTxn(77n, 1, createTxn('/a'));
    expect(client.replies).toEqual([]);
    learner.commitTxn(77n, 1, errorTxn(ErrorCode.noNode));
    expect(client.replies.map(({ error }) => error)).toEqual([ErrorCode.noNode]);
  });

  test('the write of a closed connection, not a later one of the same session', () => {
    const learner = new ForwardingLearner();
    const first = learner.connect();
    first.send(1, create('/a'));
    first.close('gone');
    const second = learner.reconnect(idOf(first));
    second.send(1, create('/a'));
    learner.commitTxn(idOf(first), 1, createTxn('/a'));
    expect(second.replies).toEqual([]);
    learner.commitTxn(idOf(first), 1, errorTxn(ErrorCode.nodeExists));
    expect(second.replies.map(({ error }) => error)).toEqual([ErrorCode.nodeExists]);
    expect(first.replies).toEqual([]);
    expect(learner.serving.pipeline.inFlightCount).toBe(0);
  });

  test('by closing the connection when the session has moved', () => {
    const learner = new ForwardingLearner();
    const [single, multi] = [learner.connect(), learner.connect()];
    single.send(1, exists('/'));
    single.send(2, setRoot);
    single.send(3, exists('/'));
    learner.commitTxn(idOf(single), 2, errorTxn(ErrorCode.sessionMoved));
    expect(xidsOf(single)).toEqual([1]);
    expect(single.closeReason).toBe('its session has moved to another server');
    multi.send(1, { op: OpCode.multi, ops: [{ op: OpCode.delete, path: '/a', version: -1 }] });
    const part = { type: OpCode.error, error: ErrorCode.sessionMoved } as const;
    learner.commitTxn(idOf(multi), 1, { type: OpCode.multi, txns: [part] });
    expect(multi.replies).toEqual([]);
    expect(multi.closeReason).toBe('its session has moved to another server');
  });

  test('nothing forwarded before a SESSIONMOVED that is meant for the previous server of the session', () => {
    const learner = new ForwardingLearner();
    const first = learner.connect();
    first.send(1, create('/first'));
    first.close('gone');
    const second = learner.reconnect(idOf(first));
    second.send(1, create('/second'));
    // A request with the same xid, forwarded by the client's previous server.
    learner.commitTxn(idOf(first), 1, errorTxn(ErrorCode.sessionMoved));
    learner.commitTxn(idOf(first), 1, createTxn('/first'));
    const third = learner.reconnect(idOf(first));
    learner.commitTxn(idOf(first), 1, createTxn('/second'));
    expect(second.replies).toEqual([]);
    third.send(1, create('/third'));
    learner.commitTxn(idOf(first), 1, createTxn('/third'));
    expect(third.replies.map(({ record }) => record)).toEqual([bytesOf((b) => b.text('/third'))]);
  });

  test('by closing the connection when the leader refuses the session', () => {
    const learner = new ForwardingLearner();
    const client = learner.client().create();
    learner.commitTxn(learner.asked[0]!.sessionId, 0, errorTxn(ErrorCode.sessionExpired));
    expect(client.closeReason).toBe('its session has been refused');
  });

  test('never a request that the leader has skipped: its client is disconnected', () => {
    const learner = new ForwardingLearner();
    const client = learner.connect();
    client.send(1, create('/a'));
    client.send(2, create('/b'));
    learner.commitTxn(idOf(client), 2, createTxn('/b'));
    expect(client.replies).toEqual([]);
    expect(client.closeReason).toBe('the leader has not answered its request');
    expect(learner.serving.database.tree.znodes.find('/b')).not.toBe(0);
    expect(learner.serving.pipeline.inFlightCount).toBe(0);
  });
});

describe('a sync on a learner', () => {
  test('is forwarded to the leader, and answered in order, after earlier writes of its session', () => {
    const learner = new ForwardingLearner();
    const [ann, bob] = [learner.connect(), learner.connect()];
    ann.send(1, create('/a'));
    ann.send(2, { op: OpCode.sync, path: '/x' });
    bob.send(1, { op: OpCode.sync, path: '/y' });
    expect(learner.asked.slice(-2)).toMatchObject([
      { sessionId: idOf(ann), cxid: 2, op: OpCode.sync, body: bytesOf((b) => b.text('/x')), authInfo: [] },
      { sessionId: idOf(bob), cxid: 1, op: OpCode.sync },
    ]);
    learner.serving.onSynced(1);
    expect(ann.replies).toEqual([]);
    expect(bob.replies).toEqual([]);
    learner.commitTxn(idOf(ann), 1, createTxn('/a'));
    expect(xidsOf(ann)).toEqual([1, 2]);
    expect(ann.replies[1]?.record).toEqual(bytesOf((b) => b.text('/x')));
    learner.serving.onSynced(2);
    expect(xidsOf(bob)).toEqual([1]);
  });

  test('counts even if its connection is closed', () => {
    const learner = new ForwardingLearner();
    const [ann, bob] = [learner.connect(), learner.connect()];
    ann.send(1, { op: OpCode.sync, path: '/' });
    ann.close('gone');
    bob.send(1, { op: OpCode.sync, path: '/' });
    learner.serving.onSynced(1);
    expect(bob.replies).toEqual([]);
    learner.serving.onSynced(2);
    expect(xidsOf(bob)).toEqual([1]);
    expect(ann.replies).toEqual([]);
  });

  test('is answered when a later write of its client is committed', () => {
    const learner = new ForwardingLearner();
    const client = learner.connect();
    client.send(1, { op: OpCode.sync, path: '/' });
    client.send(2, exists('/a'));
    client.send(3, create('/a'));
    learner.commitTxn(idOf(client), 3, createTxn('/a'));
    expect(client.replies.map(({ xid, error }) => [xid, error])).toEqual([
      [1, ErrorCode.ok],
      [2, ErrorCode.noNode],
      [3, ErrorCode.ok],
    ]);
    learner.serving.onSynced(1);
    expect(client.replies).toHaveLength(3);
  });
});

test('after its role has ended, a learner answers no client', () => {
  const learner = new ForwardingLearner();
  const [client, waiting] = [learner.connect(), learner.client()];
  client.send(1, create('/a'));
  learner.ask(waiting, 77n);
  learner.serving.drop();
  learner.serving.onRevalidated(77n, true);
  expect(learner.serving.pipeline.inFlightCount).toBe(0);
  expect(client.waiting.length).toBe(0);
  expect(waiting.session).toBeNull();
});

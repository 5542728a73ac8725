import { CreateMode, ErrorCode, type ForwardedRequestPacket, OpCode, PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import { Session, SessionOwner } from '../session/session.ts';
import { create } from '../testing/core-requests.ts';
import type { PipelineClient } from '../testing/pipeline-client.ts';
import { LeaderParty, makeServingParts } from '../testing/serving-parties.ts';

const SESSION = 0x0200_0000_0000_0001n;
const LEARNER = 2;
const OTHER = 3;

/** The record of a create request. */
function createBody(path: string, flags: number = CreateMode.persistent): Uint8Array {
  return bytesOf((b) => b.text(path).buffer(null).acl([31, 'world', 'anyone']).int(flags));
}

function request(
  cxid: number,
  op: number,
  body: Uint8Array = new Uint8Array(0),
  more: Partial<ForwardedRequestPacket> = {},
): ForwardedRequestPacket {
  return { type: PacketType.request, sessionId: SESSION, cxid, op, body, authInfo: [], ...more };
}

function createSession(sessionId: bigint = SESSION, timeoutMs = 5000): ForwardedRequestPacket {
  return request(
    0,
    OpCode.createSession,
    bytesOf((b) => b.int(timeoutMs)),
    { sessionId },
  );
}

/** A leader with a session that was created through a learner. */
class Leader extends LeaderParty {
  constructor() {
    super();
    this.ask(createSession());
  }

  ask(packet: ForwardedRequestPacket, owner: number = LEARNER): number | null {
    return this.forward(owner, packet, 0, 1_700_000_000_000).ticket;
  }

  get lastError(): number | null {
    const txn = this.log.at(-1)?.txn;
    return txn?.type === OpCode.error ? txn.error : null;
  }
}

describe('a forwarded request', () => {
  test('becomes a txn with the session and the xid of its client', () => {
    const leader = new Leader();
    leader.ask(request(7, OpCode.create, createBody('/a')));
    expect(leader.log.at(-1)).toMatchObject({
      header: { sessionId: SESSION, cxid: 7, zxid: 2, time: 1_700_000_000_000 },
      txn: { type: OpCode.create, path: '/a', parentCversion: 1 },
    });
    leader.commit();
    expect(leader.serving.database.tree.znodes.find('/a')).not.toBe(0);
  });

  test("is authorized by its client's identities", () => {
    const leader = new Leader();
    const body = bytesOf((b) => b.text('/a').buffer(null).acl([31, 'auth', '']).int(CreateMode.persistent));
    leader.ask(request(1, OpCode.create, body));
    expect(leader.lastError).toBe(ErrorCode.invalidACL);
    const ann = { scheme: 'digest', id: 'ann:x' };
    leader.ask(request(2, OpCode.create, body, { authInfo: [{ scheme: null, id: 'nobody' }, ann] }));
    expect(leader.log.at(-1)?.txn).toMatchObject({ acl: [{ perms: 31, ...ann }] });
  });

  test('that fails for any reason is answered by an error txn', () => {
    const leader = new Leader();
    const cases: readonly [number, number, Uint8Array][] = [
      [OpCode.delete, ErrorCode.noNode, bytesOf((b) => b.text('/none').int(-1))],
      [OpCode.create, ErrorCode.marshallingError, createBody('/a').subarray(0, 20)],
      [OpCode.multi, ErrorCode.marshallingError, new Uint8Array(3)],
      [OpCode.check, ErrorCode.unimplemented, bytesOf((b) => b.text('/').int(-1))],
      [OpCode.getData, ErrorCode.unimplemented, bytesOf((b) => b.text('/').raw([0]))],
      [OpCode.deleteContainer, ErrorCode.unimplemented, bytesOf((b) => b.text('/'))],
      [OpCode.error, ErrorCode.unimplemented, new Uint8Array(0)],
      [4711, ErrorCode.unimplemented, new Uint8Array(0)],
      [
        OpCode.reconfig,
        ErrorCode.reconfigDisabled,
        bytesOf((b) => b.text(null).text(null).text('server.1=x').long(-1)),
      ],
    ];
    cases.forEach(([op, error, body], i) => {
      leader.ask(request(100 + i, op, body));
      expect(leader.log.at(-1)?.header).toMatchObject({ sessionId: SESSION, cxid: 100 + i });
      expect(leader.lastError, `operation ${op}`).toBe(error);
    });
    leader.commit();
    expect(leader.serving.database.tree.count).toBe(5);
  });

  test('sees the effects of all earlier requests in flight', () => {
    const leader = new Leader();
    const local = leader.connect();
    local.send(1, create('/p'));
    leader.ask(request(1, OpCode.create, createBody('/p/s-', CreateMode.persistentSequential)));
    local.send(2, create('/p/s-', CreateMode.persistentSequential));
    leader.commit();
    const tree = leader.serving.database.tree;
    expect(tree.znodes.find('/p/s-0000000000')).not.toBe(0);
    expect(tree.znodes.find('/p/s-0000000001')).not.toBe(0);
    expect(local.replies.map(({ error }) => error)).toEqual([0, 0]);
  });

  test('returns a ticket for a sync, and nothing is proposed', () => {
    const leader = new Leader();
    const ticket = leader.ask(
      request(
        9,
        OpCode.sync,
        bytesOf((b) => b.text('/')),
      ),
    );
    expect(ticket).not.toBeNull();
    expect(leader.log).toHaveLength(1);
    expect(leader.broadcast.lastSynced).toBeLessThan(ticket!);
    leader.commit();
    expect(leader.broadcast.lastSynced).toBeGreaterThanOrEqual(ticket!);
  });
});

describe('a session of a learner', () => {
  test('is tracked as soon as it is prepared, and expires when it is not touched', () => {
    const leader = new Leader();
    expect(leader.serving.sessions.get(SESSION)).toMatchObject({ timeoutMs: 5000, owner: LEARNER });
    for (let nowMs = 500; nowMs < 6000; nowMs += 500) leader.serving.onTick(nowMs, 0);
    expect(leader.log).toHaveLength(1);
    leader.serving.onTick(6000, 0);
    expect(leader.outcomesOf(SESSION)).toEqual([OpCode.createSession, OpCode.closeSession]);
    expect(leader.trace).toContainEqual({ kind: 'session-expired', sessionId: SESSION, timeoutMs: 5000 });
  });

  test('expires in order when thousands expire at once, those with ephemerals fewer per turn', () => {
    const leader = new Leader();
    const sessions = Array.from({ length: 2000 }, (_, i) => new Session(1000n + BigInt(i), 5000));
    for (const session of sessions) leader.serving.sessions.add(session, 0);
    for (let i = 0; i < 300; i++) leader.ask(request(i, OpCode.create, createBody(`/e${i}`, CreateMode.ephemeral)));
    leader.commit();
    for (let nowMs = 500; nowMs < 6000; nowMs += 500) leader.serving.onTick(nowMs, 0);
    const before = leader.log.length;
    const perTurn: number[] = [];
    while (leader.serving.nextDeadlineMs <= 6000) {
      const { length } = leader.log;
      leader.serving.onTick(6000, 0);
      perTurn.push(leader.log.length - length);
    }
    // The learner's session was created first; it has as many ephemerals as sessions expire per turn.
    expect(perTurn).toEqual([1, ...Array(7).fill(256), 2000 - 7 * 256]);
    expect(leader.log.length - before).toBe(2001);
  });

  test('stays alive while the learner reports it', () => {
    const leader = new Leader();
    for (let nowMs = 500; nowMs <= 20_000; nowMs += 500) {
      if (nowMs % 4000 === 0) leader.serving.touch([{ sessionId: SESSION, timeoutMs: 5000 }], nowMs);
      leader.serving.onTick(nowMs, 0);
    }
    expect(leader.log).toHaveLength(1);
  });

  test('is not created twice', () => {
    const leader = new Leader();
    leader.ask(createSession(), OTHER);
    expect(leader.lastError).toBe(ErrorCode.sessionExpired);
    expect(leader.serving.sessions.get(SESSION)?.owner).toBe(LEARNER);
    leader.ask(request(0, OpCode.createSession, new Uint8Array(3), { sessionId: 77n }));
    expect(leader.lastError).toBe(ErrorCode.marshallingError);
  });

  test('ends with its ephemerals, and only error txns of it follow', () => {
    const leader = new Leader();
    leader.ask(request(1, OpCode.create, createBody('/e', CreateMode.ephemeral)));
    leader.ask(request(2, OpCode.closeSession));
    expect(leader.log.at(-1)?.txn).toEqual({ type: OpCode.closeSession, paths: ['/e'] });
    leader.ask(request(3, OpCode.create, createBody('/late')));
    leader.ask(request(4, OpCode.closeSession));
    leader.serving.touch([{ sessionId: SESSION, timeoutMs: 5000 }], 100);
    for (let nowMs = 500; nowMs < 30_000; nowMs += 500) leader.serving.onTick(nowMs, 0);
    leader.commit();
    const expired = ErrorCode.sessionExpired;
    expect(leader.outcomesOf(SESSION)).toEqual([-10, OpCode.create, -11, expired, expired]);
    leader.ask(request(5, OpCode.create, createBody('/later')));
    expect(leader.lastError).toBe(expired);
    expect(leader.revalidate(LEARNER, SESSION, 5000)).toBe(false);
    expect(leader.serving.database.tree.znodes.find('/e')).toBe(0);
  });

  test('may be ended by any server', () => {
    const leader = new Leader();
    leader.ask(request(0, OpCode.closeSession), OTHER);
    expect(leader.outcomesOf(SESSION)).toEqual([OpCode.createSession, OpCode.closeSession]);
  });
});

describe('the owner of a session', () => {
  test('is the server that revalidated it last; others get SESSIONMOVED', () => {
    const leader = new Leader();
    expect(leader.revalidate(OTHER, SESSION, 8000)).toBe(true);
    expect(leader.serving.sessions.get(SESSION)?.timeoutMs).toBe(8000);
    leader.ask(request(1, OpCode.create, createBody('/a')));
    expect(leader.lastError).toBe(ErrorCode.sessionMoved);
    leader.ask(request(2, OpCode.closeSession));
    expect(leader.lastError).toBe(ErrorCode.sessionMoved);
    leader.ask(request(1, OpCode.create, createBody('/a')), OTHER);
    expect(leader.lastError).toBeNull();
  });

  test('is, after a change of leader, the first server that sends a request', () => {
    const parts = makeServingParts(1);
    parts.database.sessions.set(SESSION, 4000);
    const leader = new LeaderParty({ database: parts.database });
    expect(leader.serving.sessions.get(SESSION)?.owner).toBe(SessionOwner.none);
    leader.forward(OTHER, request(1, OpCode.create, createBody('/a')));
    leader.forward(LEARNER, request(1, OpCode.create, createBody('/b')));
    expect(leader.outcomesOf(SESSION)).toEqual([OpCode.create, ErrorCode.sessionMoved]);
  });

  test('is no longer a client of the leader once a learner has asked: it is closed before it proposes anything', () => {
    const leader = new LeaderParty();
    const client = leader.connect();
    const { id } = client.session!;
    client.send(1, create('/a'));
    expect(leader.revalidate(LEARNER, id, 5000)).toBe(true);
    expect(client.closeReason).toBe('its session has moved to another server');
    client.send(2, create('/b'));
    client.send(3, { op: OpCode.closeSession });
    expect(leader.outcomesOf(id)).toEqual([OpCode.createSession, OpCode.create]);
    leader.commit();
    expect(client.replies).toEqual([]);
    const body = bytesOf((b) => b.text('/a').int(-1));
    leader.forward(LEARNER, request(2, OpCode.delete, body, { sessionId: id }));
    expect(leader.log.at(-1)?.txn).toEqual({ type: OpCode.delete, path: '/a' });
  });

  test('may be the leader again, when the client connects to it', () => {
    const leader = new Leader();
    expect(leader.serving.sessions.resume(SESSION, 5000, 0)).toMatchObject({ kind: 'resume' });
    leader.ask(request(1, OpCode.create, createBody('/a')));
    expect(leader.lastError).toBe(ErrorCode.sessionMoved);
  });
});

describe("a sync of one of the leader's own clients", () => {
  test("after another client's write of the same batch is answered when that is applied", () => {
    const leader = new LeaderParty();
    const [ann, bob] = [leader.connect(), leader.connect()];
    ann.send(1, create('/mine'));
    bob.send(1, create('/other'));
    ann.send(2, { op: OpCode.sync, path: '/' });
    ann.send(3, { op: OpCode.exists, path: '/other', watch: false });
    leader.commit();
    const { lastZxid } = leader.serving.database;
    expect(ann.replies.map(({ xid, error }) => [xid, error])).toEqual([
      [1, 0],
      [2, 0],
      [3, 0],
    ]);
    expect(ann.replies[1]?.zxid).toBe(lastZxid);
  });

  test('is answered at once when nothing is in flight, and before a later write of the client', () => {
    const leader = new LeaderParty();
    const client = leader.connect();
    client.send(1, { op: OpCode.sync, path: '/' });
    expect(client.replies).toHaveLength(1);
    client.send(2, create('/a'));
    client.send(3, { op: OpCode.sync, path: '/' });
    client.send(4, create('/b'));
    leader.commit();
    expect(client.replies.map(({ xid }) => xid)).toEqual([1, 2, 3, 4]);
  });
});

test('an ephemeral of an unknown session is deleted by a txn that every server applies', () => {
  const first = new Leader();
  first.ask(request(1, OpCode.create, createBody('/e', CreateMode.ephemeral)));
  first.commit();
  const { database } = first.serving;
  database.sessions.delete(SESSION);
  const leader = new LeaderParty({ database });
  leader.serving.endOrphans(0);
  expect(leader.outcomesOf(SESSION)).toEqual([OpCode.closeSession]);
  leader.commit();
  expect(database.tree.znodes.find('/e')).toBe(0);
});

test('after its role has ended, a leader answers no client and fires no watches', () => {
  const leader = new LeaderParty();
  const client = leader.connect();
  client.send(1, { op: OpCode.exists, path: '/a', watch: true });
  client.send(2, create('/a'));
  client.send(3, { op: OpCode.sync, path: '/' });
  leader.serving.drop();
  expect(leader.serving.pipeline.inFlightCount).toBe(0);
  leader.commit();
  expect(client.replies.map(({ xid }) => xid)).toEqual([1]);
  expect(client.events).toEqual([]);
});

test("a learner's sync waits, with the requests before it, while a long request is prepared", () => {
  const leader = new LeaderParty({ pace: { unitsPerTurn: 1000, changesAtOnce: 64, preparedPerTurn: 2 } });
  leader.forward(LEARNER, createSession());
  const client = leader.connect();
  const ops = ['/a', '/b', '/c', '/d', '/e'].map((path) => create(path)) as never[];
  client.send(1, { op: OpCode.multi, ops });
  leader.forward(LEARNER, request(1, OpCode.create, createBody('/f')));
  const proposed = leader.broadcast.lastProposed;
  const sync = leader.forward(LEARNER, request(2, OpCode.sync));
  expect([leader.broadcast.lastProposed, sync.ticket]).toEqual([proposed, null]);
  for (let turns = 0; turns < 3; turns++) leader.serving.pipeline.onTurnEnd(0);
  expect(leader.broadcast.lastProposed).toBe(proposed + 2);
  expect(sync.ticket).toBe(proposed + 2);
  expect(leader.log.slice(-2).map(({ header, txn }) => [header.sessionId, txn.type])).toEqual([
    [client.session?.id, OpCode.multi],
    [SESSION, OpCode.create],
  ]);
  leader.commit();
  expect(client.replies).toMatchObject([{ xid: 1, error: ErrorCode.ok }]);
});

test('writes that come behind the end of their session, while both wait for a long request, are refused', () => {
  const leader = new LeaderParty({ pace: { unitsPerTurn: 1000, changesAtOnce: 64, preparedPerTurn: 2 } });
  const [busy, client] = [leader.connect(), leader.connect()];
  const { id } = client.session!;
  const ops = ['/a', '/b', '/c', '/d', '/e'].map((path) => create(path)) as never[];
  client.send(1, create('/before'));
  busy.send(1, { op: OpCode.multi, ops });
  client.send(2, create('/between'));
  // Another server ends it, for an operator.
  leader.forward(LEARNER, { ...request(0, OpCode.closeSession), sessionId: id });
  client.send(3, create('/behind'));
  for (let turns = 0; turns < 9; turns++) leader.serving.pipeline.onTurnEnd(0);
  const own = leader.log.filter(({ header }) => header.sessionId === id).map(({ txn }) => txn.type);
  expect(own.slice(1)).toEqual([OpCode.create, OpCode.create, OpCode.closeSession, OpCode.error]);
  leader.commit();
  expect(leader.serving.pipeline.inFlightCount).toBe(0);
});

test('a session of a learner lives while its txn waits for a long request', () => {
  const leader = new LeaderParty({ pace: { unitsPerTurn: 1000, changesAtOnce: 64, preparedPerTurn: 2 } });
  const client = leader.connect();
  const ops = ['/a', '/b', '/c', '/d', '/e'].map((path) => create(path)) as never[];
  client.send(1, { op: OpCode.multi, ops });
  leader.forward(LEARNER, createSession());
  expect(leader.log.map(({ txn }) => txn.type)).not.toContain(OpCode.multi);
  leader.serving.touch([{ sessionId: SESSION, timeoutMs: 0 }], 3000);
  for (let turns = 0; turns < 3; turns++) leader.serving.pipeline.onTurnEnd(0);
  expect(leader.log.slice(-2).map(({ txn }) => txn.type)).toEqual([OpCode.multi, OpCode.createSession]);
  const session = leader.serving.sessions.get(SESSION)!;
  expect(session.dueMs).toBe(3000 + session.timeoutMs);
});

describe('many simultaneous requests are prepared over several turns, in order', () => {
  const COUNT = 20;
  const paced = () => new LeaderParty({ pace: { unitsPerTurn: 1000, changesAtOnce: 64, preparedPerTurn: 2 } });

  /** The number of txns of a type in the log after each turn, until there are `COUNT`. */
  function countsByTurn(leader: LeaderParty, type: number): number[] {
    const counts: number[] = [];
    const count = () => leader.log.filter(({ txn }) => txn.type === type).length;
    for (counts.push(count()); counts.at(-1)! < COUNT && counts.length < 100; counts.push(count())) {
      leader.serving.pipeline.onTurnEnd(0);
    }
    return counts;
  }

  test("multis of this server's clients, and of learners'", () => {
    for (const isForwarded of [false, true]) {
      const leader = paced();
      leader.forward(LEARNER, createSession());
      const clients = Array.from({ length: COUNT }, () => leader.connect());
      leader.serving.pipeline.onTurnEnd(0);
      const body = bytesOf((b) => {
        for (const path of ['/x', '/y']) b.int(OpCode.delete).boolean(false).int(-1).text(path).int(-1);
        return b.int(-1).boolean(true).int(-1);
      });
      const ops = ['/x', '/y'].map((path) => ({ op: OpCode.delete, path, version: -1 })) as never[];
      for (const [i, client] of clients.entries()) {
        if (isForwarded) leader.forward(LEARNER, request(i, OpCode.multi, body));
        else client.send(i, { op: OpCode.multi, ops });
      }
      expect(countsByTurn(leader, OpCode.multi)).toEqual([4, 8, 12, 16, 20]);
      const asked = leader.log.filter(({ txn }) => txn.type === OpCode.multi);
      expect(asked.map(({ header }) => header.cxid)).toEqual(Array.from({ length: COUNT }, (_, i) => i));
      leader.commit();
      if (!isForwarded) for (const client of clients) expect(client.replies).toHaveLength(1);
    }
  });

  test("creates of learners' clients with long ACLs, which no client of this server is charged for", () => {
    const parts = makeServingParts(1);
    const leader = new LeaderParty({ ...parts, pace: { unitsPerTurn: 1000, changesAtOnce: 64, preparedPerTurn: 8 } });
    leader.forward(LEARNER, createSession());
    leader.serving.pipeline.onTurnEnd(0);
    const body = (path: string) =>
      bytesOf((b) => {
        b.text(path).buffer(Uint8Array.of(1)).int(64);
        for (let i = 0; i < 64; i++) b.int(31).text('digest').text(`user${i}:hash`);
        return b.int(0);
      });
    for (let i = 0; i < 5; i++) leader.forward(LEARNER, request(i, OpCode.create, body(`/${i}`)));
    expect(parts.work.charge(0)).toBe(0);
    const count = () => leader.outcomesOf(SESSION).filter((type) => type === OpCode.create).length;
    const counts = [count()];
    for (let turn = 0; turn < 4; turn++) {
      leader.serving.pipeline.onTurnEnd(0);
      counts.push(count());
    }
    expect(counts).toEqual([1, 2, 3, 4, 5]);
  });

  test('closeSessions', () => {
    const leader = paced();
    const clients: PipelineClient[] = [];
    for (let i = 0; i < COUNT; i++) {
      const client = leader.connect();
      clients.push(client);
      for (let k = 0; k < 8; k++) client.send(k, create(`/${i}-${k}`, CreateMode.ephemeral));
      leader.serving.pipeline.onTurnEnd(0);
    }
    leader.commit();
    for (const client of clients) client.send(8, { op: OpCode.closeSession });
    expect(countsByTurn(leader, OpCode.closeSession)).toEqual([4, 8, 12, 16, 20]);
    leader.commit();
    expect(leader.serving.database.sessions.size).toBe(0);
  });
});

import { ErrorCode, OPEN_ACL, OpCode, type Request, type Txn, type Zxid } from '@meerkat/protocol';
import { describe, expect, test, vi } from 'vitest';
import type { ByteStream } from '../base/ports.ts';
import { ServerStats } from '../base/server-stats.ts';
import { Turn } from '../base/turn.ts';
import { IDENTITIES_MAX } from '../request/identities.ts';
import { WorkMeter } from '../request/work-meter.ts';
import { APACHE_SESSION_PASSWORDS, makeSessionPassword } from '../session/password.ts';
import { decideConnect } from '../session/session-door.ts';
import { MemoryDisk } from '../storage/memory-disk.ts';
import { PLAIN_AUTHENTICATOR } from '../testing/plain-authenticator.ts';
import { LearnerParty, makeServingParts } from '../testing/serving-parties.ts';
import { TestClient, TestServer } from '../testing/test-server.ts';
import { AnswerGate } from './answer-gate.ts';
import { ClientConnection } from './client-connection.ts';
import type { ConnectionHost } from './connection-host.ts';
import { OutputPool } from './output-pool.ts';

describe('a connection before the database has been recovered', () => {
  function recoveringServer(): { server: TestServer; recover: (isServing?: boolean) => void } {
    const disk = new MemoryDisk();
    const delivery = vi.spyOn(disk, 'deliver').mockReturnValue(false);
    const server = new TestServer({}, disk);
    expect(server.isServing).toBe(false);
    return {
      server,
      recover: (isServing = true) => {
        delivery.mockRestore();
        server.run();
        expect(server.isServing).toBe(isServing);
      },
    };
  }

  test('waits for its session until clients are served', () => {
    const { server, recover } = recoveringServer();
    const client = server.open();
    client.connect();
    server.advance(200);
    expect(client.takeArrivals()).toEqual([]);
    recover();
    expect(client.session).not.toBeNull();
  });

  test('is closed without an answer when that takes longer than a quarter of a tick', () => {
    const { server, recover } = recoveringServer();
    const client = server.open();
    client.connect();
    server.advance(240);
    expect(client.takeArrivals()).toEqual([]);
    expect(server.core.nextDeadlineMs()).toBe(server.clock.nowMs + 10);
    server.advance(10);
    expect(client.takeArrivals()).toEqual([{ kind: 'closed' }]);
    const late = server.open();
    server.advance(300);
    late.connect();
    server.run();
    expect(late.takeArrivals(), 'it has used up its time before it sent a request').toEqual([{ kind: 'closed' }]);
    recover();
    expect(server.failure).toBeNull();
    expect(server.connect().session).not.toBeNull();
  });

  test('may close while it waits, or be closed by a stop', () => {
    const { server, recover } = recoveringServer();
    const [going, staying] = [server.open(), server.open()];
    for (const client of [going, staying]) client.connect();
    server.run();
    going.drop();
    server.core.stop();
    recover(false);
    expect(staying.takeArrivals()).toEqual([{ kind: 'closed' }]);
    expect(server).toMatchObject({ failure: null, isStopped: true });
  });

  test('may close before it sends anything', () => {
    const { server, recover } = recoveringServer();
    const client = server.open();
    client.drop();
    server.run();
    recover();
    expect(server.failure).toBeNull();
  });

  test('may be opened early and send its request later', () => {
    const { server, recover } = recoveringServer();
    const client = server.open();
    recover();
    client.connect();
    server.run();
    expect(client.session).not.toBeNull();
  });

  test('gets a reply to a four-letter word', () => {
    const { server } = recoveringServer();
    const client = server.open();
    const received: string[] = [];
    vi.spyOn(client, 'write').mockImplementation((bytes) => void received.push(Buffer.from(bytes).toString()));
    client.sendBytes(Buffer.from('ruok'));
    server.run();
    expect(received).toEqual(['imok']);
    expect(client.isClosed).toBe(true);
  });
});

/** A learner with client streams; tests decide what its leader answers. */
class LearnerServer extends LearnerParty {
  nowMs = 0;
  readonly gate: AnswerGate = new AnswerGate({ monotonicMs: () => this.nowMs, wallMs: () => 0 });
  readonly #withOutput = new Set<ClientConnection>();
  readonly #heldBack = new Set<ClientConnection>();
  readonly #host: ConnectionHost<ClientConnection>;
  readonly #connections: ClientConnection[] = [];
  #zxid = 0;

  constructor() {
    super();
    const { options, permission } = makeServingParts(2);
    const { sessions, pipeline, database } = this.serving;
    this.#host = {
      connections: {
        gate: this.gate,
        turnShare: Number.POSITIVE_INFINITY,
        turnUnits: Number.POSITIVE_INFINITY,
        onAsked: () => {},
        onAwaitingServing: () => {},
        onOutput: (connection) => void this.#withOutput.add(connection),
        onEvents: (connection) => void this.#withOutput.add(connection),
        onRead: () => {},
        onHeldBack: (connection) => void this.#heldBack.add(connection),
        onUntaken: () => {},
        onTaken: () => {},
        onPause: () => {},
        onShareUsed: () => {},
        largeRequestBytes: Number.POSITIVE_INFINITY,
        admitLarge: () => true,
        onLargeComplete: () => {},
        onClosed: () => {},
      },
      turn: new Turn({ monotonicMs: () => 0, wallMs: () => 0 }),
      pipeline,
      permission,
      authenticator: PLAIN_AUTHENTICATOR,
      fourLetterWords: { isWord: () => false, hasArgument: () => false, answer: () => '' },
      stats: new ServerStats(),
      outputPool: new OutputPool(),
      trace: { emit: (event) => void this.trace.push(event) },
      work: new WorkMeter(),
      frameBytesMax: options.frameBytesMax,
      isServing: true,
      mayAwaitServing: () => false,
      isStopping: false,
      isReadOnly: false,
      isOverloaded: false,
      isThrottled: false,
      sessionRequestsMax: Number.POSITIVE_INFINITY,
      requestWaits: options.limits,
      refuseLateRequest: () => {},
      refuseLargeRequest: () => {},
      dataOf: () => null,
      passwords: APACHE_SESSION_PASSWORDS,
      aclOf: () => OPEN_ACL,
      decideConnect: (request) =>
        decideConnect(request, sessions, database.lastZxid, options, APACHE_SESSION_PASSWORDS, 0),
    };
  }

  open(): TestClient {
    return new TestClient({
      onStreamOpened: (stream: ByteStream) => {
        const connection = new ClientConnection(stream, this.#host);
        this.#connections.push(connection);
        return connection;
      },
    });
  }

  /** Advances by `count` ticks of a second. */
  tick(count: number): void {
    for (let i = 0; i < count; i++) for (const connection of this.#connections) connection.onTick(0, 10_000, 1000);
  }

  /** The end of a turn. */
  run(): void {
    for (const connection of [...this.#heldBack]) connection.resumeReading();
    for (const connection of [...this.#withOutput]) connection.flush();
    this.#withOutput.clear();
  }

  commitTxn(sessionId: bigint, cxid: number, txn: Txn): void {
    const zxid = ++this.#zxid as Zxid;
    this.propose({ header: { sessionId, cxid, zxid, time: 0 }, txn, digest: null });
    this.commit(zxid);
    this.run();
  }

  revalidated(sessionId: bigint, isValid: boolean): void {
    this.serving.onRevalidated(sessionId, isValid);
    this.run();
  }
}

describe('a connection to a learner', () => {
  const SESSION = { id: 0x77n, password: makeSessionPassword(0x77n) };
  const readRoot: Request = { op: OpCode.exists, path: '/', watch: false };

  test('gets its session once the leader has created it', () => {
    const server = new LearnerServer();
    const client = server.open();
    client.connect({ timeoutMs: 7000 });
    client.send(readRoot);
    server.run();
    expect(client.takeArrivals()).toEqual([]);
    const { sessionId } = server.asked[0]!;
    server.commitTxn(sessionId, 0, { type: OpCode.createSession, timeoutMs: 7000 });
    expect(client.takeArrivals()).toMatchObject([
      { kind: 'session', response: { sessionId, timeoutMs: 7000 } },
      { kind: 'reply', header: { xid: 1, error: ErrorCode.ok } },
    ]);
  });

  test('resumes a session that the leader knows, and nothing is read before that', () => {
    const server = new LearnerServer();
    const client = server.open();
    client.connect({ session: SESSION, timeoutMs: 7000 });
    client.send(readRoot);
    server.run();
    expect(client.takeArrivals()).toEqual([]);
    expect(server.asked).toMatchObject([{ sessionId: SESSION.id, timeoutMs: 7000 }]);
    server.revalidated(SESSION.id, true);
    expect(client.takeArrivals()).toMatchObject([
      { kind: 'session', response: { sessionId: SESSION.id, timeoutMs: 7000, password: SESSION.password } },
      { kind: 'reply', header: { xid: 1, error: ErrorCode.ok } },
    ]);
    expect(server.trace).toMatchObject([{ kind: 'session-resumed', sessionId: SESSION.id, timeoutMs: 7000 }]);
  });

  test('is refused when the leader does not know the session', () => {
    const server = new LearnerServer();
    const client = server.open();
    client.connect({ session: SESSION });
    server.revalidated(SESSION.id, false);
    expect(client.takeArrivals()).toMatchObject([
      { kind: 'session', response: { sessionId: 0n, timeoutMs: 0 } },
      { kind: 'closed' },
    ]);
    expect(server.trace[0]).toMatchObject({ kind: 'session-refused', sessionId: SESSION.id });
  });

  test('is not revalidated with a wrong password, or when it has seen a later zxid than this server', () => {
    const server = new LearnerServer();
    const [wrong, ahead] = [server.open(), server.open()];
    wrong.connect({ session: { id: SESSION.id, password: new Uint8Array(16) } });
    ahead.connect({ session: SESSION, lastZxidSeen: 1 });
    server.run();
    expect(wrong.takeArrivals()).toMatchObject([{ kind: 'session', response: { timeoutMs: 0 } }, { kind: 'closed' }]);
    expect(ahead.takeArrivals()).toEqual([{ kind: 'closed' }]);
    expect(server.asked).toEqual([]);
  });

  test('may be closed before the leader answers', () => {
    const server = new LearnerServer();
    const client = server.open();
    client.connect({ session: SESSION });
    client.drop();
    server.revalidated(SESSION.id, true);
    expect(client.takeArrivals()).toEqual([]);
    expect(server.serving.pipeline.clientOf(SESSION.id)).toBeUndefined();
  });

  test('is closed after its replies when closeSession is applied', () => {
    const server = new LearnerServer();
    const client = server.open();
    client.connect({ session: SESSION });
    server.revalidated(SESSION.id, true);
    client.send({ op: OpCode.sync, path: '/' });
    client.send({ op: OpCode.closeSession });
    server.commitTxn(SESSION.id, 2, { type: OpCode.closeSession, paths: [] });
    expect(client.takeArrivals().slice(1)).toMatchObject([
      { kind: 'reply', header: { xid: 1 } },
      { kind: 'reply', header: { xid: 2, error: ErrorCode.ok } },
      { kind: 'closed' },
    ]);
  });

  test('gets no long reply once the lease has ended, although nothing has read the clock since', () => {
    const server = new LearnerServer();
    const client = server.open();
    client.connect({ session: SESSION });
    server.revalidated(SESSION.id, true);
    const data = new Uint8Array(100_000);
    const shape = { acl: OPEN_ACL, isEphemeral: false, parentCversion: 1 };
    server.commitTxn(1n, 1, { type: OpCode.create, path: '/long', data, ...shape });
    const read: Request = { op: OpCode.multiRead, ops: [{ op: OpCode.getData, path: '/long' }] };
    client.takeArrivals();
    server.gate.begin({ untilMs: 10 });
    server.nowMs = 10;
    client.send(read);
    expect(client.takeArrivals()).toMatchObject([{ kind: 'reply', header: { error: ErrorCode.ok } }]);
    // The process was paused; the request is what it finds first.
    server.nowMs = 11;
    client.send(read);
    expect(client.takeArrivals()).toEqual([{ kind: 'closed' }]);
  });

  test('is closed when its session has moved, after earlier replies', () => {
    const server = new LearnerServer();
    const client = server.open();
    client.connect({ session: SESSION });
    server.revalidated(SESSION.id, true);
    client.takeArrivals();
    client.send(readRoot);
    client.send({ op: OpCode.delete, path: '/a', version: -1 });
    server.commitTxn(SESSION.id, 2, { type: OpCode.error, error: ErrorCode.sessionMoved });
    expect(client.takeArrivals()).toMatchObject([{ kind: 'reply', header: { xid: 1 } }, { kind: 'closed' }]);
  });

  test('is closed when its client is silent for longer than its session timeout: the session may have moved', () => {
    const server = new LearnerServer();
    const [silent, alive] = [server.open(), server.open()];
    for (const [i, client] of [silent, alive].entries()) {
      const id = SESSION.id + BigInt(i);
      client.connect({ session: { id, password: makeSessionPassword(id) }, timeoutMs: 4000 });
      server.revalidated(id, true);
      client.takeArrivals();
    }
    server.tick(5);
    alive.send(readRoot);
    server.tick(1);
    expect([silent.isClosed, alive.isClosed]).toEqual([false, false]);
    server.tick(4);
    expect([silent.isClosed, alive.isClosed]).toEqual([true, false]);
  });
});

describe('requests that are answered at once', () => {
  function answersTo(request: Request, xid: number): unknown[] {
    const server = new TestServer();
    const client = server.connect();
    client.send(request, xid);
    server.run();
    return client.takeArrivals();
  }
  const reply = (xid: number, error: ErrorCode): object => ({ kind: 'reply', header: { xid, zxid: 0, error } });

  test('an auth packet without a scheme is refused with AUTHFAILED, as is one without credentials', () => {
    const auth = new Uint8Array(1);
    for (const offer of [
      { scheme: null, auth },
      { scheme: 'digest', auth: null },
      { scheme: 'nobody', auth },
    ]) {
      for (const xid of [-4, 7]) {
        const arrivals = answersTo({ op: OpCode.auth, ...offer }, xid);
        expect(arrivals).toMatchObject([reply(xid, ErrorCode.authFailed), { kind: 'closed' }]);
      }
    }
  });

  test('an auth packet beyond the maximum of identities closes the connection with AUTHFAILED', () => {
    const server = new TestServer();
    const client = server.connect();
    const auth = (i: number) => ({ op: OpCode.auth, scheme: 'digest', auth: new TextEncoder().encode(`user-${i}:x`) });
    // One identity is its address.
    for (let i = 1; i < IDENTITIES_MAX; i++) client.send(auth(i), -4);
    client.send(auth(1), -4);
    server.run();
    expect(client.takeArrivals()).toEqual(
      Array.from({ length: IDENTITIES_MAX }, () => expect.objectContaining(reply(-4, ErrorCode.ok))),
    );
    client.send(auth(IDENTITIES_MAX), -4);
    server.run();
    expect(client.takeArrivals()).toMatchObject([reply(-4, ErrorCode.authFailed), { kind: 'closed' }]);
  });

  test('a SASL token gets none back, and a packet without one closes the connection', () => {
    expect(answersTo({ op: OpCode.sasl, token: new Uint8Array(0) }, 3)).toMatchObject([reply(3, ErrorCode.ok)]);
    expect(answersTo({ op: OpCode.sasl, token: null }, 3)).toEqual([{ kind: 'closed' }]);
  });

  test('a ping is answered as a ping, regardless of its xid', () => {
    for (const xid of [-2, 0, 5]) {
      expect(answersTo({ op: OpCode.ping }, xid)).toMatchObject([{ kind: 'reply', header: { xid: -2 } }]);
    }
  });
});

describe('output of a turn', () => {
  const getData: Request = { op: OpCode.getData, path: '/a', watch: true };

  function serverWithClients(count: number): { server: TestServer; clients: TestClient[]; writer: TestClient } {
    const server = new TestServer();
    const writer = server.connect();
    writer.send({ op: OpCode.create, path: '/a', data: Uint8Array.of(1), acl: OPEN_ACL, flags: 0, ttl: 0 });
    server.run();
    const clients = Array.from({ length: count }, () => server.connect());
    for (const client of [...clients, writer]) client.takeArrivals();
    return { server, clients, writer };
  }

  test('leaves before its end once many connections have output, complete and only once', () => {
    const { server, clients } = serverWithClients(200);
    for (const client of clients) {
      client.send(getData);
      client.send({ op: OpCode.exists, path: '/b', watch: false });
    }
    const early = clients.map((client) => client.arrivals.length);
    expect(early[0]).toBe(2);
    expect(early.at(-1)).toBe(0);
    server.run();
    for (const client of clients) {
      expect(client.takeArrivals()).toMatchObject([
        { kind: 'reply', header: { xid: 1, error: ErrorCode.ok } },
        { kind: 'reply', header: { xid: 2, error: ErrorCode.noNode } },
      ]);
    }
  });

  test('has an event before the reply that shows the change, while other clients are read', () => {
    const { server, clients, writer } = serverWithClients(200);
    for (const client of clients) client.send(getData);
    server.run();
    for (const client of clients) client.takeArrivals();
    writer.send({ op: OpCode.setData, path: '/a', data: Uint8Array.of(2), version: -1 });
    server.core.onTurnEnd();
    while (writer.arrivals.length === 0 && server.disk.deliver()) {
      // All are read in the turn that notified them, and some of them while the output of others is pending.
      for (const client of clients) client.send(getData);
    }
    server.run();
    for (const client of clients) {
      const arrivals = client.takeArrivals();
      const eventAt = arrivals.findIndex(({ kind }) => kind === 'event');
      expect(eventAt).toBeGreaterThanOrEqual(0);
      arrivals.forEach((arrival, at) => {
        if (arrival.kind !== 'reply') return;
        const value = arrival.body[4];
        expect(value).toBe(at < eventAt ? 1 : 2);
      });
    }
  });

  test('has the event for an idle client, for the writer, before its reply, and for a slow reader', () => {
    const { server, clients, writer } = serverWithClients(3);
    const [quiet, asking, deaf] = clients;
    if (quiet === undefined || asking === undefined || deaf === undefined) throw new Error('three clients are open');
    for (const client of clients) client.send(getData);
    server.run();
    for (const client of clients) client.takeArrivals();
    // Its own write is answered, after the event.
    asking.send({ op: OpCode.setData, path: '/a', data: Uint8Array.of(2), version: -1 });
    deaf.isDeaf = true;
    server.run();
    const event = { kind: 'event', event: { type: 3, path: '/a' } };
    expect(quiet.takeArrivals()).toMatchObject([event]);
    expect(asking.takeArrivals()).toMatchObject([event, { kind: 'reply', header: { xid: 2 } }]);
    expect(deaf.takeArrivals()).toEqual([]);
    deaf.listen();
    expect(deaf.takeArrivals()).toMatchObject([event]);
    writer.send({ op: OpCode.setData, path: '/a', data: Uint8Array.of(3), version: -1 });
    server.run();
    expect(quiet.takeArrivals(), 'its watch is used up').toEqual([]);
  });
});

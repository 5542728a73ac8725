import { ErrorCode, OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { Bytes, PASSWORD, replyBytes, ScriptedWorld, Watcher } from './testing/scripted-server.ts';

const GET_A = { op: OpCode.getData, path: '/a', watch: false } as const;
const SET_A = { op: OpCode.setData, path: '/a', data: new Uint8Array([1]), version: -1 } as const;

function dataReply(xid: number, zxid: number, text = 'hi'): Uint8Array {
  return replyBytes(xid, zxid, 0, new Bytes().text(text).stat(zxid));
}

describe('the way to a server', () => {
  test('the connect request of a new session names no session, no zxid and the timeout that is wanted', () => {
    const world = new ScriptedWorld();
    world.session.start();
    const expected = new Bytes().int(0).long(0).int(9000).long(0).buffer(new Uint8Array(16)).byte(0).frame();
    expect(world.open()).toEqual(expected);
    expect(world.opened).toEqual([{ host: 'one', port: 2181, address: '10.0.0.1' }]);
  });

  test('an accepted session is told, with its server, and counts as the same session', () => {
    const world = new ScriptedWorld();
    world.connect(0x77, 4000);
    expect(world.states).toEqual([
      {
        state: 'connected',
        previous: 'connecting',
        reason: 'connected to one:2181 (10.0.0.1)',
        sessionId: 0x77n,
        sameSession: true,
        server: { host: 'one', port: 2181, address: '10.0.0.1' },
      },
    ]);
    expect(world.session.identity).toEqual({ id: 0x77n, password: new Uint8Array(PASSWORD) });
    expect(world.session.sessionTimeoutMs).toBe(4000);
  });

  test('every address of a name is tried, then the next host, and what failed is told', () => {
    const world = new ScriptedWorld({
      hosts: [
        { host: 'one', port: 1 },
        { host: 'two', port: 2 },
      ],
    });
    world.addresses = ['10.0.0.1', '10.0.0.2'];
    world.session.start();
    world.run();
    for (let i = 0; i < 4; i++) {
      world.session.onStreamClosed('refused', 'ECONNREFUSED');
      world.run();
    }
    expect(new Set(world.attempts.map(({ host, address }) => `${host} ${address}`)).size).toBe(4);
    expect(world.attempts.every(({ failure }) => failure === 'refused')).toBe(true);
    // A whole round was in vain: a pause, then the first host again.
    expect(world.opened.length).toBe(4);
    world.advance(1000);
    expect(world.opened.length).toBe(5);
  });

  test('a name that cannot be looked up is a failed attempt without an address', () => {
    const world = new ScriptedWorld();
    world.addresses = null;
    world.session.start();
    world.run();
    expect(world.attempts).toEqual([
      { host: 'one', port: 2181, address: null, failure: 'dns', detail: 'no such name' },
    ]);
    world.addresses = ['10.0.0.9'];
    world.advance(1000);
    expect(world.opened).toEqual([{ host: 'one', port: 2181, address: '10.0.0.9' }]);
  });

  test('a search that is given up says what it was waiting for at that moment', () => {
    const resolving = new ScriptedWorld();
    resolving.session.start();
    resolving.session.giveUp('enough');
    const dialling = new ScriptedWorld();
    dialling.session.start();
    dialling.run();
    dialling.session.giveUp('enough');
    const shaking = new ScriptedWorld();
    shaking.session.start();
    shaking.open();
    shaking.session.giveUp('enough');
    const told = [resolving, dialling, shaking].map(({ attempts }) => attempts);
    const attempt = { host: 'one', port: 2181, address: '10.0.0.1', failure: 'timed-out' };
    expect(told).toEqual([
      [{ ...attempt, address: null, detail: 'no answer of the name service until the search was given up' }],
      [{ ...attempt, detail: 'no connection until the search was given up' }],
      [{ ...attempt, detail: 'no answer to the connect request until the search was given up' }],
    ]);
    expect(shaking.isOpen).toBe(false);
    expect(shaking.states.map(({ state, reason }) => [state, reason])).toEqual([['closed', 'enough']]);
  });

  test.each([
    ['that never opens', (_world: ScriptedWorld) => {}, 'timed-out', 'no connection within 3000 ms'],
    [
      'that opens and says nothing',
      (world: ScriptedWorld) => world.session.onOpened(),
      'timed-out',
      'no answer to the connect request within 3000 ms',
    ],
    [
      'that speaks HTTP',
      (world: ScriptedWorld) => {
        world.session.onOpened();
        world.receive(new TextEncoder().encode('HTTP/1.1 400 Bad Request\r\n'));
      },
      'not-zookeeper',
      'it answered "HTTP/1.1 400 Bad Request"',
    ],
    [
      'that answers with another record',
      (world: ScriptedWorld) => {
        world.session.onOpened();
        world.receive(new Bytes().int(1).long(2).int(3).frame());
      },
      'not-zookeeper',
      'its first answer is no ConnectResponse',
    ],
    [
      'that closes without an answer',
      (world: ScriptedWorld) => {
        world.session.onOpened();
        world.close('closed by peer');
      },
      'not-serving',
      'closed before it answered: closed by peer',
    ],
  ])('a server %s is one failed attempt, and dialling continues', (_what, play, failure, detail) => {
    const world = new ScriptedWorld();
    world.session.start();
    world.run();
    play(world);
    world.advance(3000);
    expect(world.attempts[0]).toEqual({ host: 'one', port: 2181, address: '10.0.0.1', failure, detail });
    world.advance(3000);
    expect(world.opened.length).toBeGreaterThan(1);
    expect(world.session.state).toBe('connecting');
  });

  test('requests made before there is a connection are sent in their order once there is one', () => {
    const world = new ScriptedWorld();
    world.session.start();
    world.submit(SET_A);
    world.submit(GET_A);
    world.open();
    world.acceptSession();
    expect(world.takeFrames().map(({ xid, op }) => [xid, op])).toEqual([
      [1, OpCode.setData],
      [2, OpCode.getData],
    ]);
  });
});

describe('requests', () => {
  test('a reply that arrives byte by byte settles its request', () => {
    const world = new ScriptedWorld();
    world.connect();
    const asked = world.submit(GET_A);
    for (const byte of dataReply(1, 8)) world.receive(new Uint8Array([byte]));
    expect(asked.result).toMatchObject({ data: new TextEncoder().encode('hi'), stat: { mzxid: 8n } });
  });

  test('many replies in one chunk settle their requests in order', () => {
    const world = new ScriptedWorld();
    world.connect();
    const asked = [world.submit(GET_A), world.submit(SET_A), world.submit(GET_A)];
    world.receive(new Uint8Array([...dataReply(1, 8, 'x'), ...replyBytes(2, 9, -103), ...dataReply(3, 9, 'y')]));
    expect(asked.map(({ result, failure }) => failure ?? (result as { data: Uint8Array }).data[0])).toEqual([
      0x78,
      { kind: 'refused', code: -103, server: 'one:2181 (10.0.0.1)' },
      0x79,
    ]);
  });

  test('one that is longer than servers take is refused here, and takes no number', () => {
    const world = new ScriptedWorld();
    world.connect();
    const large = world.submit({ ...SET_A, data: new Uint8Array(2000) });
    world.submit(GET_A);
    expect(large.failure).toMatchObject({ kind: 'request-too-large', wasSent: false });
    expect(world.takeFrames().map(({ xid, op }) => [xid, op])).toEqual([[1, OpCode.getData]]);
  });

  test('one that cannot be written is refused, whether it waited or not, and leaves no bytes', () => {
    const world = new ScriptedWorld();
    world.session.start();
    const broken = { ...SET_A, path: undefined as unknown as string };
    const waiting = [world.submit(broken), world.submit(GET_A)];
    world.connect();
    const sent = [world.submit(GET_A), world.submit(broken), world.submit(GET_A)];
    const refused = { kind: 'malformed-request', wasSent: false };
    expect(waiting.map(({ failure }) => failure)).toEqual([expect.objectContaining(refused), null]);
    expect(sent.map(({ failure }) => failure)).toEqual([null, expect.objectContaining(refused), null]);
    expect(world.takeFrames().map(({ xid, op }) => [xid, op])).toEqual([1, 2, 3].map((xid) => [xid, OpCode.getData]));
  });

  test('a cancelled request is settled at once, and its late reply has no effect', () => {
    const world = new ScriptedWorld();
    world.connect();
    const given = world.submit(GET_A);
    const kept = world.submit(GET_A);
    world.session.calls.cancel(given.call, 'timed-out', 'too late');
    expect(given.failure).toMatchObject({ kind: 'timed-out', wasSent: true });
    world.receive(new Uint8Array([...dataReply(1, 8), ...dataReply(2, 8)]));
    expect(kept.result).toBeDefined();
    expect(given.result).toBeUndefined();
  });

  test('a reply that was not due ends the connection; the request that got it is not sent again', () => {
    const world = new ScriptedWorld();
    world.connect();
    const first = world.submit(GET_A);
    const second = world.submit(GET_A);
    world.receive(dataReply(7, 8));
    expect(first.failure).toMatchObject({ kind: 'bad-reply' });
    expect(second.isSettled).toBe(false);
    expect(world.session.state).toBe('suspended');
    expect(world.opened.length).toBe(2);
  });

  test.each([
    ['cut off', new Bytes().int(100).byte(1)],
    ['empty', new Bytes()],
  ])('a record that is %s rejects its own request and no other', (_what, body) => {
    const world = new ScriptedWorld();
    world.connect();
    const bad = world.submit(GET_A);
    const good = world.submit(GET_A);
    world.reply(1, 8, 0, body);
    world.receive(dataReply(2, 8));
    expect(bad.failure).toMatchObject({ kind: 'bad-reply', wasSent: true });
    expect(good.result).toBeDefined();
  });
});

describe('a connection that breaks', () => {
  test('reads are sent again and keep their place; writes fail as perhaps done; what waits was not sent', () => {
    const world = new ScriptedWorld();
    world.connect();
    const write = world.submit(SET_A);
    const read = world.submit(GET_A);
    world.takeFrames();
    world.close();
    expect(world.session.state).toBe('suspended');
    expect(write.failure).toMatchObject({ kind: 'connection-lost', wasSent: true });
    expect(read.isSettled).toBe(false);
    const later = world.submit(SET_A);
    world.advance(200);
    world.open();
    world.acceptSession();
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.getData, OpCode.setData]);
    world.receive(dataReply(1, 9));
    expect(read.result).toBeDefined();
    expect(later.isSettled).toBe(false);
    expect(world.stateNames).toEqual(['connected', 'suspended', 'connected']);
    expect(world.states[2]?.sameSession).toBe(true);
  });

  test('the next connect request offers the session and the last zxid that was seen', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.submit(GET_A);
    world.receive(dataReply(1, 0x1_0000_0005));
    world.close();
    world.advance(200);
    const expected = new Bytes().int(0).long(0x1_0000_0005).int(9000).long(0x77).buffer(PASSWORD).byte(0).frame();
    expect(world.open()).toEqual(expected);
  });

  test('a failure shows how far the server is like any other reply', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.submit(GET_A);
    world.reply(1, 0x1_0000_0005, ErrorCode.noNode);
    world.close();
    world.advance(200);
    const expected = new Bytes().int(0).long(0x1_0000_0005).int(9000).long(0x77).buffer(PASSWORD).byte(0).frame();
    expect(world.open()).toEqual(expected);
  });

  test('a read that makes the server close the connection is not repeated for ever', () => {
    const world = new ScriptedWorld({ sessionTimeoutMs: 1e9 });
    world.connect(0x77, 1e9);
    const read = world.submit(GET_A);
    for (let i = 0; i < 5; i++) {
      world.close();
      world.advance(3000);
      if (read.isSettled) break;
      world.open();
      world.acceptSession(0x77, 1e9);
    }
    expect(read.failure).toMatchObject({ kind: 'connection-lost' });
  });

  test('credentials go first on the new connection, then the watches, then requests', () => {
    const world = new ScriptedWorld({ credentials: [{ scheme: 'digest', auth: new Uint8Array([1]) }] });
    world.connect();
    world.submit({ ...GET_A, watch: true }, new Watcher());
    world.reply(-4, 0, 0);
    world.receive(dataReply(1, 8));
    const waiting = world.submit(GET_A);
    world.takeFrames();
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession();
    const frames = world.takeFrames();
    expect(frames.map(({ xid, op }) => [xid, op])).toEqual([
      [-4, OpCode.auth],
      [-8, OpCode.setWatches],
      [1, OpCode.getData],
    ]);
    // relativeZxid, one data watch on /a, nothing else
    expect(frames[1]?.body).toEqual(new Uint8Array(new Bytes().long(8).int(1).text('/a').int(0).int(0).list));
    expect(waiting.isSettled).toBe(false);
  });
});

describe('time', () => {
  test('a ping without a connection fails with the reason that requests fail with', () => {
    const world = new ScriptedWorld();
    const failures: (string | undefined)[] = [];
    const ping = (): void => world.session.calls.ping((failure) => failures.push(failure?.kind));
    ping();
    world.connect();
    world.session.onStreamClosed(null, 'gone');
    ping();
    world.advance(9000);
    ping();
    world.session.close();
    ping();
    expect(failures).toEqual(['connection-lost', 'connection-lost', 'session-lost', 'closed']);
  });

  test('an idle connection is kept alive by pings, each a third of the session timeout after the last sending', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.takeFrames();
    for (let i = 0; i < 10; i++) {
      world.advance(3000);
      expect(world.takeFrames().map(({ xid, op }) => [xid, op])).toEqual([[-2, OpCode.ping]]);
      world.reply(-2, 0, 0);
    }
    expect(world.stateNames).toEqual(['connected']);
  });

  test('a server that is silent for two thirds of the timeout is left for another', () => {
    const world = new ScriptedWorld({
      hosts: [
        { host: 'one', port: 2181 },
        { host: 'two', port: 2181 },
      ],
    });
    world.connect();
    world.advance(5999);
    expect(world.session.state).toBe('connected');
    world.advance(1);
    expect(world.states.at(-1)).toMatchObject({ state: 'suspended', reason: 'the server was silent for 6000 ms' });
    expect(world.opened.length).toBe(2);
    expect(world.opened[1]?.host).not.toBe(world.opened[0]?.host);
  });

  test('the session is lost one timeout after the sending of the last request that was answered, not later', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.advance(1000);
    const write = world.submit(SET_A);
    world.takeFrames();
    world.advance(500);
    world.reply(1, 9, 0, new Bytes().stat(9));
    expect(write.result).toBeDefined();
    world.close();
    // Sent at 1000 after the connection: lost at 10,000, although the answer came 500 later.
    const waiting = world.submit(GET_A);
    world.advance(8499);
    expect(world.session.state).toBe('suspended');
    expect(waiting.isSettled).toBe(false);
    world.advance(1);
    expect(world.session.state).toBe('lost');
    expect(waiting.failure).toMatchObject({ kind: 'session-lost', wasSent: false });
    expect(world.submit(GET_A).failure).toMatchObject({ kind: 'session-lost', wasSent: false });
  });

  test('a lost session that comes back is reported as the same', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.close();
    world.advance(9000);
    expect(world.session.state).toBe('lost');
    world.open();
    world.acceptSession();
    expect(world.states.at(-1)).toMatchObject({ state: 'connected', previous: 'lost', sameSession: true });
  });

  test('a stalled event loop is told, and the server gets the chance to be heard before it is left', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.nowMs += 7000;
    world.session.onTick();
    world.run();
    expect(world.stalls).toEqual([4000]);
    expect(world.session.state).toBe('connected');
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.ping]);
    world.reply(-2, 0, 0);
    world.advance(2000);
    expect(world.stateNames).toEqual(['connected']);
  });

  test('after a stall longer than the timeout the session is lost, whatever the server may still say', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.nowMs += 20_000;
    world.session.onTick();
    expect(world.stateNames).toEqual(['connected', 'suspended', 'lost']);
  });
});

describe('bytes that were read late', () => {
  test('a reply that proves nothing recent comes together with the loss of the session', () => {
    const world = new ScriptedWorld();
    world.connect();
    const read = world.submit(GET_A);
    world.takeFrames();
    world.nowMs += 20_000;
    world.receive(dataReply(1, 8));
    expect(read.result).toBeDefined();
    expect(world.stateNames).toEqual(['connected', 'suspended', 'lost']);
  });

  test('a reply to a request that was sent not so long ago keeps the session', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.advance(3000);
    world.takeFrames();
    world.nowMs += 8000;
    world.receive(replyBytes(-2, 0, 0));
    expect(world.stateNames).toEqual(['connected']);
  });
});

describe('expiry', () => {
  test('a refused session is lost; a new one is asked for at once and told as another', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.close();
    const waiting = world.submit(SET_A);
    world.advance(200);
    world.open();
    world.refuseSession();
    expect(world.session.state).toBe('lost');
    expect(waiting.failure).toMatchObject({ kind: 'session-expired', wasSent: false });
    expect(world.session.identity).toBeNull();
    const request = world.open();
    expect(new DataView(request.buffer).getBigInt64(4 + 4 + 8 + 4)).toBe(0n);
    world.acceptSession(0x78);
    expect(world.states.at(-1)).toMatchObject({ state: 'connected', sameSession: false, sessionId: 0x78n });
  });

  test('the timeout is counted from the sending of the connect request, however late its answer comes', () => {
    const world = new ScriptedWorld();
    world.open();
    const sentAtMs = world.nowMs;
    world.advance(1000);
    world.acceptSession(0x77, 9000);
    expect(world.session.sureUntilMs).toBe(sentAtMs + 9000);
    world.session.onStreamClosed(null, 'gone');
    world.advance(sentAtMs + 9000 - world.nowMs);
    expect(world.session.state).toBe('lost');
  });

  test('a session is certain for no longer than the shortest timeout that a server gave to it', () => {
    const session = { id: 0x77n, password: new Uint8Array(PASSWORD), timeoutMs: 4000 };
    const world = new ScriptedWorld({ session });
    // Servers may have other limits than the one that made it, and remember its first timeout when they start.
    world.connect(0x77, 9000);
    expect(world.session.sessionTimeoutMs).toBe(4000);
    expect(world.session.sureUntilMs).toBe(world.nowMs + 4000);
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession(0x77, 3000);
    expect(world.session.sureUntilMs).toBe(world.nowMs + 3000);
    // Each asks for what is wanted all the same, and a new session has what it was given.
    world.close();
    world.advance(200);
    expect(new DataView(world.open().buffer).getInt32(16)).toBe(9000);
    world.refuseSession();
    world.open();
    world.acceptSession(0x88, 9000);
    expect(world.session.sessionTimeoutMs).toBe(9000);
    expect(world.session.sureUntilMs).toBe(world.nowMs + 9000);
  });

  test('a session given by the user that has expired is reported as lost, then replaced', () => {
    const world = new ScriptedWorld({ session: { id: 5n, password: new Uint8Array(PASSWORD) } });
    world.session.start();
    const request = world.open();
    expect(new DataView(request.buffer).getBigInt64(4 + 4 + 8 + 4)).toBe(5n);
    world.refuseSession();
    world.open();
    world.acceptSession(6);
    expect(world.states.map(({ state, sameSession }) => [state, sameSession])).toEqual([
      ['lost', true],
      ['connected', false],
    ]);
  });

  test('servers that have less than the lost session has seen are asked whether they know it at all', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.submit(GET_A);
    world.receive(dataReply(1, 500));
    world.close();
    world.advance(9000);
    expect(world.session.state).toBe('lost');
    const before = new DataView(world.open().buffer);
    expect([before.getBigInt64(8), before.getBigInt64(20)]).toEqual([500n, 0x77n]);
    world.close();
    const inquiry = new DataView(world.open().buffer);
    expect([inquiry.getBigInt64(8), inquiry.getBigInt64(20)]).toEqual([0n, 0x77n]);
    world.refuseSession();
    const fresh = new DataView(world.open().buffer);
    expect([fresh.getBigInt64(8), fresh.getBigInt64(20)]).toEqual([0n, 0n]);
    world.acceptSession(0x99);
    expect(world.states.at(-1)).toMatchObject({ state: 'connected', sameSession: false });
  });

  test('a server that is behind but knows the session is left again', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.submit(GET_A);
    world.receive(dataReply(1, 500));
    world.close();
    world.advance(9000);
    world.open();
    world.close();
    world.open();
    world.acceptSession();
    expect(world.session.state).toBe('lost');
    expect(world.attempts.at(-1)).toMatchObject({ detail: 'it is behind what this session has seen' });
  });

  test('a server that is behind has the time to forget the session before it is asked about it again', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.submit(GET_A);
    world.receive(dataReply(1, 500));
    world.close();
    world.advance(9000);
    world.open();
    world.close();
    world.open();
    world.acceptSession(0x77, 4000);
    const acceptedAtMs = world.nowMs;
    /** The next attempt, closed by the server if it names a zxid. @returns whether it was an inquiry */
    const attempt = (): boolean => {
      while (!world.isOpen) world.advance(50);
      const isInquiry = new DataView(world.open().buffer).getBigInt64(8) === 0n;
      if (!isInquiry) world.close();
      return isInquiry;
    };
    let attempts = 0;
    while (!attempt()) attempts++;
    expect(attempts).toBeGreaterThan(2);
    expect(world.nowMs - acceptedAtMs).toBeGreaterThanOrEqual(8000);
    world.refuseSession();
    world.open();
    world.acceptSession(0x99);
    expect(world.states.at(-1)).toMatchObject({ state: 'connected', sameSession: false, sessionId: 0x99n });
  });

  test('an answer that the session has expired ends it, before it is refused on the next connection', () => {
    const world = new ScriptedWorld();
    world.connect();
    const write = world.submit(SET_A);
    const behind = world.submit(SET_A);
    world.nowMs += 100;
    world.reply(1, 9, -112);
    expect(write.failure).toMatchObject({ kind: 'refused', code: -112 });
    expect(behind.failure).toMatchObject({ kind: 'connection-lost', wasSent: true });
    expect(world.states.at(-1)).toMatchObject({
      state: 'lost',
      reason: 'one:2181 (10.0.0.1) says that the session has expired',
    });
    expect(world.session.sureUntilMs).toBe(Number.NEGATIVE_INFINITY);
    world.advance(200);
    world.open();
    world.refuseSession();
    world.open();
    world.acceptSession(0x88);
    expect(world.states.at(-1)).toMatchObject({ state: 'connected', sameSession: false });
  });

  test('a transaction that is refused since the session has expired ends it, too', () => {
    const world = new ScriptedWorld();
    world.connect();
    const multi = world.submit({ op: OpCode.multi, ops: [SET_A] });
    const refusal = new Bytes().int(-1).byte(0).int(-112).int(-112).int(-1).byte(1).int(-1);
    world.reply(1, 9, 0, refusal);
    expect(multi.result).toEqual([{ ok: false, code: -112 }]);
    expect(world.session.state).toBe('lost');
  });

  test('the loss of an expired session names it', () => {
    const world = new ScriptedWorld();
    world.connect(0x77);
    world.close();
    world.advance(200);
    world.open();
    world.refuseSession();
    expect(world.states.at(-1)).toMatchObject({ state: 'lost', sessionId: 0x77n });
    expect(world.session.identity).toBeNull();
  });
});

describe('the end', () => {
  test('close is sent behind what is in flight, and done when the server has answered', () => {
    const world = new ScriptedWorld();
    world.connect();
    const read = world.submit(GET_A);
    world.session.close();
    expect(world.submit(GET_A).failure).toMatchObject({ kind: 'closed' });
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.getData, OpCode.closeSession]);
    world.receive(dataReply(1, 8));
    expect(read.result).toBeDefined();
    world.reply(2, 9, 0);
    expect(world.session.state).toBe('closed');
    expect(world.session.nextDeadlineMs()).toBe(Number.POSITIVE_INFINITY);
  });

  test('a session that is being closed is not certain, whatever is answered meanwhile', () => {
    const world = new ScriptedWorld();
    world.connect();
    const write = world.submit(SET_A);
    world.session.close();
    expect(world.closingAtMs).toEqual([world.nowMs]);
    expect(world.session.sureUntilMs).toBe(Number.NEGATIVE_INFINITY);
    world.nowMs += 100;
    world.reply(1, 9, 0, new Bytes().stat(9));
    expect(write.result).toBeDefined();
    expect(world.session.state).toBe('connected');
    expect(world.session.sureUntilMs).toBe(Number.NEGATIVE_INFINITY);
    world.reply(2, 10, 0);
    expect(world.session.state).toBe('closed');
  });

  test('that the session is being closed is reported before anything of it leaves, however much is waiting to', () => {
    const world = new ScriptedWorld({ requestBytesMax: 0xfffff });
    world.connect();
    // Together with the closing, it is so much that it leaves without waiting for the rest.
    world.submit({ ...SET_A, data: new Uint8Array(64 * 1024 - 36) });
    world.session.close();
    expect(world.sentBytesAtClosing).toBe(0);
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.setData, OpCode.closeSession]);
  });

  test('a connection that breaks while closing is the end all the same', () => {
    const world = new ScriptedWorld();
    world.connect();
    const write = world.submit(SET_A);
    world.session.close();
    world.close();
    expect(world.session.state).toBe('closed');
    expect(write.failure).toMatchObject({ kind: 'closed', wasSent: true });
  });

  test('refused credentials end the client, and waiting callers are notified', () => {
    const world = new ScriptedWorld();
    world.connect();
    const watcher = new Watcher();
    world.submit({ ...GET_A, watch: true }, watcher);
    world.receive(dataReply(1, 8));
    const read = world.submit(GET_A);
    let failure: unknown;
    world.session.calls.addCredentials('digest', new Uint8Array(1), (told) => {
      failure = told;
    });
    world.reply(-4, 0, -115);
    expect(failure).toMatchObject({ kind: 'auth-failed' });
    expect(read.failure).toMatchObject({ kind: 'auth-failed' });
    expect(watcher.told).toEqual(['ended auth-failed']);
    expect(world.stateNames).toEqual(['connected', 'auth-failed']);
  });

  test('every request is settled, whenever the client ends', () => {
    const plays: ((world: ScriptedWorld) => void)[] = [
      () => {},
      (world) => world.open(),
      (world) => {
        world.open();
        world.acceptSession();
      },
      (world) => {
        world.connect();
        world.close();
      },
    ];
    for (const play of plays) {
      const world = new ScriptedWorld();
      world.session.start();
      const early = world.submit(SET_A);
      play(world);
      const late = world.submit(GET_A);
      world.session.end('closed', 'over');
      expect([early.isSettled, late.isSettled]).toEqual([true, true]);
      expect(world.isOpen).toBe(false);
    }
  });
});

describe('moving', () => {
  test('what is in flight is answered first; what comes meanwhile goes to the other server, in the same session', () => {
    const world = new ScriptedWorld();
    world.connect();
    const before = world.submit(SET_A);
    world.session.moveTo({ host: 'two', port: 2182 });
    const after = world.submit(SET_A);
    expect(world.takeFrames().length).toBe(1);
    expect(world.session.state).toBe('connected');
    world.reply(1, 9, 0, new Bytes().stat(9));
    expect(before.result).toBeDefined();
    expect(world.session.state).toBe('suspended');
    world.open();
    world.acceptSession();
    expect(world.opened.at(-1)).toMatchObject({ host: 'two', port: 2182 });
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.setData]);
    expect(after.isSettled).toBe(false);
    expect(world.states.at(-1)).toMatchObject({ state: 'connected', sameSession: true });
  });

  test('a read that is in flight when the connection breaks is sent again before what waits for the other server', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.submit(GET_A);
    world.session.moveTo({ host: 'two', port: 2182 });
    world.submit(SET_A);
    world.takeFrames();
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession();
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.getData, OpCode.setData]);
  });
});

describe('a read-only server', () => {
  test('is reported as read-only; others are asked, and one with a quorum is moved to with a new session', () => {
    const hosts = [
      { host: 'one', port: 2181 },
      { host: 'two', port: 2181 },
    ];
    const world = new ScriptedWorld({ canBeReadOnly: true, hosts });
    world.session.start();
    world.open();
    world.acceptSession(0x1, 9000, true);
    expect(world.session.state).toBe('read-only');
    const here = world.opened[0]?.host;
    world.advance(100);
    expect(world.probes.map(({ host }) => host)).toEqual([here === 'one' ? 'two' : 'one']);
    world.session.onProbed(world.probes[0]!, true);
    const request = new DataView(world.open().buffer);
    expect(world.opened.at(-1)?.host).not.toBe(here);
    expect(request.getBigInt64(20)).toBe(0n);
    world.acceptSession(0x50);
    expect(world.states.at(-1)).toMatchObject({ state: 'connected', sessionId: 0x50n, sameSession: false });
  });

  test('proves nothing by its answers: the session is in doubt a timeout after the last server with a quorum, and usable', () => {
    const world = new ScriptedWorld({ canBeReadOnly: true });
    world.connect(0x77, 9000);
    const connectSentAtMs = world.nowMs;
    expect(world.session.sureUntilMs).toBe(connectSentAtMs + 9000);
    world.session.onStreamClosed(null, 'gone');
    world.advance(1000);
    world.open();
    world.acceptSession(0x77, 9000, true);
    // Each ping is answered, for 15 s.
    for (let i = 0; i < 5; i++) {
      world.advance(3000);
      world.receive(replyBytes(-2, 0, 0));
    }
    expect(world.session.state).toBe('read-only');
    expect(world.unsureAtMs).toHaveLength(1);
    expect(world.unsureAtMs[0]).toBeGreaterThanOrEqual(connectSentAtMs + 9000);
    expect(world.unsureAtMs[0]).toBeLessThan(connectSentAtMs + 12_000);
    expect(world.session.sureUntilMs).toBe(Number.NEGATIVE_INFINITY);
    // Nor is it known to live while the next server is looked for: but what may wait waits.
    world.session.onStreamClosed(null, 'gone');
    expect(world.session.state).toBe('suspended');
    expect(world.session.sureUntilMs).toBe(Number.NEGATIVE_INFINITY);
    const read = world.submit(GET_A);
    expect(read.isSettled).toBe(false);
    world.advance(1000);
    world.open();
    world.acceptSession(0x77, 9000);
    expect(world.states.at(-1)).toMatchObject({ state: 'connected', sameSession: true });
    expect(world.session.sureUntilMs).toBeGreaterThan(world.nowMs);
  });

  test('makes no session that was lost certain again', () => {
    const world = new ScriptedWorld({ canBeReadOnly: true });
    world.connect(0x77, 9000);
    world.session.onStreamClosed(null, 'gone');
    world.advance(10_000);
    expect(world.session.state).toBe('lost');
    world.open();
    world.acceptSession(0x77, 9000, true);
    expect(world.session.state).toBe('read-only');
    expect(world.session.sureUntilMs).toBe(Number.NEGATIVE_INFINITY);
    expect(world.unsureAtMs).toEqual([]);
  });
});

describe('watches', () => {
  const ADD_RECURSIVE = { op: OpCode.addWatch, path: '/a', mode: 1 } as const;
  const ADD_PERSISTENT = { op: OpCode.addWatch, path: '/a', mode: 0 } as const;

  test('a one-shot watch is reported once, before the reply that follows the event', () => {
    const world = new ScriptedWorld();
    world.connect();
    const watcher = new Watcher();
    world.submit({ ...GET_A, watch: true }, watcher);
    world.receive(dataReply(1, 8));
    world.notify(3, '/a', 9);
    world.notify(3, '/a', 10);
    expect(watcher.told).toEqual(['changed /a 9']);
  });

  test('exists leaves a watch for the creation of a znode that is missing', () => {
    const world = new ScriptedWorld();
    world.connect();
    const watcher = new Watcher();
    world.submit({ op: OpCode.exists, path: '/a', watch: true }, watcher);
    world.reply(1, 8, -101);
    world.notify(1, '/a');
    expect(watcher.told).toEqual(['created /a']);
  });

  test('a get of a missing znode leaves no watch', () => {
    const world = new ScriptedWorld();
    world.connect();
    const watcher = new Watcher();
    world.submit({ ...GET_A, watch: true }, watcher);
    world.reply(1, 8, -101);
    world.notify(1, '/a');
    expect(watcher.told).toEqual([]);
    expect(world.session.watches.size).toBe(0);
  });

  test('a recursive watch learns of descendants, and of no others', () => {
    const world = new ScriptedWorld();
    world.connect();
    const watcher = new Watcher();
    world.submit(ADD_RECURSIVE, watcher);
    world.reply(1, 8, 0, new Bytes().int(0));
    world.notify(1, '/a/b/c', 9);
    world.notify(1, '/ab', 9);
    world.notify(2, '/a', 10);
    expect(watcher.told).toEqual(['created /a/b/c 9', 'deleted /a 10']);
  });

  test('on a server that keeps one mode a path, one-shot watches are served by the recursive watch that stands there', () => {
    const world = new ScriptedWorld();
    world.connect();
    const recursive = new Watcher();
    const data = new Watcher();
    const child = new Watcher();
    world.submit(ADD_RECURSIVE, recursive);
    world.submit({ ...GET_A, watch: true }, data);
    world.submit({ op: OpCode.getChildren2, path: '/a', watch: true }, child);
    // addWatch; the question whether modes are kept apart; get and getChildren without their watch flag
    const frames = world.takeFrames();
    expect(frames.map(({ op }) => op)).toEqual([106, 17, 4, 12]);
    expect(frames.slice(2).map(({ body }) => body.at(-1))).toEqual([0, 0]);
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, -5);
    world.reply(3, 8, 0, new Bytes().text('').stat(8));
    world.reply(4, 8, 0, new Bytes().int(0).stat(8));
    world.notify(1, '/a/b');
    world.notify(3, '/a');
    expect(child.told).toEqual(['children /a']);
    expect(data.told).toEqual(['changed /a']);
    expect(recursive.told).toEqual(['created /a/b', 'changed /a']);
  });

  test('a server that keeps modes apart is asked for each watch, and a change is still told once', () => {
    const world = new ScriptedWorld();
    world.connect();
    const recursive = new Watcher();
    const persistent = new Watcher();
    world.submit(ADD_RECURSIVE, recursive);
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, 0);
    world.submit(ADD_PERSISTENT, persistent);
    world.takeFrames();
    world.reply(3, 8, 0, new Bytes().int(0));
    world.notify(1, '/a/b', 9);
    world.notify(4, '/a', 9);
    expect(persistent.told).toEqual(['children /a 9']);
    expect(recursive.told).toEqual(['created /a/b 9']);
  });

  test('a plain persistent watch never replaces a recursive one on an old server', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.submit(ADD_RECURSIVE, new Watcher());
    world.submit(ADD_PERSISTENT, new Watcher());
    const modes = world
      .takeFrames()
      .filter(({ op }) => op === OpCode.addWatch)
      .map(({ body }) => body.at(-1));
    expect(modes).toEqual([1, 1]);
  });

  test('all watches are armed again on a new connection, and told when they are', () => {
    const world = new ScriptedWorld();
    world.connect();
    const watcher = new Watcher();
    world.submit(ADD_RECURSIVE, watcher);
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, 0);
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession();
    const [frame] = world.takeFrames();
    expect([frame?.xid, frame?.op]).toEqual([-8, OpCode.setWatches2]);
    expect(frame?.body).toEqual(new Uint8Array(new Bytes().long(8).int(0).int(0).int(0).int(0).int(1).text('/a').list));
    expect(watcher.told).toEqual(['suspended']);
    world.reply(-8, 9, 0);
    expect(watcher.told).toEqual(['suspended', 'rearmed']);
  });

  test('a hundred thousand watches are armed again in requests that servers take', () => {
    const world = new ScriptedWorld({ requestBytesMax: 0xfffff });
    world.connect();
    for (let i = 0; i < 100_000; i++) world.session.watches.add('data', `/some/longer/path/${i}`, new Watcher());
    const requests = world.session.watches.rearmRequests(1);
    expect(requests.length).toBeGreaterThan(10);
    expect(requests.flatMap(({ dataWatches }) => dataWatches).length).toBe(100_000);
    for (const { dataWatches } of requests) expect(dataWatches.join('').length).toBeLessThan(200_000);
  });

  test('the last listener that goes takes the watch off the server', () => {
    const world = new ScriptedWorld();
    world.connect();
    const [one, two] = [new Watcher(), new Watcher()];
    world.submit(ADD_RECURSIVE, one);
    world.submit(ADD_RECURSIVE, two);
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, 0);
    world.reply(3, 8, 0, new Bytes().int(0));
    world.takeFrames();
    let isDone = false;
    world.session.calls.removeWatch('recursive', '/a', one, () => {});
    expect(world.takeFrames()).toEqual([]);
    world.session.calls.removeWatch('recursive', '/a', two, () => {
      isDone = true;
    });
    const [frame] = world.takeFrames();
    expect([frame?.op, frame?.body]).toEqual([18, new Uint8Array(new Bytes().text('/a').int(5).list)]);
    world.reply(4, 8, 0);
    expect(isDone).toBe(true);
    expect(world.session.watches.size).toBe(0);
  });

  test('on an old server the whole entry goes, and what is still wanted is armed again', () => {
    const world = new ScriptedWorld();
    world.connect();
    const recursive = new Watcher();
    world.submit(ADD_RECURSIVE, recursive);
    world.submit({ ...GET_A, watch: true }, new Watcher());
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, -5);
    world.receive(dataReply(3, 8));
    world.takeFrames();
    world.session.calls.removeWatch('recursive', '/a', recursive, () => {});
    const frames = world.takeFrames();
    expect(frames.map(({ xid, op }) => [xid, op])).toEqual([
      [4, 18],
      [-8, 101],
    ]);
    expect(frames[0]?.body.at(-1)).toBe(3);
  });

  test('a watch whose request was given up is taken off the server when it turns out to stand', () => {
    const world = new ScriptedWorld();
    world.connect();
    const added = world.submit(ADD_RECURSIVE, new Watcher());
    world.session.calls.cancel(added.call, 'aborted', 'not wanted');
    world.takeFrames();
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, 0);
    expect(world.takeFrames().map(({ op }) => op)).toEqual([18]);
    expect(world.session.watches.size).toBe(0);
  });

  test('a one-shot watch that was left to a persistent one stands by itself when that one goes before the reply', () => {
    for (const modes of ['one', 'apart'] as const) {
      const world = new ScriptedWorld();
      world.connect();
      const [persistent, data] = [new Watcher(), new Watcher()];
      world.submit(ADD_PERSISTENT, persistent);
      world.submit({ ...GET_A, watch: true }, data);
      expect(world.takeFrames().at(-1)?.body.at(-1)).toBe(0);
      world.reply(1, 8, 0, new Bytes().int(0));
      world.reply(2, 8, modes === 'one' ? -5 : -121);
      world.session.calls.removeWatch('persistent', '/a', persistent, () => {});
      expect(world.takeFrames().map(({ op }) => op)).toEqual([18]);
      world.receive(dataReply(3, 9));
      // What changes from the reply on is told: the zxid of the reply is the one to compare with.
      const [frame] = world.takeFrames();
      expect([frame?.xid, frame?.op]).toEqual([-8, OpCode.setWatches]);
      expect(frame?.body).toEqual(new Uint8Array(new Bytes().long(9).int(1).text('/a').int(0).int(0).list));
      world.notify(3, '/a', 10);
      expect(data.told).toEqual(['changed /a 10']);
    }
  });

  test('a one-shot watch misses nothing between a persistent watch that goes and the next', () => {
    for (const [mode, lists] of [
      [0, new Bytes().int(1).text('/a').int(0)],
      [1, new Bytes().int(0).int(1).text('/a')],
    ] as const) {
      const world = new ScriptedWorld();
      world.connect();
      const [persistent, data] = [new Watcher(), new Watcher()];
      world.submit(ADD_PERSISTENT, persistent);
      world.reply(1, 8, 0, new Bytes().int(0));
      world.reply(2, 8, -5);
      world.submit({ ...GET_A, watch: true }, data);
      world.session.calls.removeWatch('persistent', '/a', persistent, () => {});
      world.submit({ op: OpCode.addWatch, path: '/a', mode }, new Watcher());
      expect(world.takeFrames().map(({ op }) => op)).toEqual([106, 17, OpCode.getData, 18, 106]);
      world.receive(dataReply(3, 9));
      // The later watch, which reports nothing of what was before it, stays the one that the server keeps.
      const [frame] = world.takeFrames();
      expect([frame?.xid, frame?.op]).toEqual([-8, OpCode.setWatches2]);
      const expected = new Bytes().long(9).int(1).text('/a').int(0).int(0);
      expect(frame?.body).toEqual(new Uint8Array([...expected.list, ...lists.list]));
    }
  });

  test('a one-shot watch that is read while a persistent one goes that was asked for as a recursive one stays', () => {
    const world = new ScriptedWorld();
    world.connect();
    const [persistent, data] = [new Watcher(), new Watcher()];
    const recursive = world.submit(ADD_RECURSIVE, new Watcher());
    world.submit(ADD_PERSISTENT, persistent);
    world.session.calls.cancel(recursive.call, 'aborted', 'not wanted');
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, -121);
    world.reply(3, 8, 0, new Bytes().int(0));
    world.submit({ ...GET_A, watch: true }, data);
    world.takeFrames();
    world.session.calls.removeWatch('persistent', '/a', persistent, () => {});
    // By kind: all watches of the path would be those of the read, too.
    const frames = world.takeFrames();
    expect(frames.map(({ op, body }) => [op, body.at(-1)])).toEqual([
      [18, 5],
      [18, 4],
    ]);
  });

  test('a persistent watch that a recursive one served learns of children until it is set again', () => {
    for (const modes of ['one', 'apart', 'rearmed'] as const) {
      const world = new ScriptedWorld();
      world.connect();
      const [persistent, recursive] = [new Watcher(), new Watcher()];
      world.submit(ADD_RECURSIVE, recursive);
      world.submit(ADD_PERSISTENT, persistent);
      world.reply(1, 8, 0, new Bytes().int(0));
      world.reply(2, 8, modes === 'apart' ? -121 : -5);
      world.reply(3, 8, 0, new Bytes().int(0));
      if (modes === 'rearmed') {
        world.close();
        world.advance(200);
        world.open();
        world.acceptSession();
        world.reply(-8, 8, 0);
        world.reply(1, 8, -5);
      }
      persistent.told.length = 0;
      world.takeFrames();
      world.session.calls.removeWatch('recursive', '/a', recursive, () => {});
      const removal = world.takeFrames().find(({ op }) => op === 18);
      // It was on its way when the recursive watch went.
      world.notify(1, '/a/b', 9);
      expect(persistent.told).toEqual(['children /a 9']);
      world.reply(removal?.xid ?? 0, 9, 0);
      // From here on the server reports by itself; others may learn of the subtree still.
      world.notify(1, '/a/c', 10);
      expect(persistent.told).toEqual(['children /a 9']);
      world.session.calls.removeWatch('persistent', '/a', persistent, () => {});
      expect(world.session.watches.size).toBe(0);
    }
  });

  test('beside a recursive watch that was armed again, a one-shot watch stands by itself where servers keep modes apart', () => {
    const exists = { op: OpCode.exists, path: '/a', watch: true } as const;
    const world = new ScriptedWorld();
    world.connect();
    world.submit(ADD_RECURSIVE, new Watcher());
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, -121);
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession();
    // Whether this server does is not known yet.
    world.submit(exists, new Watcher());
    expect(world.takeFrames().map(({ op, body }) => [op, body.at(-1)])).toEqual([
      [OpCode.setWatches2, 0x61],
      [OpCode.checkWatches, 5],
      [OpCode.exists, 0],
    ]);
    world.reply(-8, 8, 0);
    world.reply(1, 8, -121);
    world.reply(2, 8, -101);
    // The recursive watch would tell nothing of a child that this client may not read.
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.setWatches2]);
    world.submit(exists, new Watcher());
    expect(world.takeFrames().map(({ op, body }) => [op, body.at(-1)])).toEqual([[OpCode.exists, 1]]);
  });

  test('a one-shot watch does without a persistent one that the server refuses', () => {
    const world = new ScriptedWorld();
    world.connect();
    const [data, later] = [new Watcher(), new Watcher()];
    const added = world.submit(ADD_PERSISTENT, new Watcher());
    world.submit({ ...GET_A, watch: true }, data);
    world.takeFrames();
    world.reply(1, 8, -127);
    expect(added.failure).toMatchObject({ code: -127 });
    world.reply(2, 8, -5);
    world.takeFrames();
    world.receive(dataReply(3, 8));
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.setWatches]);
    // Nor is it left to one that does not stand afterwards.
    world.submit({ ...GET_A, watch: true }, later);
    expect(world.takeFrames().map(({ op, body }) => [op, body.at(-1)])).toEqual([[OpCode.getData, 1]]);
  });

  test('a connection on which the server does not arm the watches again is left for another', () => {
    const world = new ScriptedWorld();
    world.connect();
    const watcher = new Watcher();
    world.submit({ ...GET_A, watch: true }, watcher);
    world.receive(dataReply(1, 8));
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession();
    const read = world.submit(GET_A);
    world.receive(new Uint8Array([...replyBytes(-8, 9, -127), ...dataReply(1, 9)]));
    expect(watcher.told).toEqual(['suspended', 'suspended']);
    expect(world.states.at(-1)).toMatchObject({
      state: 'suspended',
      reason: 'one:2181 (10.0.0.1) refused to arm the watches (code -127)',
    });
    // No newer data are seen before the event.
    expect(read.isSettled).toBe(false);
    world.advance(200);
    world.open();
    world.acceptSession();
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.setWatches, OpCode.getData]);
    world.reply(-8, 9, 0);
    expect(watcher.told).toEqual(['suspended', 'suspended', 'rearmed']);
  });

  test('watches that take several requests are armed with the last reply, and get what is reported between', () => {
    const world = new ScriptedWorld({ requestBytesMax: 0xfffff });
    world.connect();
    const paths = ['/a', '/b', '/c'].map((path) => path.padEnd(70_000, 'x'));
    const watchers = paths.map(() => new Watcher());
    paths.forEach((path, i) => {
      world.submit({ ...GET_A, path, watch: true }, watchers[i]);
      world.receive(dataReply(i + 1, 8));
    });
    const lasting = new Watcher();
    world.submit({ op: OpCode.addWatch, path: paths[1]!, mode: 0 }, lasting);
    world.reply(4, 8, 0, new Bytes().int(0));
    world.reply(5, 8, -121);
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession();
    world.submit(GET_A);
    expect(world.takeFrames().map(({ xid, op }) => [xid, op])).toEqual([
      [-8, OpCode.setWatches2],
      [-8, OpCode.setWatches],
      [1, OpCode.checkWatches],
      [2, OpCode.getData],
    ]);
    world.notify(2, paths[0]!);
    world.reply(-8, 9, 0);
    // Both watches of the first request stand; the second has not been read yet, and compares when it is.
    world.notify(3, paths[1]!, 10);
    world.notify(3, paths[2]!);
    expect(lasting.told).toEqual(['suspended', `changed ${paths[1]} 10`]);
    world.reply(-8, 10, 0);
    expect(lasting.told.at(-1)).toBe('rearmed');
    expect(watchers.map(({ told }) => told.map((what) => what.slice(0, 10)))).toEqual([
      ['suspended', 'deleted /a'],
      ['suspended', 'changed /b'],
      ['suspended', 'changed /c'],
    ]);
    expect(world.session.watches.size).toBe(1);
  });

  test('servers that all refuse to arm the watches are asked with pauses that grow, until one arms them', () => {
    const hosts = [
      { host: 'one', port: 2181 },
      { host: 'two', port: 2181 },
    ];
    const world = new ScriptedWorld({ hosts });
    world.connect();
    world.submit({ ...GET_A, watch: true }, new Watcher());
    world.receive(dataReply(1, 8));
    const pauses = (count: number): number[] =>
      Array.from({ length: count }, () => {
        world.reply(-8, 9, -127);
        const startedMs = world.nowMs;
        world.run();
        while (!world.isOpen) world.advance(10);
        world.open();
        world.acceptSession();
        return world.nowMs - startedMs;
      });
    world.close();
    world.open();
    world.acceptSession();
    // Half of each at least, the rest is chance: 200, 400, 800 and then 1000 ms after every second server.
    expect(pauses(9)).toEqual([0, 100, 0, 200, 0, 400, 0, 500, 0]);
    world.reply(-8, 9, 0);
    world.close();
    world.open();
    world.acceptSession();
    expect(pauses(2)).toEqual([0, 100]);
  });

  test('watches that are armed again learn of a new session although its first connection broke before they were', () => {
    const world = new ScriptedWorld();
    world.connect(0x77);
    const watcher = new Watcher();
    world.submit(ADD_RECURSIVE, watcher);
    world.reply(1, 8, 0, new Bytes().int(0));
    world.close();
    world.advance(200);
    world.open();
    world.refuseSession();
    world.open();
    world.acceptSession(0x88);
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession(0x88);
    expect(world.states.at(-1)).toMatchObject({ state: 'connected', sameSession: true });
    world.reply(-8, 9, 0);
    expect(watcher.told.at(-1)).toBe('rearmed on a new session');
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession(0x88);
    world.reply(-8, 9, 0);
    expect(watcher.told.at(-1)).toBe('rearmed');
  });
});

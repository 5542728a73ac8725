import { ErrorCode, OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { dataReply, GET_A, SET_A } from './testing/exchanges.ts';
import { Bytes, PASSWORD, replyBytes, ScriptedWorld, Watcher } from './testing/scripted-server.ts';

describe('connecting', () => {
  test('the connect request of a new session has no session, no zxid and the requested timeout', () => {
    const world = new ScriptedWorld();
    world.session.start();
    const expected = new Bytes().int(0).long(0).int(9000).long(0).buffer(new Uint8Array(16)).byte(0).frame();
    expect(world.open()).toEqual(expected);
    expect(world.opened).toEqual([{ host: 'one', port: 2181, address: '10.0.0.1' }]);
  });

  test('an accepted session is reported, with its server, and counts as the same session', () => {
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

  test('every address of a name is tried, then the next host, and failures are reported', () => {
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
    // A whole round without success: a delay, then the first host again.
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

  test('a search that is ended reports what it was waiting for', () => {
    const resolving = new ScriptedWorld();
    resolving.session.start();
    resolving.session.abandon('enough');
    const dialling = new ScriptedWorld();
    dialling.session.start();
    dialling.run();
    dialling.session.abandon('enough');
    const shaking = new ScriptedWorld();
    shaking.session.start();
    shaking.open();
    shaking.session.abandon('enough');
    const counts = [resolving, dialling, shaking].map(({ attempts }) => attempts);
    const attempt = { host: 'one', port: 2181, address: '10.0.0.1', failure: 'timed-out' };
    expect(counts).toEqual([
      [{ ...attempt, address: null, detail: 'no answer of the name service until the search was stopped' }],
      [{ ...attempt, detail: 'no connection until the search was stopped' }],
      [{ ...attempt, detail: 'no answer to the connect request until the search was stopped' }],
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

  test('requests made before there is a connection are sent in order once there is one', () => {
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

describe('a connection that breaks', () => {
  test('reads are retried in place; writes fail with an unknown outcome; queued requests were not sent', () => {
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

  test('a read that makes the server close the connection is not retried forever', () => {
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

describe('moving', () => {
  test('requests in flight are answered first; new ones go to the other server, in the same session', () => {
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

  test.each([
    ['one', ['one', 'two']],
    ['two', ['one', 'two']],
    ['three', ['one', 'three', 'two']],
  ])('starts a round with that server (%s), which tries each server once', (target, round) => {
    const hosts = ['one', 'two'].map((host) => ({ host, port: 2181 }));
    const world = new ScriptedWorld({ hosts });
    world.connect();
    for (let times = 0; times < 2; times++) {
      const before = world.opened.length;
      world.session.moveTo({ host: target, port: 2181 });
      world.run();
      for (let i = 0; i < round.length; i++) {
        expect(world.isOpen).toBe(true);
        world.isOpen = false;
        world.session.onStreamClosed('refused', 'ECONNREFUSED');
        world.run();
      }
      const tried = world.opened.slice(before).map(({ host }) => host);
      expect(tried[0]).toBe(target);
      expect(tried.toSorted()).toEqual(round);
    }
  });

  test('abandons an attempt that is under way, and the other addresses of its host', () => {
    const world = new ScriptedWorld();
    world.addresses = ['10.0.0.1', '10.0.0.2'];
    world.session.start();
    world.open();
    world.session.moveTo({ host: 'two', port: 2182 });
    expect(world.isOpen).toBe(false);
    world.addresses = null;
    world.run();
    expect(world.attempts.map(({ host, failure }) => [host, failure])).toEqual([
      ['two', 'dns'],
      ['one', 'dns'],
    ]);
    expect(world.opened.length).toBe(1);
  });

  test('closes a connection whose handshake is in progress', () => {
    const world = new ScriptedWorld();
    world.session.start();
    world.open();
    world.session.moveTo({ host: 'two', port: 2182 });
    world.run();
    world.session.onStreamClosed('refused', 'ECONNREFUSED');
    expect(world.attempts).toEqual([
      { host: 'two', port: 2182, address: '10.0.0.1', failure: 'refused', detail: 'ECONNREFUSED' },
    ]);
  });

  test('the late reply to a cancelled request is the last one, too', () => {
    const world = new ScriptedWorld();
    world.connect();
    const before = world.submit(SET_A);
    world.session.calls.cancel(before.call, 'timed-out', 'too late');
    world.session.moveTo({ host: 'two', port: 2182 });
    world.submit(SET_A);
    expect(world.takeFrames().length).toBe(1);
    world.reply(1, 9, 0, new Bytes().stat(9));
    expect(world.session.state).toBe('suspended');
    world.open();
    world.acceptSession();
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.setData]);
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
  test('is reported as read-only; others are asked, and it moves to one with a quorum with a new session', () => {
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

  test('proves nothing by its replies: a timeout after the last quorum the session is uncertain, but usable', () => {
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
    // Nor is it known to live while the next server is looked for: but requests that may wait are queued.
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

  test('does not make a lost session certain again', () => {
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

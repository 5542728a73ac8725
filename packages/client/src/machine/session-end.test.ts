import { OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { dataReply, GET_A, SET_A } from './testing/exchanges.ts';
import { Bytes, PASSWORD, ScriptedWorld, Watcher } from './testing/scripted-server.ts';

/** Connected with a timeout of 9 s; its first ping has just been sent. */
function pinged(): ScriptedWorld {
  const world = new ScriptedWorld();
  world.connect(0x77, 9000);
  world.takeFrames();
  world.advance(3000);
  expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.ping]);
  return world;
}

describe('expiry', () => {
  test('a refused session is lost; a new one is requested at once and reported as another session', () => {
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

  test('the timeout is counted from the sending of what was answered, not of what was sent since', () => {
    const world = pinged();
    const pingedAtMs = world.nowMs;
    world.advance(1000);
    world.submit(GET_A);
    const askedAtMs = world.nowMs;
    world.advance(1000);
    world.submit(GET_A);
    world.reply(-2, 0, 0);
    expect(world.session.sureUntilMs).toBe(pingedAtMs + 9000);
    world.receive(dataReply(1, 8));
    expect(world.session.sureUntilMs).toBe(askedAtMs + 9000);
  });

  test('a pong that comes after the reply to a later request takes nothing back', () => {
    const world = pinged();
    world.advance(1000);
    world.submit(GET_A);
    world.takeFrames();
    const askedAtMs = world.nowMs;
    world.receive(dataReply(1, 8));
    world.reply(-2, 0, 0);
    expect(world.session.sureUntilMs).toBe(askedAtMs + 9000);
    world.close();
    world.advance(8999);
    expect(world.session.state).toBe('suspended');
    world.advance(1);
    expect(world.session.state).toBe('lost');
  });

  test('a session is certain for no longer than the shortest timeout that a server gave to it', () => {
    const session = { id: 0x77n, password: new Uint8Array(PASSWORD), timeoutMs: 4000 };
    const world = new ScriptedWorld({ session });
    // Servers may have other limits than the one that created it, and use its first timeout when they start.
    world.connect(0x77, 9000);
    expect(world.session.sessionTimeoutMs).toBe(4000);
    expect(world.session.sureUntilMs).toBe(world.nowMs + 4000);
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession(0x77, 3000);
    expect(world.session.sureUntilMs).toBe(world.nowMs + 3000);
    // Each connection requests the configured timeout nevertheless, and a new session has the granted one.
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
    // The requested timeout, until a server has granted one.
    expect(world.session.sessionTimeoutMs).toBe(9000);
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

  test('servers that lag behind the lost session are asked whether they know it at all', () => {
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

  test('a lagging server that knows the session is left again', () => {
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

  test('a lagging server gets the time to expire the session before it is asked again', () => {
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

  test('a reply that the session has expired ends it, before it is refused on the next connection', () => {
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

  test('a transaction that is refused because the session has expired ends it, too', () => {
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
  test('close is sent after requests in flight, and done when the server has answered', () => {
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

  test('a session that is being closed is not certain, whatever replies arrive', () => {
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

  test('closing is reported before the request is sent, however much is queued', () => {
    const world = new ScriptedWorld({ requestBytesMax: 0xfffff });
    world.connect();
    // Together with the close request, this much is sent without waiting for the rest.
    world.submit({ ...SET_A, data: new Uint8Array(64 * 1024 - 36) });
    world.session.close();
    expect(world.sentBytesAtClosing).toBe(0);
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.setData, OpCode.closeSession]);
  });

  test('a connection that breaks while closing ends the client nevertheless', () => {
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
    world.session.calls.addCredentials('digest', new Uint8Array(1), (answer) => {
      failure = answer;
    });
    world.reply(-4, 0, -115);
    expect(failure).toMatchObject({ kind: 'auth-failed' });
    expect(read.failure).toMatchObject({ kind: 'auth-failed' });
    expect(watcher.received).toEqual(['ended auth-failed']);
    expect(world.stateNames).toEqual(['connected', 'auth-failed']);
  });

  test('a client that is closing, or closed, is neither closed again nor moved', () => {
    const world = new ScriptedWorld();
    world.connect();
    const write = world.submit(SET_A);
    world.session.close();
    const commands = (): void => {
      world.session.close();
      world.session.moveTo({ host: 'two', port: 2182 });
      world.run();
    };
    commands();
    expect(world.closingAtMs).toHaveLength(1);
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.setData, OpCode.closeSession]);
    world.reply(1, 9, 0, new Bytes().stat(9));
    expect(write.result).toBeDefined();
    world.reply(2, 10, 0);
    commands();
    expect(world.stateNames).toEqual(['connected', 'closed']);
    expect([world.closingAtMs.length, world.opened.length, world.isOpen]).toEqual([1, 1, false]);
  });

  test('a name that is looked up after the end opens no connection', () => {
    for (const end of [
      ({ session }: ScriptedWorld) => session.close(),
      ({ session }: ScriptedWorld) => session.end('closed', 'over'),
      ({ session }: ScriptedWorld) => session.abandon('over'),
    ]) {
      const world = new ScriptedWorld();
      world.session.start();
      end(world);
      world.run();
      world.advance(60_000);
      expect(world.opened).toEqual([]);
    }
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

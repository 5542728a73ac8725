import { OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { dataReply, GET_A, SET_A } from './testing/exchanges.ts';
import { Bytes, replyBytes, ScriptedWorld } from './testing/scripted-server.ts';

describe('requests', () => {
  test('a reply that arrives byte by byte settles its request', () => {
    const world = new ScriptedWorld();
    world.connect();
    const asked = world.submit(GET_A);
    for (const byte of dataReply(1, 8)) world.receive(new Uint8Array([byte]));
    expect(asked.result).toMatchObject({ data: new TextEncoder().encode('hi'), stat: { mzxid: 8n } });
  });

  test('the failure of a request that was not sent names the server that was reached last, if any', () => {
    const world = new ScriptedWorld();
    const early = world.submit(GET_A);
    world.session.calls.cancel(early.call, 'timed-out', 'too late');
    world.connect();
    world.close();
    const late = world.submit(GET_A);
    const pings: unknown[] = [];
    world.session.calls.ping((failure) => pings.push(failure?.server));
    world.session.end('closed', 'over');
    const refused = world.submit(GET_A);
    world.session.calls.ping((failure) => pings.push(failure?.server));
    const server = 'one:2181 (10.0.0.1)';
    expect([early, late, refused].map(({ failure }) => failure?.server)).toEqual([null, server, server]);
    expect(pings).toEqual([server, server]);
  });

  test('replies that are cut into chunks at any two places settle their requests in order', () => {
    const bytes = new Uint8Array([...dataReply(1, 8, 'x'), ...dataReply(2, 9, 'y')]);
    for (let first = 1; first < bytes.length; first++) {
      for (let second = first; second < bytes.length; second += 3) {
        const world = new ScriptedWorld();
        world.connect();
        const asked = [world.submit(GET_A), world.submit(GET_A)];
        for (const chunk of [bytes.slice(0, first), bytes.slice(first, second), bytes.slice(second)]) {
          world.receive(chunk);
        }
        expect(asked.map(({ result }) => result)).toMatchObject([
          { data: new Uint8Array([0x78]), stat: { mzxid: 8n, pzxid: 7n } },
          { data: new Uint8Array([0x79]), stat: { mzxid: 9n, pzxid: 7n } },
        ]);
      }
    }
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

  test('one that is longer than servers accept is refused by the client, and uses no xid', () => {
    const world = new ScriptedWorld();
    world.connect();
    const large = world.submit({ ...SET_A, data: new Uint8Array(2000) });
    world.submit(GET_A);
    expect(large.failure).toMatchObject({ kind: 'request-too-large', wasSent: false });
    expect(world.takeFrames().map(({ xid, op }) => [xid, op])).toEqual([[1, OpCode.getData]]);
  });

  test('one that cannot be encoded is refused, whether queued or not, and leaves no bytes', () => {
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

  test('a request that is cancelled while it waits for a connection is never sent', () => {
    const world = new ScriptedWorld();
    world.session.start();
    const first = world.submit(SET_A);
    world.submit(GET_A);
    world.session.calls.cancel(first.call, 'timed-out', 'too late');
    expect(first.failure).toMatchObject({ kind: 'timed-out', wasSent: false });
    world.connect();
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.getData]);
  });

  test('an unexpected reply ends the connection; the request that got it is not retried', () => {
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
    ['a frame without a header', new Bytes().int(1).long(8).frame(), 'a reply without a header'],
    ['a pong without a header', new Bytes().int(-2).frame(), 'a reply without a header'],
    ['an event that is cut off', replyBytes(-1, 9, 0, new Bytes().int(3)), 'a malformed notification'],
    ['an event without a path', replyBytes(-1, 9, 0, new Bytes().int(3).int(3).int(-1)), 'a malformed notification'],
    [
      'a path that is cut off',
      replyBytes(-1, 9, 0, new Bytes().int(3).int(3).int(2).byte(47)),
      'a malformed notification',
    ],
  ])('%s ends the connection', (_, bytes, what) => {
    const world = new ScriptedWorld();
    world.connect();
    const read = world.submit(GET_A);
    world.receive(bytes);
    expect(world.states.at(-1)).toMatchObject({ state: 'suspended', reason: `the server sent ${what}` });
    expect(read.failure).toMatchObject({ kind: 'bad-reply', detail: `one:2181 (10.0.0.1) sent ${what}` });
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

  test('an idle connection is kept alive by pings, each a third of the session timeout after the last request', () => {
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

  test('a server that is silent for two thirds of the timeout is replaced', () => {
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

  test('pings, silence and loss follow the timeout that the server has granted', () => {
    const world = new ScriptedWorld({ sessionTimeoutMs: 9000 });
    world.connect(0x77, 3000);
    world.takeFrames();
    world.advance(999);
    expect(world.takeFrames()).toEqual([]);
    world.advance(1);
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.ping]);
    world.advance(999);
    expect(world.stateNames).toEqual(['connected']);
    world.advance(1);
    expect(world.states.at(-1)).toMatchObject({ state: 'suspended', reason: 'the server was silent for 2000 ms' });
    world.advance(999);
    expect(world.stateNames).toEqual(['connected', 'suspended']);
    world.advance(1);
    expect(world.stateNames).toEqual(['connected', 'suspended', 'lost']);
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
    // Sent at 1000 after the connection: lost at 10,000, although the reply came 500 later.
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

  test('a stalled event loop is reported, and received data is read before the server counts as silent', () => {
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

  test('after a stall longer than the timeout the session is lost, whatever the server has sent', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.nowMs += 20_000;
    world.session.onTick();
    expect(world.stateNames).toEqual(['connected', 'suspended', 'lost']);
  });
});

describe('bytes that are read late', () => {
  test('a reply to an old request is delivered together with the loss of the session', () => {
    const world = new ScriptedWorld();
    world.connect();
    const read = world.submit(GET_A);
    world.takeFrames();
    world.nowMs += 20_000;
    world.receive(dataReply(1, 8));
    expect(read.result).toBeDefined();
    expect(world.stateNames).toEqual(['connected', 'suspended', 'lost']);
  });

  test('a reply to a recent request keeps the session', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.advance(3000);
    world.takeFrames();
    world.nowMs += 8000;
    world.receive(replyBytes(-2, 0, 0));
    expect(world.stateNames).toEqual(['connected']);
  });
});

import { OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { makeDeferred } from './deferred.ts';
import { Call, type CallFailure } from './machine/call.ts';
import type { SaslExchange, Target } from './machine/ports.ts';
import { readNothing } from './machine/replies.ts';
import { Bytes, PASSWORD, TEST_OPTIONS } from './machine/testing/scripted-server.ts';
import { type HostOptions, SessionHost } from './session-host.ts';
import { drainMicrotasks, VirtualSurroundings } from './testing/virtual-surroundings.ts';
import type { Transport, TransportEvents, TransportStream } from './transport/transport.ts';

/** A stream whose other end is the test, which may also report events after its end. */
class ManualStream implements TransportStream {
  readonly target: Target;
  readonly events: TransportEvents;
  readonly written: Uint8Array[] = [];
  isDestroyed = false;

  constructor(target: Target, events: TransportEvents) {
    this.target = target;
    this.events = events;
  }

  write(bytes: Uint8Array): boolean {
    this.written.push(bytes.slice());
    return true;
  }

  destroy(): void {
    this.isDestroyed = true;
  }

  accept(isReadOnly = false): void {
    this.events.onOpen();
    const response = new Bytes()
      .int(0)
      .int(9000)
      .long(0x77)
      .buffer(PASSWORD)
      .byte(isReadOnly ? 1 : 0);
    this.events.onBytes(response.frame());
  }
}

class Scene {
  readonly streams: ManualStream[] = [];
  readonly surroundings = new VirtualSurroundings();
  readonly deferred: (() => void)[] = [];
  readonly probed: string[] = [];
  lookUp: () => Promise<readonly string[]> = async () => ['10.0.0.1'];
  readonly states: string[] = [];
  /** The reason of the last change of state. */
  reason = '';
  readonly attempts: string[] = [];
  readonly host: SessionHost;

  constructor(options: Partial<HostOptions> = {}) {
    const transport: Transport = {
      resolve: () => this.lookUp(),
      connect: (target, events) => {
        const stream = new ManualStream(target, events);
        this.streams.push(stream);
        return stream;
      },
      probe: async ({ host }, word) => {
        this.probed.push(`${word} ${host}`);
        return 'rw';
      },
    };
    const { clock, random } = this.surroundings;
    const defer = (callback: () => void): unknown => this.deferred.push(callback);
    this.host = new SessionHost(
      { ...TEST_OPTIONS, ...options },
      { transport, random, clock: { ...clock, defer } },
      {
        onState: ({ state, reason }) => {
          this.states.push(state);
          this.reason = reason;
        },
        onAttemptFailed: ({ failure, detail }) => this.attempts.push(`${failure}: ${detail}`),
        onUnsure: () => {},
        onClosing: () => {},
        onStall: () => {},
      },
    );
  }

  get stream(): ManualStream {
    const stream = this.streams.at(-1);
    if (stream === undefined) throw new Error('nothing was opened');
    return stream;
  }

  async connect(): Promise<ManualStream> {
    this.host.start();
    await drainMicrotasks();
    this.stream.accept();
    return this.stream;
  }

  flush(): void {
    for (const callback of this.deferred.splice(0)) callback();
  }

  submitRead(): { failure: CallFailure | null } {
    const outcome: { failure: CallFailure | null } = { failure: null };
    const onFailure = (failure: CallFailure): void => {
      outcome.failure = failure;
    };
    const request = { op: OpCode.exists, path: '/a', watch: false } as const;
    this.host.session.calls.submit(new Call(request, readNothing, () => {}, onFailure, null, true));
    return outcome;
  }
}

describe('a session on a transport', () => {
  test('requests submitted in one turn are sent in one write', async () => {
    const scene = new Scene();
    const stream = await scene.connect();
    for (let i = 0; i < 10; i++) scene.submitRead();
    expect([scene.deferred.length, stream.written.length]).toEqual([1, 1]);
    scene.flush();
    expect(stream.written).toHaveLength(2);
    // xid, op, path and flag, with their length: ten times.
    expect(stream.written[1]).toHaveLength(10 * (4 + 4 + 4 + 6 + 1));
  });

  test('events of a stream after it was closed are ignored', async () => {
    const scene = new Scene();
    const old = await scene.connect();
    old.events.onClosed(null, 'gone');
    expect(scene.states).toEqual(['connected', 'suspended']);
    // Half of a frame, an unexpected reply, another end, another opening.
    old.events.onBytes(new Uint8Array([0, 0]));
    old.events.onBytes(new Bytes().int(1).long(5).int(0).frame());
    old.events.onClosed('refused', 'again');
    old.events.onOpen();
    expect(scene.states).toEqual(['connected', 'suspended']);
    expect(old.written).toHaveLength(1);
  });

  test('a name lookup that completes too late is not used', async () => {
    const scene = new Scene();
    const late = makeDeferred<readonly string[]>();
    scene.lookUp = () => late.promise;
    scene.host.start();
    await drainMicrotasks();
    scene.lookUp = () => new Promise(() => {});
    scene.surroundings.nowMs += TEST_OPTIONS.attemptTimeoutMs;
    scene.host.session.onTick();
    expect(scene.attempts).toEqual(['timed-out: no answer of the name service within 3000 ms']);
    late.resolve(['10.0.0.1']);
    await drainMicrotasks();
    expect(scene.streams).toHaveLength(0);
  });

  test('an exchange is created before the connection, for the configured host, and may end without token', async () => {
    const made = makeDeferred<SaslExchange>();
    const asked: string[] = [];
    const scene = new Scene({
      sasl: ({ host, port }) => {
        asked.push(`${host}:${port}`);
        return made.promise;
      },
    });
    scene.host.start();
    await drainMicrotasks();
    expect(asked).toEqual([`${TEST_OPTIONS.hosts[0]?.host}:${TEST_OPTIONS.hosts[0]?.port}`]);
    expect(scene.streams).toHaveLength(0);
    let isComplete = false;
    made.resolve({
      start: () => Uint8Array.of(1),
      respond: () => {
        isComplete = true;
        return Uint8Array.of(2);
      },
      get isComplete() {
        return isComplete;
      },
    });
    await drainMicrotasks();
    const { stream } = scene;
    stream.accept();
    stream.events.onBytes(new Bytes().int(1).long(0).int(0).buffer(Uint8Array.of(9)).frame());
    expect(scene.states).toEqual([]);
    stream.events.onBytes(new Bytes().int(2).long(0).int(0).int(-1).frame());
    expect(scene.states).toEqual(['connected']);
  });

  test('an exchange that ends without a token too early, or cannot be created, is a failed attempt', async () => {
    const early = new Scene({ sasl: () => ({ start: () => Uint8Array.of(1), respond: () => null }) });
    early.host.start();
    await drainMicrotasks();
    early.stream.accept();
    early.stream.events.onBytes(new Bytes().int(1).long(0).int(0).int(-1).frame());
    expect(early.attempts).toEqual(['sasl: the server has no SASL configured']);
    for (const sasl of [
      () => Promise.reject(new Error('no ticket')),
      () => {
        throw new Error('no ticket');
      },
    ]) {
      const scene = new Scene({ sasl });
      scene.host.start();
      await drainMicrotasks();
      expect(scene.attempts).toEqual(['sasl: no ticket']);
      expect(scene.surroundings.timerCount).toBe(1);
    }
  });

  test('a malformed answer to a token is a failed attempt, even of a complete exchange', async () => {
    for (const isComplete of [false, true]) {
      const malformed = [
        new Bytes().int(1).long(0),
        new Bytes().int(1).long(0).int(0).int(5).byte(1),
        new Bytes().int(1).long(0).int(0).byte(1),
      ];
      for (const answer of malformed) {
        const scene = new Scene({ sasl: () => ({ start: () => Uint8Array.of(1), respond: () => null, isComplete }) });
        scene.host.start();
        await drainMicrotasks();
        scene.stream.accept();
        scene.stream.events.onBytes(answer.frame());
        expect(scene.attempts).toEqual(['not-zookeeper: its answer to a SASL token is malformed']);
        expect(scene.states).toEqual([]);
      }
    }
  });

  test('an exchange may end with the token of the server', async () => {
    const scene = new Scene({ sasl: () => ({ start: () => Uint8Array.of(1), respond: () => null }) });
    scene.host.start();
    await drainMicrotasks();
    scene.stream.accept();
    scene.stream.events.onBytes(new Bytes().int(1).long(0).int(0).buffer(Uint8Array.of(9)).frame());
    expect(scene.states).toEqual(['connected']);
  });

  test('an attempt whose exchange was not created in time reports that', async () => {
    const scene = new Scene({ sasl: () => new Promise(() => {}) });
    scene.host.start();
    await drainMicrotasks();
    scene.surroundings.nowMs += TEST_OPTIONS.attemptTimeoutMs;
    scene.host.session.onTick();
    expect(scene.attempts).toEqual(['timed-out: nothing to log in with by SASL within 3000 ms']);
  });

  test('a refusal ends the client, unless its mechanism can retry', async () => {
    const refused = 'refused SASL (code -115)';
    for (const [more, states, attempts, reason] of [
      [{}, ['auth-failed'], [], `one:2181 (10.0.0.1) ${refused}: its log says why`],
      [{ onRefused: () => false }, ['auth-failed'], [], `one:2181 (10.0.0.1) ${refused}: its log says why`],
      [{ whyRefused: 'no Kerberos' }, ['auth-failed'], [], `one:2181 (10.0.0.1) ${refused}: no Kerberos`],
      [{ onRefused: () => true }, [], [`sasl: the server ${refused}: its log says why`], ''],
    ] as const) {
      const sasl = () => ({ start: () => Uint8Array.of(1), respond: () => null, ...more });
      const scene = new Scene({ sasl });
      scene.host.start();
      await drainMicrotasks();
      scene.stream.accept();
      scene.stream.events.onBytes(new Bytes().int(1).long(0).int(-115).frame());
      expect(scene.states).toEqual(states);
      expect(scene.attempts).toEqual(attempts);
      expect(scene.reason).toBe(reason);
    }
  });

  test('an exchange that is created too late is not used', async () => {
    const late = makeDeferred<SaslExchange>();
    const scene = new Scene({ sasl: () => late.promise });
    scene.host.start();
    await drainMicrotasks();
    scene.host.end('enough');
    late.resolve({ start: () => Uint8Array.of(1), respond: () => null });
    await drainMicrotasks();
    expect(scene.streams).toHaveLength(0);
  });

  test('a failed name lookup is a failed attempt, and a timer starts the next one', async () => {
    const scene = new Scene();
    scene.lookUp = () => Promise.reject(new Error('ENOTFOUND'));
    scene.host.start();
    await drainMicrotasks();
    expect(scene.attempts).toEqual(['dns: ENOTFOUND']);
    expect(scene.surroundings.timerCount).toBe(1);
  });

  test('exactly one timer runs, and none after the end', async () => {
    const scene = new Scene();
    const stream = await scene.connect();
    expect(scene.surroundings.timerCount).toBe(1);
    for (let i = 0; i < 5; i++) scene.submitRead();
    scene.flush();
    stream.events.onBytes(new Bytes().int(1).long(5).int(0).frame());
    expect(scene.surroundings.timerCount).toBe(1);
    stream.events.onClosed(null, 'gone');
    expect(scene.surroundings.timerCount).toBe(1);
    scene.host.end('enough');
    expect(scene.surroundings.timerCount).toBe(0);
    expect(scene.states.at(-1)).toBe('closed');
  });

  test('what is deferred when the stream is replaced does not reach the next one', async () => {
    const scene = new Scene();
    const first = await scene.connect();
    const read = scene.submitRead();
    first.events.onClosed(null, 'gone');
    scene.flush();
    expect(first.written).toHaveLength(1);
    scene.surroundings.nowMs += 1000;
    scene.host.session.onTick();
    await drainMicrotasks();
    const second = scene.stream;
    second.events.onOpen();
    scene.flush();
    // Only the connect request: the read waits for the session.
    expect(second.written).toHaveLength(1);
    expect(new DataView(second.written[0]!.buffer).getInt32(0)).toBe(45);
    expect(read.failure).toBeNull();
  });

  test('while read-only the other servers are asked in turn, and the session moves to one that is read-write', async () => {
    const hosts = [
      { host: 'one', port: 1 },
      { host: 'two', port: 2 },
    ];
    const scene = new Scene({ hosts, canBeReadOnly: true });
    scene.host.start();
    await drainMicrotasks();
    const first = scene.stream;
    first.accept(true);
    expect(scene.states).toEqual(['read-only']);
    scene.surroundings.nowMs += 100;
    scene.host.session.onTick();
    await drainMicrotasks();
    const other = first.target.host === 'one' ? 'two' : 'one';
    expect(scene.probed).toEqual([`isro ${other}`]);
    expect(first.isDestroyed).toBe(true);
    expect(scene.stream.target.host).toBe(other);
    scene.stream.accept();
    expect(scene.states).toEqual(['read-only', 'suspended', 'connected']);
  });

  test('the end closes the stream, and no more events are reported', async () => {
    const scene = new Scene();
    const stream = await scene.connect();
    const read = scene.submitRead();
    scene.host.end('enough');
    expect(stream.isDestroyed).toBe(true);
    expect(read.failure).toMatchObject({ kind: 'closed' });
    stream.events.onClosed(null, 'gone');
    expect(scene.states).toEqual(['connected', 'closed']);
  });
});

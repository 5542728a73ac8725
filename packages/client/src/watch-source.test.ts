import { describe, expect, test } from 'vitest';
import { type Deferred, makeDeferred } from './deferred.ts';
import { AbortedError, ClosedError, NoAuthError, SessionExpiredError, SessionLostError } from './errors.ts';
import { FakeWatchPorts } from './testing/fake-watch-ports.ts';
import { drainMicrotasks } from './testing/virtual-surroundings.ts';
import type { WatchSink } from './watch-sink.ts';
import { WatchSource } from './watch-source.ts';

const ABOUT = { operation: 'watch', path: '/a' } as const;

/** A source without a connection: waiters for one wait for `connection`. */
class Scene {
  readonly ports = new FakeWatchPorts();
  readonly received: string[] = [];
  readonly connection: Deferred<void> = makeDeferred();
  readonly source: WatchSource;

  constructor() {
    this.ports.connection = this.connection.promise;
    const sink: WatchSink = {
      onEvent: ({ type }) => this.received.push(type),
      onGap: (reason) => this.received.push(reason),
      onEnd: (error) => this.received.push(error.name),
    };
    this.source = new WatchSource(this.ports, '/a', false, sink, ABOUT);
  }
}

describe('a watch that is being armed', () => {
  test.each([
    ['the session expires', new SessionExpiredError(ABOUT)],
    ['the session is lost', new SessionLostError(ABOUT)],
  ])('is asked for again on the next connection when %s meanwhile', async (_title, error) => {
    const { connection, ports, source, received } = new Scene();
    ports.watch.refuse(error);
    await drainMicrotasks();
    expect(ports.watches).toHaveLength(1);

    connection.resolve();
    await drainMicrotasks();
    expect(ports.watches).toHaveLength(2);
    ports.watch.arm();
    await source.ready;
    ports.fire('changed', '/a');
    expect(received).toContain('changed');
    expect(received).not.toContain(error.name);
  });

  test('is not requested again after a permanent refusal', async () => {
    const { ports, source, received } = new Scene();
    ports.watch.refuse(new NoAuthError(ABOUT));
    await expect(source.ready).rejects.toBeInstanceOf(NoAuthError);
    expect(ports.watches).toHaveLength(1);
    expect(received).toEqual(['NoAuthError']);
  });

  test('can be closed while there is no connection', async () => {
    const { connection, ports, source, received } = new Scene();
    ports.watch.refuse(new SessionLostError(ABOUT));
    await drainMicrotasks();
    await source.close();
    await expect(source.ready).rejects.toBeInstanceOf(AbortedError);
    connection.resolve();
    await drainMicrotasks();
    expect(ports.watches).toHaveLength(1);
    expect(received).toEqual([]);
  });

  test.each([0, 1, 2, 3, 4, 5])('is removed when it is closed %i microtasks after the reply', async (microtasks) => {
    const { ports, source } = new Scene();
    await drainMicrotasks();
    source.ready.catch(() => {});
    ports.watch.arm();
    for (let i = 0; i < microtasks; i++) await null;
    await source.close();
    await drainMicrotasks();
    expect(ports.watches.map(({ isClosed }) => isClosed)).toEqual([true]);
  });

  test('ends with a client that never gets a connection', async () => {
    const { connection, ports, source, received } = new Scene();
    ports.watch.refuse(new SessionLostError(ABOUT));
    await drainMicrotasks();
    connection.reject(new ClosedError({ operation: 'watch', path: null }));
    await expect(source.ready).rejects.toBeInstanceOf(ClosedError);
    expect(received).toEqual(['ClosedError']);
  });
});

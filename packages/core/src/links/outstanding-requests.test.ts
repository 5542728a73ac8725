import { CreateMode, ErrorCode, OpCode } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { ask, create, errorsOf, frame, getData } from '../testing/core-requests.ts';
import { TestServer } from '../testing/test-server.ts';

describe('an overloaded server', () => {
  it('stops reading clients that wait for replies, and resumes when there are fewer', () => {
    const server = new TestServer({ globalOutstandingLimit: 10 });
    const client = server.connect();
    server.isDiskHeld = true;
    for (let i = 0; i < 100; i++) client.send(create(`/n${i}`));
    server.run();
    expect(server.core.view.outstandingRequests).toBeLessThan(20);
    expect(client.isPaused).toBe(true);
    server.isDiskHeld = false;
    server.run();
    expect(errorsOf(client.takeArrivals())).toEqual(Array.from({ length: 100 }, () => 0));
    expect(client.isPaused).toBe(false);
  });

  it('counts reads that wait behind a write of their session, and answers all in order once it is applied', () => {
    const server = new TestServer({ globalOutstandingLimit: 10 });
    const client = server.connect();
    const other = server.connect();
    server.isDiskHeld = true;
    client.send(create('/a'));
    for (let i = 0; i < 100; i++) {
      if (i % 3 === 0) client.send({ op: OpCode.sync, path: '/' });
      else if (i % 3 === 1) client.send(getData('/a'));
      else client.sendBytes(frame(++client.lastXid, OpCode.getData));
    }
    server.run();
    expect(server.core.view.outstandingRequests).toBe(11);
    expect(client.isPaused).toBe(true);
    // A client that waits for nothing is served.
    expect(ask(server, other, getData('/'))).toBe(ErrorCode.ok);
    server.isDiskHeld = false;
    server.run();
    const replies = client
      .takeArrivals()
      .map((arrival) => (arrival.kind === 'reply' ? arrival.header.xid : arrival.kind));
    expect(replies).toEqual(Array.from({ length: 101 }, (_, i) => i + 1));
    expect(client.isPaused).toBe(false);
    expect(server.core.view.outstandingRequests).toBe(0);
  });

  it('bounds the requests that wait behind a write of their client to a megabyte', () => {
    for (const [path, most] of [
      ['/', 5092],
      [`/${'x'.repeat(400_000)}`, 3],
    ] as const) {
      const server = new TestServer({ globalOutstandingLimit: 1_000_000 });
      const client = server.connect();
      server.isDiskHeld = true;
      client.send(create('/a'));
      const asked = Math.ceil(most * 1.2) + 5;
      for (let i = 0; i < asked; i++) client.send(getData(path));
      server.run();
      expect(server.core.view.outstandingRequests).toBeLessThanOrEqual(most + 1);
      expect(server.core.view.outstandingRequests).toBeGreaterThan(most / 2);
      expect(client.isPaused).toBe(true);
      server.isDiskHeld = false;
      server.run();
      expect(errorsOf(client.takeArrivals())).toHaveLength(asked + 1);
      expect(server.core.view.outstandingRequests).toBe(0);
    }
  });

  it('is not kept from reading others by a client that does not read its replies', () => {
    const server = new TestServer({ globalOutstandingLimit: 10 });
    const deaf = server.connect();
    const other = server.connect();
    ask(server, deaf, create('/big', CreateMode.persistent, { bytes: 900_000 }));
    server.isDiskHeld = true;
    deaf.send(create('/a'));
    for (let i = 0; i < 20; i++) deaf.send(getData('/big'));
    server.run();
    expect(server.core.view.outstandingRequests).toBe(11);
    deaf.isDeaf = true;
    server.isDiskHeld = false;
    server.run();
    // Two replies are queued, eight reads wait for room.
    expect(server.core.view.outstandingRequests).toBe(0);
    server.isDiskHeld = true;
    for (let i = 0; i < 9; i++) other.send(create(`/n${i}`));
    server.run();
    expect(other.isPaused).toBe(false);
    expect(server.core.view.outstandingRequests).toBe(9);
    server.isDiskHeld = false;
    server.run();
    deaf.listen();
    server.run();
    expect(errorsOf(deaf.takeArrivals())).toHaveLength(21);
    expect(server.core.view.outstandingRequests).toBe(0);
  });

  it('drops waiting requests of a closed connection', () => {
    const server = new TestServer({ globalOutstandingLimit: 10 });
    const client = server.connect();
    const other = server.connect();
    server.isDiskHeld = true;
    client.send(create('/a'));
    for (let i = 0; i < 100; i++) client.send(getData('/a'));
    server.run();
    client.drop();
    server.run();
    expect(server.core.view.outstandingRequests).toBe(1);
    other.send(create('/b'));
    for (let i = 0; i < 5; i++) other.send(getData('/b'));
    server.run();
    expect(server.core.view.outstandingRequests).toBe(7);
    server.isDiskHeld = false;
    server.run();
    expect(errorsOf(other.takeArrivals())).toEqual([0, 0, 0, 0, 0, 0]);
    expect(server.core.view.outstandingRequests).toBe(0);
  });
});

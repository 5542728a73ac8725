import { CreateMode, ErrorCode, OpCode, type Request } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { ask, create, getData } from '../testing/core-requests.ts';
import { TestServer } from '../testing/test-server.ts';

describe('a client that does not read', () => {
  it('is not read once a megabyte of replies waits, and gets them all in order when it reads again', () => {
    const server = new TestServer();
    const client = server.connect();
    ask(server, client, create('/big', CreateMode.persistent, { bytes: 200_000 }));
    client.isDeaf = true;
    for (let i = 0; i < 100; i++) client.send(getData('/big'));
    server.run();
    expect(client.isPaused).toBe(true);
    expect(client.queuedBytes).toBeLessThan(2_000_000);
    for (let round = 0; round < 100; round++) {
      client.listen();
      client.isDeaf = true;
      server.run();
    }
    client.listen();
    server.run();
    const xids = client.takeArrivals().map((arrival) => (arrival.kind === 'reply' ? arrival.header.xid : 0));
    expect(xids).toEqual(Array.from({ length: 100 }, (_, i) => i + 2));
  });

  it('may have writes after reads that fill its output: all are answered in order, no read sees a later write', () => {
    const server = new TestServer();
    const client = server.connect();
    ask(server, client, create('/big', CreateMode.persistent, { bytes: 300_000 }));
    const setData = (bytes: number): Request => ({
      op: OpCode.setData,
      path: '/big',
      data: new Uint8Array(bytes),
      version: -1,
    });
    server.isDiskHeld = true;
    const sent = [setData(200_000), ...Array.from({ length: 20 }, () => getData('/big')), setData(1), getData('/big')];
    for (const request of sent) client.send(request);
    server.run();
    expect(client.takeArrivals()).toEqual([]);
    // Both writes become durable at once.
    server.isDiskHeld = false;
    server.run();
    const replies = client.takeArrivals().flatMap((arrival) => (arrival.kind === 'reply' ? [arrival] : []));
    expect(replies.map(({ header }) => header.xid)).toEqual(sent.map((_, i) => i + 2));
    const lengths = replies.map(({ body }) => body.length);
    // A Stat; int length, data and a Stat.
    expect(lengths).toEqual([68, ...Array.from({ length: 20 }, () => 200_072), 68, 73]);
  });

  it('is disconnected when the replies before its own write would fill the memory; the write is applied', () => {
    const server = new TestServer();
    const client = server.connect();
    ask(server, client, create('/big', CreateMode.persistent, { bytes: 300_000 }));
    server.isDiskHeld = true;
    client.send({ op: OpCode.setData, path: '/big', data: new Uint8Array(900_000), version: -1 });
    for (let i = 0; i < 500; i++) client.send(getData('/big'));
    client.send({ op: OpCode.setData, path: '/big', data: new Uint8Array(7), version: -1 });
    server.run();
    client.isDeaf = true;
    server.isDiskHeld = false;
    server.run();
    expect(client.isClosed).toBe(true);
    expect(client.queuedBytes).toBeLessThan(20 * 1024 * 1024);
    const other = server.connect();
    other.send(getData('/big'));
    server.run();
    const [reply] = other.takeArrivals();
    expect(reply?.kind === 'reply' && reply.body.length).toBe(4 + 7 + 68);
  });

  it('is not disconnected by an event after long replies: it is not read, and eventually gets everything', () => {
    const bytes = 20 * 1024 * 1024;
    const server = new TestServer({ frameBytesMax: 2 * bytes });
    const client = server.connect();
    ask(server, client, create('/big', CreateMode.persistent, { bytes }));
    ask(server, client, { op: OpCode.addWatch, path: '/', mode: 1 });
    client.isDeaf = true;
    const asked = Array.from({ length: 5 }, () => client.send(getData('/big')));
    server.run();
    const other = server.connect();
    for (let i = 0; i < 3; i++) ask(server, other, create(`/new${i}`));
    expect(client.isClosed).toBe(false);
    // The other requests are not answered yet, nor anything after them.
    expect(client.queuedBytes).toBeLessThan(1.1 * bytes);
    client.listen();
    server.run();
    const arrivals = client.takeArrivals();
    expect(arrivals.filter(({ kind }) => kind === 'reply')).toHaveLength(asked.length);
    expect(arrivals.filter(({ kind }) => kind === 'event').length).toBeGreaterThanOrEqual(3);
  });

  it('is disconnected when events alone fill its output, without effect on other clients', () => {
    const server = new TestServer();
    const writer = server.connect();
    const watcher = server.connect();
    ask(server, watcher, { op: OpCode.addWatch, path: '/', mode: 1 });
    watcher.isDeaf = true;
    const name = 'x'.repeat(1000);
    for (let i = 0; i < 10_000 && !watcher.isClosed; i++) {
      writer.send(create(`/${name}${i}`));
      writer.send({ op: OpCode.delete, path: `/${name}${i}`, version: -1 });
      server.run();
    }
    expect(watcher.isClosed).toBe(true);
    expect(ask(server, writer, create('/a'))).toBe(ErrorCode.ok);
    const closed = server.trace.find((event) => event.kind === 'connection-closed');
    expect(closed).toMatchObject({ reason: 'it does not read: 16777216 bytes of events are queued' });
  });
});

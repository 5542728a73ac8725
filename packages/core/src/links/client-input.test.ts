import { ErrorCode, JuteWriter, OpCode } from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ask, create, errorsOf, frame, getData } from '../testing/core-requests.ts';
import { TestServer } from '../testing/test-server.ts';

describe('invalid input', () => {
  it('closes only the connection that it came from', () => {
    const server = new TestServer();
    const bystander = server.connect();
    const tooLong = new Uint8Array([0x7f, 0xff, 0xff, 0xff]);
    const negative = new Uint8Array([0xff, 0xff, 0xff, 0xfe]);
    const hello = new Uint8Array([0x16, 3, 1, 2]);
    for (const bytes of [tooLong, negative, hello, frame(1), frame()]) {
      const fresh = server.open();
      fresh.sendBytes(bytes);
      server.run();
      expect(fresh.isClosed).toBe(true);
      const established = server.connect();
      established.sendBytes(bytes);
      server.run();
      expect(established.isClosed).toBe(true);
    }
    expect(ask(server, bystander, create('/a'))).toBe(ErrorCode.ok);
    const reasons = server.trace.flatMap((event) => (event.kind === 'connection-closed' ? [event.reason] : []));
    expect(new Set(reasons)).toEqual(
      new Set([
        'it announced a frame of 2147483647 bytes, and jute.maxbuffer allows 1048575',
        'it announced a frame of -2 bytes, and jute.maxbuffer allows 1048575',
        'it speaks TLS, and this port does not: the client needs secureClientPort, or the server client.portUnification=true',
        'it announced a frame of 369295618 bytes, and jute.maxbuffer allows 1048575',
        'its first frame is not a connect request',
        'it sent a frame that is too short for a request header',
      ]),
    );
  });

  it('answers an operation that clients may not send with UNIMPLEMENTED and zxid -1, in order, and closes', () => {
    for (const op of [0, 13, 20, -1, -10, 99, 12345]) {
      const server = new TestServer();
      const client = server.connect();
      client.send(create('/a'));
      client.sendBytes(frame(7, op, 0, 0));
      server.run();
      expect(client.takeArrivals()).toMatchObject([
        { kind: 'reply', header: { error: ErrorCode.ok } },
        { kind: 'reply', header: { xid: 7, zxid: -1, error: ErrorCode.unimplemented } },
        { kind: 'closed' },
      ]);
    }
  });

  it('answers a record that cannot be decoded with MARSHALLINGERROR and continues', () => {
    const server = new TestServer();
    const client = server.connect();
    client.sendBytes(frame(1, OpCode.create, 1000));
    client.sendBytes(frame(2, OpCode.getData));
    client.send(getData('/'), 3);
    server.run();
    expect(errorsOf(client.takeArrivals())).toEqual([
      ErrorCode.marshallingError,
      ErrorCode.marshallingError,
      ErrorCode.ok,
    ]);
  });

  it('never affects other clients: random bytes, and requests with random bytes changed', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 80, size: 'max' }), { minLength: 1, maxLength: 8 }),
        fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 5 }),
        (blobs, changes) => {
          const server = new TestServer();
          const bystander = server.connect();
          for (const blob of blobs) {
            const raw = server.open();
            raw.sendBytes(blob);
            const client = server.connect();
            const bytes = new Uint8Array(12 + blob.length);
            bytes.set(frame(1, OpCode.multi));
            bytes.set(blob, 12);
            for (const [at, value] of changes) if (at >= 4 && at < bytes.length) bytes[at] = value;
            bytes.set([0, 0, 0, bytes.length - 4]);
            client.sendBytes(bytes);
            server.run();
          }
          expect(ask(server, bystander, create('/still-here'))).toBe(ErrorCode.ok);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('accepts frames in pieces of any size', () => {
    const server = new TestServer();
    const client = server.connect();
    const writer = new JuteWriter();
    for (let xid = 1; xid <= 5; xid++) {
      const at = writer.beginFrame();
      writer.int(xid);
      writer.int(OpCode.exists);
      writer.ustring('/');
      writer.boolean(false);
      writer.endFrame(at);
    }
    for (const byte of writer.toBytes()) {
      client.sendBytes(new Uint8Array([byte]));
      server.run();
    }
    expect(errorsOf(client.takeArrivals())).toEqual([0, 0, 0, 0, 0]);
  });

  it('closes connections that never request a session', () => {
    const server = new TestServer({ sessionlessTimeoutMs: 5000 });
    const silent = Array.from({ length: 1000 }, () => server.open());
    const client = server.connect(20_000);
    server.advance(8000);
    expect(silent.every((each) => each.isClosed)).toBe(true);
    expect(client.isClosed).toBe(false);
    expect(server.core.view.connectionCount).toBe(1);
  });

  it('refuses connections beyond the maximum of one address', () => {
    const server = new TestServer({ connectionsPerHostMax: 2 });
    const clients = [server.open(), server.open(), server.open()];
    expect(clients.map((client) => client.isClosed)).toEqual([false, false, true]);
    expect(server.open('10.0.0.2').isClosed).toBe(false);
    clients[0]!.drop();
    expect(server.open().isClosed).toBe(false);
  });
});

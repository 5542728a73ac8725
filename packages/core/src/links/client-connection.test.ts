import { describe, expect, test, vi } from 'vitest';
import { MemoryDisk } from '../storage/memory-disk.ts';
import { TestServer } from '../testing/test-server.ts';

describe('a connection before the database has been recovered', () => {
  function recoveringServer(): { server: TestServer; recover: () => void } {
    const disk = new MemoryDisk();
    const delivery = vi.spyOn(disk, 'deliver').mockReturnValue(false);
    const server = new TestServer({}, disk);
    expect(server.isServing).toBe(false);
    return {
      server,
      recover: () => {
        delivery.mockRestore();
        server.run();
        expect(server.isServing).toBe(true);
      },
    };
  }

  test('is closed without an answer when it asks for a session', () => {
    const { server, recover } = recoveringServer();
    const client = server.open();
    client.connect();
    server.run();
    expect(client.takeArrivals()).toEqual([{ kind: 'closed' }]);
    expect(server.failure).toBeNull();
    recover();
    expect(server.connect().session).not.toBeNull();
  });

  test('may go away again', () => {
    const { server, recover } = recoveringServer();
    const client = server.open();
    client.drop();
    server.run();
    recover();
    expect(server.failure).toBeNull();
  });

  test('may be there first and ask later', () => {
    const { server, recover } = recoveringServer();
    const client = server.open();
    recover();
    client.connect();
    server.run();
    expect(client.session).not.toBeNull();
  });

  test('gets an answer to a four-letter word', () => {
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

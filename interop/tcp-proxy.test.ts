import { TcpProxy } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { describeWith } from './harness/peers.ts';
import { ConnectionClosed, Op, RawClient } from './harness/raw-client.ts';
import { OPEN_ACL, record } from './harness/record-builder.ts';
import { SERVER_KINDS, type ServerKind, ServerProcess } from './harness/server-process.ts';

function createRequest(path: string): Buffer {
  return record().ustring(path).buffer('').acls(OPEN_ACL).int(0).build();
}

describeWith(['apache'], "the testing package's proxy in front of a server process", () => {
  test.each(SERVER_KINDS)(
    'cuts a request and a reply at the given byte, with the expected effect (%s)',
    async (kind) => {
      await using server = await ServerProcess.start(kind);
      await using proxy = await TcpProxy.start({ target: server.port });
      const requestBytes = 12 + createRequest('/a').length;
      const cuts = [
        { path: '/a', direction: 'toServer', bytes: 0, isDone: false },
        { path: '/b', direction: 'toServer', bytes: requestBytes - 1, isDone: false },
        { path: '/c', direction: 'toClient', bytes: 0, isDone: true },
        { path: '/d', direction: 'toClient', bytes: 20, isDone: true },
      ] as const;
      const observer = await RawClient.connect(server.port);
      for (const { path, direction, bytes, isDone } of cuts) {
        const coming = proxy.nextConnection();
        const client = await RawClient.connect(proxy.port);
        const connection = await coming;
        // A round trip first: Apache's server may still be busy with the new session.
        await client.ping();
        const cut = connection.cutAfter({ direction, bytes });
        await expect(client.request(Op.create, createRequest(path))).rejects.toBeInstanceOf(ConnectionClosed);
        await cut;
        // The client reconnects through the proxy: its earlier requests have been handled by then.
        const back = await RawClient.connect(proxy.port, client.credentials);
        const { error } = await back.request(Op.exists, record().ustring(path).bool(false).build());
        expect([path, error === 0]).toEqual([path, isDone]);
        await back.close();
      }
      await observer.close();
    },
  );

  test('redirects a client from one server to another', async () => {
    const kinds: readonly ServerKind[] = SERVER_KINDS;
    await using first = await ServerProcess.start(kinds[0] ?? 'apache');
    await using second = await ServerProcess.start(kinds[1] ?? 'meerkat');
    await using proxy = await TcpProxy.start({ target: first.port });
    const client = await RawClient.connect(proxy.port);
    await client.demand(Op.create, createRequest('/only-here'));
    proxy.target = second.port;
    await proxy.cut();
    await client.closed;
    // The session is not known there.
    await expect(RawClient.connect(proxy.port, { ...client.credentials, lastZxidSeen: 0n })).rejects.toThrow('refused');
    const other = await RawClient.connect(proxy.port);
    const { error } = await other.request(Op.exists, record().ustring('/only-here').bool(false).build());
    expect(error).toBe(-101);
    await other.close();
  });
});

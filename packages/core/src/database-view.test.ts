import { CreateMode, OPEN_ACL, OpCode, type Request } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { TestServer } from './testing/test-server.ts';

function create(path: string, text: string, flags: number = CreateMode.persistent): Request {
  return { op: OpCode.create, path, data: new TextEncoder().encode(text), acl: OPEN_ACL, flags, ttl: -1 };
}

describe('the view of a database', () => {
  it('lists every znode after its parent, and the sessions with their timeouts', () => {
    const server = new TestServer();
    const client = server.connect(7000);
    client.send(create('/a', 'one'));
    client.send(create('/b', ''));
    client.send(create('/a/e', 'two', CreateMode.ephemeral));
    server.run();
    const view = server.core.view.database();
    const znodes = [...(view?.znodes() ?? [])].filter(({ path }) => !path.startsWith('/zookeeper'));
    expect(znodes.map(({ path, data }) => `${path} ${new TextDecoder().decode(data ?? undefined)}`)).toEqual([
      '/ ',
      '/a one',
      '/a/e two',
      '/b ',
    ]);
    expect(znodes[2]).toMatchObject({
      acl: OPEN_ACL,
      stat: { czxid: 4, version: 0, ephemeralOwner: client.session?.id },
    });
    expect(view?.lastZxid).toBe(4);
    expect(view?.sessions).toEqual(new Map([[client.session?.id, 7000]]));
  });
});

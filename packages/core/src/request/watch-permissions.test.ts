import {
  type Acl,
  AddWatchMode,
  CreateMode,
  ErrorCode,
  EventType,
  OpCode,
  Perm,
  type Request,
  SpecialXid,
  WatcherType,
} from '@meerkat/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { create, remove, setData } from '../testing/core-requests.ts';
import { type TestClient, TestServer } from '../testing/test-server.ts';

/** Anyone may change it, but only ann may read it. */
const ANNS: readonly Acl[] = [
  { perms: Perm.all, scheme: 'digest', id: 'ann:secret' },
  { perms: Perm.all - Perm.read, scheme: 'world', id: 'anyone' },
];
/** Later than every zxid. */
const NEVER = 2 ** 40;

const setAcl = (path: string, acl: readonly Acl[]): Request => ({ op: OpCode.setACL, path, acl, version: -1 });

let server: TestServer;
let owner: TestClient;
let stranger: TestClient;

/** What the client receives, in order: events by name, replies by their error. */
function ask(client: TestClient, request: Request): string[] {
  client.send(request);
  server.run();
  return eventsOf(client);
}

function eventsOf(client: TestClient): string[] {
  return client.takeArrivals().map((arrival) => {
    if (arrival.kind === 'reply') return String(arrival.header.error);
    if (arrival.kind !== 'event') return arrival.kind;
    const name = Object.entries(EventType).find(([, type]) => type === arrival.event.type)?.[0];
    return `${name} ${arrival.event.path}`;
  });
}

type Lists = Partial<Record<'data' | 'exist' | 'child' | 'persistent' | 'recursive', string[]>>;

function setWatches(relativeZxid: number, lists: Lists): Request {
  return {
    op: OpCode.setWatches2,
    relativeZxid,
    dataWatches: lists.data ?? [],
    existWatches: lists.exist ?? [],
    childWatches: lists.child ?? [],
    persistentWatches: lists.persistent ?? [],
    persistentRecursiveWatches: lists.recursive ?? [],
  };
}

const hasWatch = (client: TestClient, path: string): boolean =>
  ask(client, { op: OpCode.checkWatches, path, watcherType: WatcherType.any })[0] === String(ErrorCode.ok);

beforeEach(() => {
  server = new TestServer();
  owner = server.connect();
  owner.send({ op: OpCode.auth, scheme: 'digest', auth: new TextEncoder().encode('ann:secret') }, SpecialXid.auth);
  stranger = server.connect();
  for (const request of [create('/open'), create('/secret', CreateMode.persistent, { acl: ANNS })]) ask(owner, request);
});

describe('setWatches on a znode that the client may not read', () => {
  test('reports a change for every zxid, and leaves no watch', () => {
    for (const relativeZxid of [0, 1, 2, 3, 4, NEVER, -1]) {
      const lists = { data: ['/secret'], exist: ['/secret'], child: ['/secret'] };
      expect(ask(stranger, setWatches(relativeZxid, lists))).toEqual([
        'nodeDataChanged /secret',
        'nodeCreated /secret',
        'nodeChildrenChanged /secret',
        '0',
      ]);
      expect(hasWatch(stranger, '/secret')).toBe(false);
    }
    for (const request of [setData('/secret'), create('/secret/x'), remove('/secret/x'), remove('/secret')]) {
      expect(ask(owner, request)).toEqual(['0']);
    }
    expect(eventsOf(stranger)).toEqual([]);
  });

  test('reveals only whether the znode exists, like getData', () => {
    const getData = (path: string): Request => ({ op: OpCode.getData, path, watch: true });
    expect(ask(stranger, getData('/secret'))).toEqual([String(ErrorCode.noAuth)]);
    expect(ask(stranger, getData('/none'))).toEqual([String(ErrorCode.noNode)]);
    expect(ask(stranger, setWatches(NEVER, { data: ['/none'], child: ['/none'] }))).toEqual([
      'nodeDeleted /none',
      'nodeDeleted /none',
      '0',
    ]);
  });

  test('does not affect clients that may read it, or other znodes', () => {
    const lists = { data: ['/secret', '/open'], child: ['/secret', '/open'] };
    expect(ask(owner, setWatches(NEVER, lists))).toEqual(['0']);
    expect(ask(owner, setData('/secret'))).toEqual(['nodeDataChanged /secret', '0']);
    expect(ask(stranger, setWatches(NEVER, { data: ['/open'], child: ['/open'] }))).toEqual(['0']);
    expect(ask(owner, create('/open/x'))).toEqual(['nodeChildrenChanged /open', '0']);
    expect(eventsOf(stranger)).toEqual(['nodeChildrenChanged /open']);
  });

  test('notifies a client that lost the permission while disconnected, before it can read anything newer', () => {
    expect(ask(stranger, { op: OpCode.getData, path: '/open', watch: true })).toEqual(['0']);
    const seen = server.core.view.lastZxid;
    stranger.drop();
    ask(owner, setAcl('/open', ANNS));
    const back = server.open();
    back.connect({ session: stranger.session! });
    server.run();
    eventsOf(back);
    expect(ask(back, setWatches(seen, { data: ['/open'] }))).toEqual(['nodeDataChanged /open', '0']);
  });
});

describe('events of a znode that the client may not read', () => {
  test('fire no watch of any kind: for a creation, a change, a child or the deletion', () => {
    for (const [path, mode] of [
      ['/secret', AddWatchMode.persistent],
      ['/hidden', AddWatchMode.persistent],
      ['/', AddWatchMode.persistentRecursive],
    ] as const) {
      expect(ask(stranger, { op: OpCode.addWatch, path, mode })).toEqual(['0']);
    }
    expect(ask(stranger, setWatches(NEVER, { persistent: ['/secret'], recursive: ['/secret'] }))).toEqual(['0']);
    expect(ask(stranger, { op: OpCode.exists, path: '/hidden', watch: true })).toEqual([String(ErrorCode.noNode)]);
    for (const request of [
      create('/hidden', CreateMode.persistent, { acl: ANNS }),
      setData('/hidden'),
      create('/hidden/x', CreateMode.persistent, { acl: ANNS }),
      remove('/hidden/x'),
      // The last znode with this ACL, which must still be known when the deletion event is sent.
      remove('/hidden'),
      setData('/secret'),
      remove('/secret'),
    ]) {
      expect(ask(owner, request)).toEqual(['0']);
      expect(eventsOf(stranger)).toEqual([]);
    }
    // Events of a child that anyone may read are sent, even if its parent is not readable.
    ask(owner, create('/hidden', CreateMode.persistent, { acl: ANNS }));
    ask(owner, create('/hidden/open'));
    expect(eventsOf(stranger)).toEqual(['nodeCreated /hidden/open']);
  });
});

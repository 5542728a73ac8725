import {
  AddWatchMode,
  CreateMode,
  ErrorCode,
  JuteReader,
  OPEN_ACL,
  OpCode,
  Perm,
  type ReadRequest,
  type Request,
  WatcherType,
} from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { type TestClient, TestServer } from '../testing/test-server.ts';

const ephemeral = (path: string): Request => ({
  op: OpCode.create,
  path,
  data: null,
  acl: OPEN_ACL,
  flags: CreateMode.ephemeral,
  ttl: -1,
});

/** The strings of a reply's vector. */
function textsOf(client: TestClient): string[] {
  const [reply] = client.takeArrivals();
  if (reply?.kind !== 'reply') throw new Error('no reply came');
  const reader = new JuteReader(reply.body);
  return Array.from({ length: reader.int() }, () => reader.ustring() ?? '');
}

describe('getEphemerals', () => {
  test('returns all when the prefix is empty or "/" after a trim() like that of Java', () => {
    const server = new TestServer();
    const client = server.connect();
    for (const path of ['/a', '/b']) client.send(ephemeral(path));
    server.run();
    client.takeArrivals();
    const ask = (prefix: string | null): string[] => {
      client.send({ op: OpCode.getEphemerals, prefix });
      server.run();
      return textsOf(client).sort();
    };
    for (const all of [null, '', ' ', '/', ' /', '/ ', '\t/\r\n', '\0', '\x01 /\x1f']) {
      expect(ask(all), JSON.stringify(all)).toEqual(['/a', '/b']);
    }
    // Other prefixes are not trimmed, and only what Java's trim() removes counts as blank.
    for (const none of [
      ' /a',
      '/a ',
      'a',
      '//',
      '/ /',
      '\u00a0',
      '\u3000',
      '\u0085',
      '\ufeff/',
      `${' '.repeat(1000)}x`,
    ]) {
      expect(ask(none), JSON.stringify(none)).toEqual([]);
    }
    expect(ask('/b')).toEqual(['/b']);
  });
});

const { ok, noAuth, noWatcher } = ErrorCode;
const LISTS = {
  relativeZxid: 2 ** 40,
  dataWatches: ['/secret'],
  existWatches: [],
  childWatches: [],
  persistentWatches: [],
  persistentRecursiveWatches: [],
};

/**
 * Each read of a znode that the client may not read, and the error of the reply; `ok` where the reply reveals nothing.
 * Events are tested in `watch-permissions.test.ts`, the results of a multiRead in its property test.
 */
const OF_A_STRANGER: { readonly [Op in ReadRequest['op']]: readonly [ReadRequest & { readonly op: Op }, ErrorCode] } = {
  [OpCode.exists]: [{ op: OpCode.exists, path: '/secret', watch: false }, noAuth],
  [OpCode.getData]: [{ op: OpCode.getData, path: '/secret', watch: false }, noAuth],
  [OpCode.getACL]: [{ op: OpCode.getACL, path: '/secret' }, noAuth],
  [OpCode.getChildren]: [{ op: OpCode.getChildren, path: '/secret', watch: false }, noAuth],
  [OpCode.getChildren2]: [{ op: OpCode.getChildren2, path: '/secret', watch: false }, noAuth],
  [OpCode.getAllChildrenNumber]: [{ op: OpCode.getAllChildrenNumber, path: '/secret' }, noAuth],
  [OpCode.getEphemerals]: [{ op: OpCode.getEphemerals, prefix: '/secret' }, ok],
  [OpCode.multiRead]: [{ op: OpCode.multiRead, ops: [{ op: OpCode.getData, path: '/secret' }] }, ok],
  [OpCode.setWatches]: [{ op: OpCode.setWatches, ...LISTS }, ok],
  [OpCode.setWatches2]: [{ op: OpCode.setWatches2, ...LISTS }, ok],
  [OpCode.addWatch]: [{ op: OpCode.addWatch, path: '/secret', mode: AddWatchMode.persistent }, ok],
  [OpCode.checkWatches]: [{ op: OpCode.checkWatches, path: '/secret', watcherType: WatcherType.data }, noWatcher],
  [OpCode.removeWatches]: [{ op: OpCode.removeWatches, path: '/secret', watcherType: WatcherType.data }, noWatcher],
  [OpCode.whoAmI]: [{ op: OpCode.whoAmI }, ok],
};

test.each(Object.entries(OpCode).filter(([, op]) => op in OF_A_STRANGER))(
  '%s reveals nothing of a znode to a client that may not read it',
  (_name, op) => {
    const [request, code] = OF_A_STRANGER[op as ReadRequest['op']];
    const server = new TestServer();
    const [owner, stranger] = [server.connect(), server.connect()];
    const acl = [{ perms: Perm.all - Perm.read - Perm.admin, scheme: 'world', id: 'anyone' }];
    owner.send({ op: OpCode.create, path: '/secret', data: SECRET, acl, flags: CreateMode.persistent, ttl: -1 });
    server.run();
    stranger.send(request);
    server.run();
    const replies = stranger.takeArrivals().filter((arrival) => arrival.kind === 'reply');
    expect(replies.map(({ header }) => header.error)).toEqual([code]);
    expect(new TextDecoder('latin1').decode(replies[0]!.body)).not.toContain('hidden');
  },
);

const SECRET = new TextEncoder().encode('hidden');

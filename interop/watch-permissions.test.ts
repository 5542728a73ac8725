import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeWith } from './harness/peers.ts';
import { Op, RawClient, type Reply } from './harness/raw-client.ts';
import { type AclEntry, record } from './harness/record-builder.ts';
import { RecordReader, type Stat } from './harness/record-reader.ts';
import { type ServerKind, ServerProcess, SUPER_CREDENTIALS } from './harness/server-process.ts';

const PATH = '/secret';
/** Everything but READ. */
const UNREADABLE: readonly AclEntry[] = [{ perms: 30, scheme: 'world', id: 'anyone' }];
const Event = { created: 1, deleted: 2, changed: 3, children: 4 } as const;
const NO_AUTH = -102;
const NO_WATCHER = -121;
const DATA_WATCHES = 2;

describeWith(['apache'], "on Apache's server", () => testServer('apache'));
describe('on ours', () => testServer('meerkat'));

function testServer(kind: ServerKind): void {
  let server: ServerProcess;
  /** Has all permissions. */
  let owner: RawClient;
  /** Has no READ permission on the znodes under test. */
  let stranger: RawClient;

  beforeAll(async () => {
    server = await ServerProcess.start(kind);
    owner = await RawClient.connect(server.port);
    stranger = await RawClient.connect(server.port);
    await owner.auth('digest', SUPER_CREDENTIALS);
    await owner.demand(Op.create, record().ustring(PATH).buffer('').acls(UNREADABLE).int(0).build());
    // More writes, so that the zxid is not the last one.
    for (let i = 0; i < 20; i++) await setData(owner, '/');
    await setData(owner, PATH);
    for (let i = 0; i < 20; i++) await setData(owner, '/');
  });
  afterAll(() => server?.dispose());

  function setData(client: RawClient, path: string): Promise<Reply> {
    return client.demand(Op.setData, record().ustring(path).buffer('').int(-1).build());
  }

  async function stat(): Promise<Stat> {
    const { body } = await owner.demand(Op.exists, record().ustring(PATH).bool(false).build());
    return new RecordReader(body).stat();
  }

  /** Sends setWatches. @returns the types of the immediate events */
  async function setWatches(zxid: bigint, lists: readonly (readonly string[])[]): Promise<number[]> {
    const before = stranger.notifications.length;
    const body = record().long(zxid);
    for (const list of lists) body.strings(list);
    await stranger.demand(lists.length === 3 ? Op.setWatches : Op.setWatches2, body.build());
    return stranger.notifications.slice(before).map(({ type }) => type);
  }

  const hasDataWatch = async (): Promise<boolean> =>
    (await stranger.request(Op.checkWatches, record().ustring(PATH).int(DATA_WATCHES).build())).error !== NO_WATCHER;

  test('setWatches without READ reveals no more than NOAUTH on ours', async () => {
    const read = await stranger.request(Op.getData, record().ustring(PATH).bool(true).build());
    expect(read.error).toBe(NO_AUTH);
    const { mzxid, pzxid } = await stat();
    expect(mzxid).toBeGreaterThan(pzxid);
    const last = stranger.lastZxid;
    const answers: (readonly number[])[] = [];
    for (let zxid = 0n; zxid <= last; zxid++) {
      const lists = [[PATH], [PATH], [PATH]];
      answers.push(await setWatches(zxid, zxid % 2n === 0n ? lists : [...lists, [], []]));
    }
    if (kind === 'meerkat') {
      expect(new Set(answers.map(String))).toEqual(new Set([String([Event.changed, Event.created, Event.children])]));
      expect(await hasDataWatch()).toBe(false);
      // A later change is not reported either.
      await setData(owner, PATH);
      expect(await hasDataWatch()).toBe(false);
    } else {
      // Apache's server reveals the exact zxid of the last change.
      expect(answers.findIndex((types) => !types.includes(Event.changed))).toBe(Number(mzxid));
      expect(answers.findIndex((types) => !types.includes(Event.children))).toBe(Number(pzxid));
      expect(await hasDataWatch()).toBe(true);
      await setData(owner, PATH);
      expect(await hasDataWatch()).toBe(false);
    }
  });

  test('no watch of any kind is notified of changes to a znode without READ', async () => {
    await setWatches(2n ** 40n, [[], [], [], [PATH], ['/', PATH]]);
    const before = stranger.notifications.length;
    await setData(owner, PATH);
    await owner.demand(Op.create, record().ustring(`${PATH}/x`).buffer('').acls(UNREADABLE).int(0).build());
    await owner.demand(Op.delete, record().ustring(`${PATH}/x`).int(-1).build());
    await owner.demand(Op.delete, record().ustring(PATH).int(-1).build());
    await stranger.ping();
    expect(stranger.notifications.slice(before)).toEqual([]);
  });
}

import { createHash } from 'node:crypto';
import { Op, RawClient, type Reply } from '../harness/raw-client.ts';
import { type AclEntry, OPEN_ACL, record } from '../harness/record-builder.ts';

/** A session that stays open when its server stops, with its znodes. */
export interface SurvivingSession {
  readonly credentials: RawClient['credentials'];
  readonly ephemerals: readonly string[];
}

const ALICE = `alice:${createHash('sha1').update('alice:secret').digest('base64')}`;

const ACLS: readonly (readonly AclEntry[])[] = [
  OPEN_ACL,
  [{ perms: 31, scheme: 'digest', id: ALICE }],
  [
    { perms: 1, scheme: 'world', id: 'anyone' },
    { perms: 30, scheme: 'ip', id: '127.0.0.0/8' },
  ],
  [{ perms: 31, scheme: 'auth', id: '' }],
];

/**
 * Fills a server through several concurrent sessions with everything that a data directory can contain: data of all
 * sizes, ACLs, sequential, ephemeral, container and TTL znodes, quotas, deletions, multis, and failed writes (which are
 * logged too).
 *
 * @param root a znode that does not exist yet; everything is created below it
 */
export async function fill(port: number, root: string): Promise<SurvivingSession> {
  const [first, second, leaving, surviving] = await Promise.all([
    RawClient.connect(port),
    RawClient.connect(port, { timeoutMs: 20_000 }),
    RawClient.connect(port),
    RawClient.connect(port, { timeoutMs: 60_000 }),
  ]);
  for (const client of [first, second]) await client.auth('digest', 'alice:secret');
  await create(first, root, 'root');
  await Promise.all(
    ['seq', 'acl', 'gone', 'quota', 'deep', 'eph'].map((name) => create(first, `${root}/${name}`, name)),
  );
  const limits = `/zookeeper/quota${root}/quota`;
  await createParents(first, limits);
  await create(first, `${limits}/zookeeper_limits`, 'count=3,bytes=100');
  await create(first, `${limits}/zookeeper_stats`, 'count=0,bytes=0');

  await Promise.all([
    writeData(first, root),
    writeLists(second, root),
    writeSequences(second, root),
    writeKinds(first, root),
    writeFailures(first, root),
  ]);
  // Not concurrent with other writes: after a multi that fails while other writes are in flight, an Apache server may
  // log a wrong digest, which it reports when it replays the log.
  await writeMultis(second, root);
  const ephemerals = Array.from({ length: 5 }, (_, i) => `${root}/eph/kept-${i}`);
  await Promise.all(ephemerals.map((path) => create(surviving, path, 'mine', 1)));
  await Promise.all(Array.from({ length: 5 }, (_, i) => create(leaving, `${root}/eph/left-${i}`, 'soon gone', 1)));
  await leaving.close();
  const credentials = surviving.credentials;
  surviving.destroy();
  await Promise.all([first.close(), second.close()]);
  return { credentials, ephemerals };
}

async function writeData(client: RawClient, root: string): Promise<void> {
  const data = [null, Buffer.alloc(0), Buffer.from('a'), Buffer.alloc(1000, 'k'), Buffer.alloc(60_000, 'L')];
  const paths = data.map((_, i) => `${root}/data-${i}`);
  await Promise.all(paths.map((path, i) => create(client, path, data[i] ?? null)));
  await Promise.all([
    create(client, `${root}/\u00fcml\u00e4ut-\u4e2d`, 'non-ASCII'),
    create(client, `${root}/...`, 'dots'),
  ]);
  const changes = Array.from({ length: 120 }, (_, i) =>
    client.demand(
      Op.setData,
      record()
        .ustring(`${root}/data-${i % 5}`)
        .buffer(`change ${i}`)
        .int(-1)
        .build(),
    ),
  );
  await Promise.all(changes);
  // One znode has null data.
  await client.demand(Op.setData, record().ustring(`${root}/data-0`).buffer(null).int(-1).build());
  for (let i = 0; i < 40; i++) await create(client, `${root}/gone/${i}`, 'short-lived');
  await Promise.all(
    Array.from({ length: 30 }, (_, i) =>
      client.demand(Op.delete, record().ustring(`${root}/gone/${i}`).int(0).build()),
    ),
  );
  await createParents(client, `${root}/deep/1/2/3/4/5/6/7/8`);
}

async function writeLists(client: RawClient, root: string): Promise<void> {
  for (const [i, acl] of ACLS.entries()) {
    const path = `${root}/acl/${i}`;
    await client.demand(Op.create, record().ustring(path).buffer('guarded').acls(acl).int(0).build());
    const next = ACLS[(i + 1) % ACLS.length] ?? OPEN_ACL;
    await client.demand(Op.setACL, record().ustring(path).acls(next).int(0).build());
  }
}

async function writeSequences(client: RawClient, root: string): Promise<void> {
  const names = await Promise.all(Array.from({ length: 60 }, () => create(client, `${root}/seq/n-`, 'next', 2)));
  // Neither server reuses the numbers of deleted znodes.
  await Promise.all(names.slice(40).map((reply) => client.demand(Op.delete, record().raw(reply.body).int(-1).build())));
}

async function writeKinds(client: RawClient, root: string): Promise<void> {
  const container = (path: string): Promise<Reply> =>
    client.demand(Op.createContainer, record().ustring(path).buffer('c').acls(OPEN_ACL).int(4).build());
  await container(`${root}/container`);
  await container(`${root}/container-with-child`);
  await create(client, `${root}/container-with-child/child`, 'child');
  const ttl = (path: string, flags: number, ms: bigint): Promise<Reply> =>
    client.demand(Op.createTTL, record().ustring(path).buffer('t').acls(OPEN_ACL).int(flags).long(ms).build());
  await Promise.all([
    ttl(`${root}/ttl`, 5, 3_600_000n),
    ttl(`${root}/ttl-longest`, 5, 0xff_ffff_ffffn),
    ttl(`${root}/ttl-`, 6, 86_400_000n),
  ]);
  await Promise.all(['a', 'b', 'c', 'd'].map((name) => create(client, `${root}/quota/${name}`, `under quota ${name}`)));
}

async function writeMultis(client: RawClient, root: string): Promise<void> {
  const header = (type: number): Buffer => record().int(type).bool(false).int(-1).build();
  const end = record().int(-1).bool(true).int(-1).build();
  const sub = (path: string, flags: number): Buffer =>
    record()
      .raw(header(Op.create))
      .raw(createBody(path, 'from a multi', flags))
      .build();
  for (let i = 0; i < 10; i++) {
    const body = record()
      .raw(sub(`${root}/multi-${i}`, 0))
      .raw(sub(`${root}/multi-${i}/child-`, 2))
      .raw(header(Op.setData))
      .raw(record().ustring(`${root}/multi-${i}`).buffer('changed in the multi').int(0).build());
    // Every third multi fails at its last op and has no effect.
    const version = i % 3 === 2 ? 7 : 1;
    body.raw(header(Op.check)).raw(record().ustring(`${root}/multi-${i}`).int(version).build());
    await client.demand(Op.multi, body.raw(end).build());
  }
}

async function writeFailures(client: RawClient, root: string): Promise<void> {
  const replies = await Promise.all([
    client.request(Op.create, createBody(`${root}/nope/x`, 'no parent', 0)),
    client.request(Op.delete, record().ustring(root).int(-1).build()),
    client.request(Op.setData, record().ustring(`${root}/seq`).buffer('x').int(77).build()),
  ]);
  if (replies.some((reply) => reply.error === 0)) throw new Error('a write that must fail did not');
}

function create(client: RawClient, path: string, data: Buffer | string | null, flags = 0): Promise<Reply> {
  return client.demand(Op.create, createBody(path, data, flags));
}

function createBody(path: string, data: Buffer | string | null, flags: number): Buffer {
  return record().ustring(path).buffer(data).acls(OPEN_ACL).int(flags).build();
}

async function createParents(client: RawClient, path: string): Promise<void> {
  const names = path.split('/').slice(1);
  for (const i of names.keys()) {
    const reply = await client.request(Op.create, createBody(`/${names.slice(0, i + 1).join('/')}`, '', 0));
    if (reply.error !== 0 && reply.error !== -110) throw new Error(`create failed with ${reply.error}`);
  }
}

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeWith } from './harness/peers.ts';
import { Op, RawClient } from './harness/raw-client.ts';
import { type AclEntry, record } from './harness/record-builder.ts';
import { type ServerKind, ServerProcess } from './harness/server-process.ts';

/** `ann:secret`, hashed as by the digest scheme. */
const HASH = '7RJfAeIvrl4zdj6sS2fXrQHDvHM=';
const Perm = { read: 1, write: 2, create: 4, delete: 8, admin: 16 } as const;
const OWNER: AclEntry = { perms: 31, scheme: 'digest', id: `ann:${HASH}` };
const NO_AUTH = -102;

describeWith(['apache'], "on Apache's server", () => testServer('apache'));
describe('on ours', () => testServer('meerkat'));

/** CVE-2019-0201: getACL returned password hashes to every client. */
function testServer(kind: ServerKind): void {
  let server: ServerProcess;
  let owner: RawClient;
  let stranger: RawClient;

  beforeAll(async () => {
    server = await ServerProcess.start(kind);
    owner = await RawClient.connect(server.port);
    stranger = await RawClient.connect(server.port);
    await owner.auth('digest', 'ann:secret');
  });
  afterAll(() => server?.dispose());

  /** @param perms of all other clients */
  async function create(path: string, perms: number): Promise<void> {
    const acl = perms === 0 ? [OWNER] : [OWNER, { perms, scheme: 'world', id: 'anyone' }];
    await owner.demand(Op.create, record().ustring(path).buffer('').acls(acl).int(0).build());
  }

  const getAcl = (client: RawClient, path: string) => client.request(Op.getACL, record().ustring(path).build());
  const shows = (body: Buffer, text: string): boolean => body.includes(text);

  test('a client with READ alone sees the user names, but no hash', async () => {
    await create('/readable', Perm.read);
    const { error, body } = await getAcl(stranger, '/readable');
    expect(error).toBe(0);
    expect(shows(body, 'ann:x')).toBe(true);
    expect(shows(body, HASH)).toBe(false);
  });

  test('a client with neither READ nor ADMIN sees nothing', async () => {
    await create('/writable', Perm.write | Perm.create | Perm.delete);
    const { error, body } = await getAcl(stranger, '/writable');
    expect(error).toBe(NO_AUTH);
    expect(shows(body, 'ann')).toBe(false);
  });

  test('a client with ADMIN sees the hash', async () => {
    await create('/own', 0);
    await create('/administered', Perm.admin);
    expect(shows((await getAcl(owner, '/own')).body, HASH)).toBe(true);
    expect(shows((await getAcl(stranger, '/administered')).body, HASH)).toBe(true);
  });
}

import { Op, RawClient } from './raw-client.ts';
import { record } from './record-builder.ts';

const WORLD = [{ perms: 31, scheme: 'world', id: 'anyone' }];
const EPHEMERAL = 1;
/** Requests in flight, limited so that a slow server queues few. */
const WINDOW = 500;

export function createRequest(path: string, flags = 0, acl = WORLD): Buffer {
  return record().ustring(path).buffer(Buffer.from('x')).acls(acl).int(flags).build();
}

/** Connects a session with many ephemerals with long paths below `parent`, which must exist. */
export async function connectCrowd(
  port: number,
  parent: string,
  {
    count,
    pathBytes,
    timeoutMs = 30_000,
  }: { readonly count: number; readonly pathBytes: number; readonly timeoutMs?: number },
): Promise<RawClient> {
  const client = await RawClient.connect(port, { timeoutMs });
  for (let first = 0; first < count; first += WINDOW) {
    const length = Math.min(WINDOW, count - first);
    const created = Array.from({ length }, (_, i) =>
      client.demand(Op.create, createRequest(`${parent}/${first + i}-`.padEnd(pathBytes, 'x'), EPHEMERAL)),
    );
    await Promise.all(created);
  }
  return client;
}

/** The number of children of a znode. */
export async function countChildren(client: RawClient, path: string): Promise<number> {
  const reply = await client.demand(Op.getAllChildrenNumber, record().ustring(path).build());
  return reply.body.readInt32BE(0);
}

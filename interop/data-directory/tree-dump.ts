import { aclText } from '../differential/step.ts';
import { Op, RawClient } from '../harness/raw-client.ts';
import { record } from '../harness/record-builder.ts';
import { RecordReader } from '../harness/record-reader.ts';
import { SUPER_CREDENTIALS } from '../harness/server-process.ts';

/** A whole tree as a server returns it: for each path a line with all fields of the znode. */
export type TreeDump = Readonly<Record<string, string>>;

/** Reads all znodes as the super user: data, ACL, and all fields of the Stat. */
export async function dumpTree(port: number): Promise<TreeDump> {
  const client = await RawClient.connect(port);
  try {
    await client.auth('digest', SUPER_CREDENTIALS);
    const dump: Record<string, string> = {};
    let paths = ['/'];
    while (paths.length > 0) {
      const found = await Promise.all(paths.map((path) => dumpZnode(client, path, dump)));
      paths = found.flat();
    }
    return Object.fromEntries(Object.entries(dump).sort(([a], [b]) => (a < b ? -1 : 1)));
  } finally {
    await client.close();
  }
}

/** Adds one znode; returns its children's paths. */
async function dumpZnode(client: RawClient, path: string, dump: Record<string, string>): Promise<string[]> {
  const name = record().ustring(path).build();
  const named = record().ustring(path).bool(false).build();
  const [data, acl, children] = await Promise.all([
    client.demand(Op.getData, named),
    client.demand(Op.getACL, name),
    client.demand(Op.getChildren, named),
  ]);
  const dataReader = new RecordReader(data.body);
  const bytes = dataReader.buffer();
  const stat = Object.entries(dataReader.stat()).map(([field, value]) => `${field} ${value}`);
  const list = new RecordReader(acl.body).acls();
  dump[path] = `${bytes === null ? 'null' : bytes.toString('latin1')} | ${aclText(list)} | ${stat.join(' ')}`;
  const names = new RecordReader(children.body).strings() ?? [];
  return names.map((child) => (path === '/' ? `/${child}` : `${path}/${child}`));
}

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { acl, type Client, connect } from '@meerkat/client';
import { fourLetterWord, freePort } from '../harness/server-process.ts';
import { Program } from '../install/single-file.ts';
import { type DumpedZnode, dumpTree } from './tree.ts';

/**
 * The previous release: a commit, until there are releases. Its server is in the fixture, bundled into one script. To
 * update it, bundle the server into `fixture/server-<release>.mjs.gz`, change this, and run `RECORD=release npx vitest
 * run --project long interop/upgrade && npm run format`.
 */
export const RELEASE = '907eca2';

const FIXTURE: string = fileURLToPath(new URL('./fixture/', import.meta.url));
const fileOf = (name: string): string => join(FIXTURE, name);

export interface Expected {
  readonly znodes: readonly DumpedZnode[];
  /** Session of the recorded client, which owns the ephemeral znode; its timeout is more than a day. */
  readonly session: { readonly id: bigint; readonly password: Uint8Array };
}

/** All znodes as returned by the server of that release before it was killed. */
export function readExpected(): Expected {
  const { session, znodes } = JSON.parse(readFileSync(fileOf(`tree-${RELEASE}.json`), 'utf8')) as {
    readonly session: { readonly id: string; readonly password: string };
    readonly znodes: readonly DumpedZnode[];
  };
  return { znodes, session: { id: BigInt(session.id), password: Buffer.from(session.password, 'base64') } };
}

/** Unpacks `data` or `backup` into a new directory. */
export function unpack(name: 'data' | 'backup', directory: string): void {
  mkdirSync(directory, { recursive: true });
  execFileSync('tar', ['-xzf', fileOf(`${name}-${RELEASE}.tar.gz`), '-C', directory]);
}

/** The command line of that release's server. @param directory for the script */
export function oldServer(directory: string): readonly string[] {
  const script = join(directory, 'old-server.mjs');
  writeFileSync(script, gunzipSync(readFileSync(fileOf(`server-${RELEASE}.mjs.gz`))));
  return [process.execPath, script];
}

/** Waits until a server serves clients. @returns its mode */
export async function untilServing(port: number, program: Program): Promise<string> {
  for (;;) {
    const answer = await fourLetterWord(port, 'srvr', 5_000).catch(() => '');
    const mode = /^Mode: (.*)$/m.exec(answer)?.[1];
    if (mode !== undefined) return mode;
    if (program.child.exitCode !== null) throw new Error(`the server has ended:\n${program.output}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/**
 * Records the fixture from its server script: RECORD=release npx vitest run --project long interop/upgrade
 *
 * The server is killed, so that its log is not closed cleanly; the backup is made from its directory by the current
 * command.
 */
export async function record(directory: string, meerkat: readonly string[]): Promise<void> {
  const port = await freePort();
  const own = join(directory, 'record');
  mkdirSync(own);
  const lines = [
    ...['dataDir=data', `clientPort=${port}`, 'clientPortAddress=127.0.0.1', 'preAllocSize=64', 'snapCount=100'],
    ...['extendedTypesEnabled=true', 'maxSessionTimeout=100000000', 'admin.enableServer=false'],
  ];
  writeFileSync(join(own, 'zoo.cfg'), lines.join('\n'));
  await using server = new Program([...oldServer(directory), 'zoo.cfg'], own, process.env);
  await untilServing(port, server);
  const client = await connect(`127.0.0.1:${port}`, { sessionTimeoutMs: 86_400_000 });
  await fill(client);
  const znodes = await dumpTree(client);
  const { id, password } = await client.detach();
  server.child.kill('SIGKILL');
  await server.exited;
  const session = { id: String(id), password: Buffer.from(password).toString('base64') };
  writeFileSync(fileOf(`tree-${RELEASE}.json`), `${JSON.stringify({ session, znodes }, null, 1)}\n`);
  pack('data', join(own, 'data'));
  const [program = '', ...words] = meerkat;
  execFileSync(program, [...words, 'backup', '--dir', join(own, 'data'), '--to', join(own, 'backup')]);
  pack('backup', join(own, 'backup'));
}

function pack(name: string, directory: string): void {
  execFileSync('tar', ['--sparse', '-czf', fileOf(`${name}-${RELEASE}.tar.gz`), '-C', directory, '.']);
}

/** Writes txns of every kind, across more than one snapshot. */
async function fill(client: Client): Promise<void> {
  await client.create('/app', 'an application');
  await client.create('/app/config', '{"port":80}');
  for (let i = 0; i < 250; i++) await client.set('/app/config', `{"port":${i}}`);
  await client.create('/app/items');
  for (let i = 0; i < 20; i++) await client.create('/app/items/item-', String(i), { sequential: true });
  await client.delete('/app/items/item-0000000003');
  await client.create('/app/container', '', { mode: 'container' });
  await client.create('/app/container/child');
  await client.create('/app/ttl', 'for a long time', { ttlMs: 86_400_000_000 });
  await client.create('/app/here', 'as long as the session', { mode: 'ephemeral' });
  await client.create('/app/readable', 'to all', { acl: [acl.world('r'), acl.digest('ann', 'secret')] });
  await client
    .transaction()
    .create('/app/multi', 'one')
    .set('/app', 'two')
    .create('/app/multi/child', 'three')
    .commit();
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, connect, isZooKeeperError } from '@meerkat/client';
import { checkLog, DirectoryFiles, openFile, restore, scanSnapshot } from '@meerkat/server/archive';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RunningCommand } from './cli/harness.ts';
import { describeWith } from './harness/peers.ts';
import { type ServerKind, ServerProcess } from './harness/server-process.ts';

let root: string;
let running: RunningCommand[];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'backups-'));
  running = [];
});
afterEach(async () => {
  for (const { child, ended } of running) {
    child.kill('SIGKILL');
    await ended;
  }
  rmSync(root, { recursive: true, force: true });
});

/** A write; null: the znode was deleted. */
interface Written {
  readonly zxid: number;
  readonly path: string;
  readonly data: string | null;
}

const TOP = '/load';
const NAMES = 30;

/** The only writer, so that it knows the state after each of its txns without asking a server. */
class Writer {
  /** In zxid order. */
  readonly written: Written[] = [];
  /** Zxids at which the writer knows the state. */
  readonly certain: number[] = [];
  readonly #client: Client;
  readonly #state = new Map<string, string>();
  #count = 0;

  constructor(client: Client) {
    this.#client = client;
  }

  async write(): Promise<void> {
    const path = `${TOP}/k${Math.floor(Math.random() * NAMES)}`;
    const data = `${this.#count++} ${'x'.repeat(Math.floor(Math.random() * 300))}`;
    const isThere = this.#state.has(path);
    const other = `${path}-twin`;
    const dice = Math.random();
    try {
      if (!isThere) {
        if (dice < 0.3) {
          await this.#client.transaction().create(path, data).create(other, data).commit();
          this.#note(other, data);
        } else {
          await this.#client.create(path, data, dice < 0.5 ? { mode: 'ephemeral' } : {});
        }
        this.#note(path, data);
      } else if (dice < 0.3) {
        if (this.#state.has(other)) {
          await this.#client.transaction().delete(path).delete(other).commit();
          this.#note(other, null);
        } else {
          await this.#client.delete(path);
        }
        this.#note(path, null);
      } else {
        await this.#client.set(path, data);
        this.#note(path, data);
      }
      this.certain.push(Number(this.#client.lastZxid));
    } catch (error) {
      if (!isZooKeeperError(error)) throw error;
      await this.#settle(path);
      await this.#settle(other);
    }
  }

  /** The state after a zxid. */
  at(zxid: number): ReadonlyMap<string, string> {
    const state = new Map<string, string>();
    for (const { zxid: when, path, data } of this.written) {
      if (when > zxid) break;
      if (data === null) state.delete(path);
      else state.set(path, data);
    }
    return state;
  }

  #note(path: string, data: string | null, zxid = Number(this.#client.lastZxid)): void {
    this.written.push({ zxid, path, data });
    if (data === null) this.#state.delete(path);
    else this.#state.set(path, data);
  }

  /** Determines the state after a write with an unknown outcome. */
  async #settle(path: string): Promise<void> {
    const found = await this.#client.get(path).catch((error: unknown) => {
      if (isZooKeeperError(error) && error.code === 'NONODE') return null;
      throw error;
    });
    const now = found === null ? null : Buffer.from(found.data).toString();
    if (now === (this.#state.get(path) ?? null)) return;
    const parent = found === null ? await this.#client.exists(TOP) : null;
    this.#note(path, now, Number(found?.stat.mzxid ?? parent?.pzxid));
  }
}

/** The znodes in a restored directory. */
async function znodesOf(path: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  const file = await openFile(path);
  await scanSnapshot(file, {
    onZnode: ({ path: at, data }) => {
      if (at.startsWith(`${TOP}/`)) found.set(at, Buffer.from(data ?? []).toString());
    },
  });
  await file.close();
  return found;
}

function start(args: readonly string[]): RunningCommand {
  const command = new RunningCommand(args, {}, true);
  running.push(command);
  return command;
}

/** Restores ten of the zxids and compares them with the writer's state. */
async function expectStates(backup: string, writer: Writer): Promise<void> {
  const zxids = Array.from(
    { length: 10 },
    () => writer.certain[Math.floor(Math.random() * writer.certain.length)] ?? 0,
  );
  const files = await DirectoryFiles.open(backup, null);
  for (const zxid of zxids) {
    const into = mkdtempSync(join(root, 'restored-'));
    const { path, isVerified } = await restore(files, into, { target: zxid as never });
    const what = `zxid 0x${zxid.toString(16)}`;
    expect({ what, isVerified }).toEqual({ what, isVerified: true });
    expect([...(await znodesOf(path ?? ''))].toSorted(), what).toEqual([...writer.at(zxid)].toSorted());
  }
}

describe('a backup that follows a server under load', () => {
  test('restores ten zxids exactly, though backup and server were killed meanwhile', async () => {
    await using server = await ServerProcess.start('meerkat', { hasAdmin: true, config: { snapCount: 150 } });
    const backup = join(root, 'backup');
    const args = [
      'backup',
      '--to',
      backup,
      '--admin',
      `127.0.0.1:${server.adminPort}`,
      '--follow',
      '--snapshot-every',
      '100ms',
    ];
    const client = await connect(`127.0.0.1:${server.port}`, { sessionTimeoutMs: 60_000 });
    await client.create(TOP);
    const writer = new Writer(client);
    let following = start(args);
    await begun(backup);
    for (let round = 0; round < 6; round++) {
      for (let n = 0; n < 120; n++) await writer.write();
      if (round === 2) {
        await server.kill();
        await server.restart();
      }
      following.child.kill('SIGKILL');
      await following.ended;
      following = start(args);
    }
    for (let n = 0; n < 120; n++) await writer.write();
    const last = writer.certain.at(-1) ?? 0;
    await expect.poll(() => lastOf(backup)).toBeGreaterThanOrEqual(last);
    following.child.kill('SIGINT');
    const { exitCode } = await following.ended;
    expect(exitCode).toBe(130);
    await client.close();
    await expectStates(backup, writer);
    // Servers start from a restored state and continue.
    const into = join(root, 'into');
    const restored = await start(['restore', backup, '--to', `0x${last.toString(16)}`, '--into', into]).ended;
    expect({ exitCode: restored.exitCode, stderr: restored.stderr }).toEqual({ exitCode: 0, stderr: '' });
    await using again = await ServerProcess.start('meerkat', { directory: into, config: { dataDir: into } });
    const reader = await connect(`127.0.0.1:${again.port}`);
    for (const [path, data] of writer.at(last)) {
      // Ephemerals are deleted when their sessions expire.
      const znode = await reader.get(path).catch(() => null);
      if (znode !== null) expect(Buffer.from(znode.data).toString()).toBe(data);
    }
    await reader.close();
  });
});

/** Waits for the first snapshot: later writes can be restored. */
async function begun(backup: string): Promise<void> {
  const snapshots = async (): Promise<number> => {
    return (await DirectoryFiles.listOf(join(backup, 'version-2')).catch(() => ({ snapshots: [] }))).snapshots.length;
  };
  await expect.poll(snapshots).toBeGreaterThan(0);
}

async function lastOf(backup: string): Promise<number> {
  try {
    const { logs } = await DirectoryFiles.listOf(join(backup, 'version-2'));
    const newest = logs.at(-1);
    if (newest === undefined) return 0;
    const { last } = await checkLog(join(backup, 'version-2', newest.name), null);
    return last ?? newest.zxid - 1;
  } catch {
    return 0;
  }
}

describeWith(['apache'], 'a backup of the directory of a server under load', () => {
  test.each<ServerKind>(['apache', 'meerkat'])(
    '%s: restores ten zxids exactly, and both servers start from one',
    async (kind) => {
      await using server = await ServerProcess.start(kind, { config: { snapCount: 100, preAllocSize: 64 } });
      const client = await connect(`127.0.0.1:${server.port}`, { sessionTimeoutMs: 60_000 });
      await client.create(TOP);
      const writer = new Writer(client);
      const backup = join(root, 'backup');
      const following = start([
        'backup',
        '--to',
        backup,
        '--dir',
        server.dataDirectory,
        '--follow',
        '--snapshot-every',
        '100ms',
      ]);
      await begun(backup);
      for (let n = 0; n < 500; n++) await writer.write();
      const last = writer.certain.at(-1) ?? 0;
      await expect.poll(() => lastOf(backup)).toBeGreaterThanOrEqual(last);
      following.child.kill('SIGTERM');
      await following.ended;
      await client.close();
      await expectStates(backup, writer);
      for (const reader of ['apache', 'meerkat'] as const) {
        const into = join(root, `into-${reader}`);
        await restore(await DirectoryFiles.open(backup, null), into, { target: last as never });
        await using again = await ServerProcess.start(reader, { directory: into, config: { dataDir: into } });
        const other = await connect(`127.0.0.1:${again.port}`);
        expect(Number((await other.exists(TOP))?.cversion)).toBeGreaterThan(0);
        await other.close();
      }
    },
  );
});

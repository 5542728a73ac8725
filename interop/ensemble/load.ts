import { fileURLToPath } from 'node:url';
import { connect, type ZooKeeperError } from '@meerkat/client';
import { expect } from 'vitest';
import type { TreeDump } from '../data-directory/tree-dump.ts';
import { ConsoleProcess } from '../harness/console-process.ts';

/**
 * A continuous writer that retries unanswered requests until they are known to be applied.
 *
 * Write number n creates `root/n` and then sets `root/register`, both with the data n. The session owns `root/mine`.
 */
export interface Writer extends AsyncDisposable {
  readonly root: string;
  /** Number of writes known to be applied. */
  readonly acknowledged: number;
  /** Its output or error, for the message of a timed-out wait. */
  readonly report: string;
  /** Stops writing; the session stays open. */
  finish(): Promise<Written>;
}

/** The final report of a writer. */
export interface Written {
  readonly root: string;
  readonly count: number;
  readonly session: bigint;
}

/** Starts a writer with our client. */
export async function startWriter(servers: string, root: string, sessionTimeoutMs: number): Promise<Writer> {
  const client = await connect(servers, { sessionTimeoutMs, backOff: { minMs: 5, maxMs: 100 } });
  const states: string[] = [];
  client.onState(({ state }) => states.push(state));
  await client.create(root);
  await client.create(`${root}/register`);
  const mine = await client.create(`${root}/mine`, '', { mode: 'ephemeral' });
  let isAsked = false;
  let count = 0;
  const write = async (): Promise<void> => {
    while (!isAsked) {
      await untilDone(() => client.create(`${root}/${nameOf(count)}`, String(count)));
      await untilDone(() => client.set(`${root}/register`, String(count)));
      count++;
    }
  };
  const writing = write();
  let failure = '';
  writing.catch((error: unknown) => {
    failure = String(error);
  });
  return {
    root,
    get acknowledged() {
      return count;
    },
    get report() {
      return `${states.join(' ')} ${failure}`;
    },
    async finish() {
      isAsked = true;
      await writing;
      expect(states).not.toContain('lost');
      expect(client.session?.id).toBe(mine.stat.ephemeralOwner);
      return { root, count, session: mine.stat.ephemeralOwner };
    },
    async [Symbol.asyncDispose]() {
      isAsked = true;
      await client.close();
    },
  };
}

/** Starts a writer with kazoo. */
export async function startKazooWriter(servers: string, root: string, sessionTimeoutMs: number): Promise<Writer> {
  const script = fileURLToPath(new URL('../kazoo/writer.py', import.meta.url));
  const console = new ConsoleProcess('/usr/bin/python3', [script, servers, root, String(sessionTimeoutMs / 1000)]);
  const begun = /session 0x(\w+)\n/.exec(await console.waitFor(/session 0x\w+\n/));
  return {
    root,
    get acknowledged() {
      return Number([...console.output.matchAll(/^acknowledged (\d+)$/gm)].at(-1)?.[1] ?? 0);
    },
    get report() {
      return console.output;
    },
    async finish() {
      console.send('enough');
      const end = await console.waitFor(/wrote \d+, session 0x\w+, states .*\n/);
      const [, count, session, states] = /wrote (\d+), session 0x(\w+), states (.*)\n/.exec(end) ?? [];
      expect(session).toBe(begun?.[1]);
      expect(states).toMatch(/^CONNECTED( SUSPENDED CONNECTED)*$/);
      return { root, count: Number(count), session: BigInt(`0x${session}`) };
    },
    async [Symbol.asyncDispose]() {
      console.send('bye');
      await console.end();
    },
  };
}

/** Milliseconds. Kazoo increases its delay after each failed attempt to connect. */
const PATIENCE_MS = 120_000;

/** Waits until every writer has made progress. */
export async function waitForProgress(writers: readonly Writer[]): Promise<void> {
  const aims = writers.map((writer) => ({ writer, aim: writer.acknowledged + 10 }));
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const behind = aims.filter(({ writer, aim }) => writer.acknowledged < aim);
    if (behind.length === 0) return;
    if (Date.now() > deadline) {
      const reports = behind.map(({ writer: { root, report } }) => `---- ${root}\n${report}`);
      throw new Error(`some writers stand still:\n${reports.join('\n')}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Expects each acknowledged write in the tree, once and unchanged, and the writer's session to be alive. */
export function expectWritten(tree: TreeDump, { root, count, session }: Written): void {
  const below = Object.entries(tree).filter(([path]) => path.startsWith(`${root}/`));
  const found = new Map(below.map(([path, text]) => [path.slice(root.length + 1), text]));
  const dataOf = (name: string): string | undefined => found.get(name)?.split(' | ')[0];
  for (let n = 0; n < count; n++) expect([nameOf(n), dataOf(nameOf(n))]).toEqual([nameOf(n), String(n)]);
  expect(dataOf('register')).toBe(String(count - 1));
  expect(found.get('mine')).toContain(`ephemeralOwner ${session}`);
  expect(found.size).toBe(count + 2);
}

function nameOf(n: number): string {
  return String(n).padStart(6, '0');
}

/** An existing znode was created by an attempt whose reply was lost: no other client creates it. */
async function untilDone(write: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await write();
      return;
    } catch (error) {
      const { code } = error as Partial<ZooKeeperError>;
      if (code === 'NODEEXISTS') return;
      if (code !== 'CONNECTIONLOSS') throw error;
    }
  }
}

import { fileURLToPath } from 'node:url';
import { connect, type ZooKeeperError } from '@meerkat/client';
import { expect } from 'vitest';
import type { TreeDump } from '../data-directory/tree-dump.ts';
import { ConsoleProcess } from '../harness/console-process.ts';

/**
 * A writer without a pause, which asks again for what was not answered until it is known to be done.
 *
 * Write number n creates `root/n` and then sets `root/register`, both with the data n. The session owns `root/mine`.
 */
export interface Writer extends AsyncDisposable {
  readonly root: string;
  /** How many writes are known to be done, as far as has been told. */
  readonly acknowledged: number;
  /** What it has printed, or run into, for a caller that waits in vain. */
  readonly report: string;
  /** Ends the writing; the session continues. */
  finish(): Promise<Written>;
}

/** What a writer has to say at the end. */
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

/** Milliseconds. Kazoo waits longer from one vain attempt to connect to the next. */
const PATIENCE_MS = 120_000;

/** Waits until every writer has gone on by some writes. */
export async function goesOn(writers: readonly Writer[]): Promise<void> {
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

/** Each write that was acknowledged is in the tree, once and as it was written, and the session of the writer lives. */
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

/** What is there already was created by an attempt whose answer was lost: no other client creates it. */
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

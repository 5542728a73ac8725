import {
  Budget,
  type CallOptions,
  type Client,
  joinPath,
  NoNodeError,
  type Watched,
  ZooKeeperError,
} from '@meerkat/client';
import { type Contending, contendersOf, type Line } from '../locks/line.ts';
import { waitFor } from '../locks/wait-for.ts';

/*
 * An observer watches the first znode of the line, and the line itself only while it is empty: it is woken once for each
 * leader, however many candidates there are.
 */

/** The first of a line now, and then each change. */
export async function* observeLeader<T>(
  client: Client,
  line: Line,
  signal: AbortSignal | undefined,
  convert: (first: Contending) => T,
): AsyncGenerator<T | null, void, undefined> {
  const about = { operation: 'Election.observe', path: line.path };
  const budget = new Budget({ signal }, client.surroundings, about);
  /** Token of the leader that was told last; null for nobody, undefined before the first. */
  let told: bigint | null | undefined;
  let pause: ((call: CallOptions) => Promise<void>) | null = null;
  while (signal?.aborted !== true) {
    try {
      // Here, where the end of the signal or of the client ends this and is no failure.
      await pause?.({ signal });
      pause = null;
      using seen = await look(client, line, budget);
      const { first } = seen;
      if (signal?.aborted) return;
      const token = first?.token ?? null;
      if (token !== told) {
        told = token;
        yield first === null ? null : convert(first);
      }
      await waitFor(client, seen.changed, { signal }, about);
    } catch (error) {
      if (signal?.aborted) return;
      if (!(error instanceof ZooKeeperError)) throw error;
      if (error.code === 'CLOSED' || error.code === 'AUTHFAILED') return;
      if (error.code === 'SESSIONLOST' || error.code === 'SESSIONEXPIRED') pause = (call) => client.whenConnected(call);
      else if (error.isRetryable) pause = () => budget.pause(PAUSE_MS);
      else throw error;
    }
  }
}

interface Seen extends Disposable {
  readonly first: Contending | null;
  /** Resolves when it may be somebody else. */
  readonly changed: Promise<unknown>;
}

function see(first: Contending | null, watched: Watched): Seen {
  return { first, changed: watched.changed, [Symbol.dispose]: () => watched[Symbol.dispose]() };
}

async function look(client: Client, line: Line, budget: Budget): Promise<Seen> {
  for (;;) {
    try {
      const [first] = contendersOf(line, (await client.children(line.path, budget.next())).children);
      if (first !== undefined) {
        const path = joinPath(line.path, first);
        const znode = await client.get(path, { ...budget.next(), watch: true });
        const { ephemeralOwner: sessionId, czxid: token, created: since } = znode.stat;
        return see({ path, data: znode.data, isFirst: true, sessionId, token, since }, znode);
      }
      const listed = await client.children(line.path, { ...budget.next(), watch: true });
      if (contendersOf(line, listed.children).length === 0) return see(null, listed);
      listed[Symbol.dispose]();
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
      // The leader is gone, or there is no line yet.
      if (error.path !== line.path) continue;
      const found = await client.exists(line.path, { ...budget.next(), watch: true });
      if (found.stat === null) return see(null, found);
      found[Symbol.dispose]();
    }
  }
}

const PAUSE_MS = 200;

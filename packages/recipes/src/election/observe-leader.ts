import { type CallOptions, type Client, joinPath, NoNodeError, retryClassOf, type Watched } from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { type Contending, contendersOf, type Line } from '../kernel/line.ts';

/*
 * An observer watches the first znode of the line, and the line itself only while it is empty: it is woken once per
 * leader, however many candidates there are.
 */

/** The first of a line, and then each change. */
export async function* observeLeader<T>(
  client: Client,
  line: Line,
  signal: AbortSignal | undefined,
  convert: (first: Contending) => T,
): AsyncGenerator<T | null, void, undefined> {
  const about = { operation: 'Election.observe', path: line.path };
  const attempt = new Attempt(client, { signal }, about, { awaitsQuorum: true });
  /** Token of the last reported leader; null for none, undefined before the first report. */
  let reported: bigint | null | undefined;
  try {
    for (;;) {
      using seen = await attempt.through((call) => look(client, line, call));
      const { first } = seen;
      if (signal?.aborted === true) return;
      const token = first?.token ?? null;
      if (token !== reported) {
        reported = token;
        yield first === null ? null : convert(first);
      }
      await attempt.any([seen.changed]);
    }
  } catch (error) {
    // Ended by the signal or the client.
    if (retryClassOf(error) !== 'over') throw error;
  }
}

interface Seen extends Disposable {
  readonly first: Contending | null;
  /** Resolves when the first of the line may have changed. */
  readonly changed: Promise<unknown>;
}

function see(first: Contending | null, watched: Watched): Seen {
  return { first, changed: watched.changed, [Symbol.dispose]: () => watched[Symbol.dispose]() };
}

async function look(client: Client, line: Line, call: CallOptions): Promise<Seen> {
  for (;;) {
    try {
      const [first] = contendersOf(line, (await client.children(line.path, call)).children);
      if (first !== undefined) {
        const path = joinPath(line.path, first);
        const znode = await client.get(path, { ...call, watch: true });
        const { ephemeralOwner: sessionId, czxid: token, created: since } = znode.stat;
        return see({ path, data: znode.data, isFirst: true, sessionId, token, since }, znode);
      }
      const listed = await client.children(line.path, { ...call, watch: true });
      if (contendersOf(line, listed.children).length === 0) return see(null, listed);
      listed[Symbol.dispose]();
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
      // The leader is gone, or the line does not exist yet.
      if (error.path !== line.path) continue;
      const found = await client.exists(line.path, { ...call, watch: true });
      if (found.stat === null) return see(null, found);
      found[Symbol.dispose]();
    }
  }
}

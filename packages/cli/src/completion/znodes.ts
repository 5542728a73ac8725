import { type CallOptions, type Client, joinPath } from '@meerkat/client';
import { parseLocation } from '../connection/location.ts';
import type { CommonWords } from '../run/common-words.ts';
import { type Io, PROCESS_IO } from '../run/io.ts';
import { openSession, wordsFor } from '../run/process-context.ts';
import type { Candidate } from './wanted.ts';

/** Limit for a completion: milliseconds, for the connection and for the answers. */
const WAIT_MS = 500;

/**
 * The znodes that the text is the beginning of; none when the service does not answer in time.
 *
 * @param words the connection options of the line
 * @param text `/a`, `prod:/a`, `zk://zk1:2181/a`
 */
export async function completeZnodes(
  words: CommonWords,
  text: string,
  io: Io = PROCESS_IO,
): Promise<readonly Candidate[]> {
  const { path, service } = parseLocation(text === '' ? '/' : text);
  if (!path.startsWith('/')) return [];
  const before = text.slice(0, text.length - path.length);
  const signal = AbortSignal.timeout(3 * WAIT_MS);
  const client = await openSession({ ...wordsFor(service, words), connectTimeout: `${WAIT_MS}ms` }, io, signal);
  try {
    const paths = await pathsFrom(client, path, { signal, timeoutMs: WAIT_MS });
    return paths.map((found) => ({ text: before + found, description: '' }));
  } finally {
    await client.close({ timeoutMs: WAIT_MS }).catch(() => {});
  }
}

/** Siblings that begin alike; the children of a znode whose path is complete and the only one. */
async function pathsFrom(client: Client, text: string, call: CallOptions): Promise<readonly string[]> {
  const end = text.lastIndexOf('/');
  const parent = end === 0 ? '/' : text.slice(0, end);
  const paths = (await childrenOf(client, parent, call)).filter((path) => path.startsWith(text));
  if (paths.length !== 1 || paths[0] !== text) return paths;
  return [text, ...(await childrenOf(client, text, call))];
}

async function childrenOf(client: Client, parent: string, call: CallOptions): Promise<readonly string[]> {
  const { children } = await client.children(parent, call);
  return children.toSorted().map((name) => joinPath(parent, name));
}

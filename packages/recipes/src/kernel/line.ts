import { type CallOptions, type Client, joinPath, NoNodeError, type Stat } from '@meerkat/client';
import { compareSequences, sequenceOf, withoutSequence } from './sequence.ts';
import type { SharedLockSettings } from './settings.ts';

/**
 * Contenders below one znode, in the order of their numbers.
 *
 *     /locks/orders                                                   path
 *       _c_5b2f…-lock-0000000007                                      first: the holder
 *       _c_0d1e…-lock-0000000008                                      waits for the one ahead
 *                ╰─┬─╯╰───┬────╯
 *               marker  number
 */
export interface Line extends SharedLockSettings {
  readonly path: string;
  /** The text between mark and number in the names of the znodes created here. */
  readonly marker: string;
  /** Markers of all contenders in the line; other znodes are ignored. */
  readonly markers: readonly string[];
  /** The mode of a missing parent. Default: that of the layout's library, container or persistent. */
  readonly parentMode?: 'persistent' | 'container' | undefined;
  /** Whether the parent may be recreated when its numbers run out (`overflow.ts`). Default: with Curator's layout. */
  readonly canMove?: boolean | undefined;
  /** What the first in the line does, for the error of a wait that timed out. Default: 'holds it'. */
  readonly firstDoes?: string | undefined;
  /**
   * The contender that the one at `index` waits for: a name, or null when it is its turn. Default: the one ahead.
   *
   * @param names all contenders, the oldest first
   */
  readonly blocker?: ((names: readonly string[], index: number) => string | null) | undefined;
}

/** A contender in a line. */
export interface Contending {
  readonly path: string;
  /** Its data. */
  readonly data: Uint8Array;
  /** Whether it holds what the others wait for. */
  readonly isFirst: boolean;
  readonly sessionId: bigint;
  /** Its fencing token as holder, now or later. */
  readonly token: bigint;
  /** When it entered the line, by the clock of the servers. */
  readonly since: Date;
}

/** The names of the contenders, the oldest first. */
export function contendersOf(line: Line, children: readonly string[]): string[] {
  const standing: { readonly name: string; readonly sequence: number }[] = [];
  for (const name of children) {
    const sequence = sequenceOf(name);
    if (sequence !== null && isMarked(line, withoutSequence(name))) standing.push({ name, sequence });
  }
  return standing.sort((a, b) => compareSequences(a.sequence, b.sequence)).map(({ name }) => name);
}

/** kazoo looks for its parent once and never recreates it. */
export function canMove(line: Line): boolean {
  return line.canMove ?? line.layout === 'curator';
}

export function blockerOf(line: Line, names: readonly string[], index: number): string | null {
  if (line.blocker !== undefined) return line.blocker(names, index);
  return names[index - 1] ?? null;
}

/** The contenders of a line, the oldest first, with their data. Contenders that leave meanwhile are omitted. */
export async function inspect(client: Client, line: Line, options: CallOptions = {}): Promise<readonly Contending[]> {
  let children: readonly string[];
  try {
    ({ children } = await client.children(line.path, { ...options, read: 'linearizable' }));
  } catch (error) {
    if (error instanceof NoNodeError) return [];
    throw error;
  }
  const names = contendersOf(line, children);
  const found = await Promise.all(names.map((name) => readContending(client, joinPath(line.path, name), options)));
  const present = names.filter((_, i) => found[i] !== null);
  return found
    .filter((znode) => znode !== null)
    .map(({ path, data, stat }, i) => ({
      path,
      data,
      isFirst: blockerOf(line, present, i) === null,
      sessionId: stat.ephemeralOwner,
      token: stat.czxid,
      since: stat.created,
    }));
}

async function readContending(
  client: Client,
  path: string,
  options: CallOptions,
): Promise<{ readonly path: string; readonly data: Uint8Array; readonly stat: Stat } | null> {
  try {
    const { data, stat } = await client.get(path, options);
    return { path, data, stat };
  } catch (error) {
    if (error instanceof NoNodeError) return null;
    throw error;
  }
}

function isMarked({ markers }: Line, beginning: string): boolean {
  return markers.some((marker) => beginning.endsWith(marker));
}

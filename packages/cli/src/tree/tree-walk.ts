import { type CallOptions, type Client, joinPath, NoAuthError, NoNodeError, type Stat } from '@meerkat/client';

/** A znode on the way through a tree. */
export interface Visited {
  readonly path: string;
  /** 0 for the znode where the walk begins. */
  readonly depth: number;
  readonly stat: Stat;
  /** Names, sorted. */
  readonly children: readonly string[];
  /** null unless asked for. */
  readonly data: Uint8Array | null;
}

export interface WalkOptions extends CallOptions {
  /** Reads the data as well. Default false. */
  readonly withData?: boolean;
  /** Goes no deeper than this. Default: to the leaves. */
  readonly depthMax?: number;
  /** Continues behind a znode that may not be read; called when its turn comes. Default: the walk throws the NoAuthError. */
  readonly onRefused?: (path: string, depth: number) => void;
  /** Continues behind a root that is not there. Default: the walk throws the NoNodeError. */
  readonly onMissing?: (error: NoNodeError) => void;
  /** Visits at most this many children of each znode, the first ones. Default: all. */
  readonly childrenMax?: number;
  /** Not asked for, and nothing below it. */
  readonly isLeftOut?: (path: string) => boolean;
}

/** Requests in flight at once. */
const IN_FLIGHT_MAX = 64;

/**
 * Visits znodes and everything below them: parents before their children, children in the order of their names, with
 * many requests in flight. It is not a snapshot: concurrent changes may be seen or not, and deleted znodes are skipped.
 *
 * @param roots are walked one after the other; none should lie below another
 * @throws NoNodeError when a root does not exist; the errors of the reads
 */
export async function* walkTree(
  client: Client,
  roots: string | readonly string[],
  options: WalkOptions = {},
): AsyncGenerator<Visited, void> {
  const { depthMax = Number.POSITIVE_INFINITY, childrenMax = Number.POSITIVE_INFINITY, isLeftOut } = options;
  /** What is still to be visited, the next one last. Those near the end have been asked for. */
  const stack: Pending[] = [roots]
    .flat()
    .toReversed()
    .map((path) => ({ path, depth: 0, visit: null }));
  while (stack.length > 0) {
    for (let i = Math.max(0, stack.length - IN_FLIGHT_MAX); i < stack.length; i++) {
      const pending = stack[i];
      if (pending !== undefined && pending.visit === null) pending.visit = begin(client, pending, options);
    }
    const next = stack.pop();
    if (next?.visit == null) return;
    const visited = await next.visit;
    if (visited === 'refused') {
      options.onRefused?.(next.path, next.depth);
      continue;
    }
    if (visited === 'missing') {
      if (next.depth > 0) continue;
      const error = new NoNodeError({ operation: 'children', path: next.path });
      if (options.onMissing === undefined) throw error;
      options.onMissing(error);
      continue;
    }
    yield visited;
    if (next.depth >= depthMax) continue;
    for (let i = Math.min(visited.children.length, childrenMax) - 1; i >= 0; i--) {
      const path = joinPath(next.path, visited.children[i] ?? '');
      if (isLeftOut?.(path) !== true) stack.push({ path, depth: next.depth + 1, visit: null });
    }
  }
}

interface Pending {
  readonly path: string;
  readonly depth: number;
  visit: Promise<Visit> | null;
}

type Visit = Visited | 'missing' | 'refused';

/** An abandoned promise of a visit, after the walk was left, must not end the process. */
function begin(client: Client, { path, depth }: Pending, options: WalkOptions): Promise<Visit> {
  const visit = visitOne(client, path, depth, options);
  visit.catch(() => {});
  return visit;
}

async function visitOne(client: Client, path: string, depth: number, options: WalkOptions): Promise<Visit> {
  const { withData = false, onRefused, signal, timeoutMs } = options;
  const call: CallOptions = { signal, timeoutMs };
  try {
    const listing = client.children(path, call);
    const [{ children, stat }, znode] = await Promise.all([listing, withData ? client.get(path, call) : null]);
    return { path, depth, stat: znode?.stat ?? stat, children: children.toSorted(), data: znode?.data ?? null };
  } catch (error) {
    if (error instanceof NoNodeError) return 'missing';
    if (onRefused !== undefined && error instanceof NoAuthError) return 'refused';
    throw error;
  }
}

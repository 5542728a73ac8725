import { OpCode, type SetWatchesRequest } from '@meerkat/protocol';
import type { WatchedPath } from './watched-path.ts';

/** The requests that arm all watches of these paths, each far shorter than the limit of servers. */
export function setWatchesOf(
  entries: Iterable<readonly [string, WatchedPath]>,
  relativeZxid: number,
): SetWatchesRequest[] {
  const requests: SetWatchesRequest[] = [];
  let batch = new Batch();
  for (const [path, entry] of entries) {
    if (entry.data.size > 0) batch.add('dataWatches', path);
    if (entry.exist.size > 0) batch.add('existWatches', path);
    if (entry.child.size > 0) batch.add('childWatches', path);
    if (entry.persistent.size + entry.persistentAsked > 0) batch.add('persistentWatches', path);
    if (entry.recursive.size + entry.recursiveAsked > 0) batch.add('persistentRecursiveWatches', path);
    if (batch.length < BATCH_LENGTH) continue;
    requests.push(batch.toRequest(relativeZxid));
    batch = new Batch();
  }
  if (batch.length > 0) requests.push(batch.toRequest(relativeZxid));
  return requests;
}

type ListName = 'dataWatches' | 'existWatches' | 'childWatches' | 'persistentWatches' | 'persistentRecursiveWatches';

/** The paths of one setWatches. */
class Batch {
  /** Total characters of the paths. */
  length = 0;
  readonly #lists: Record<ListName, string[]> = {
    dataWatches: [],
    existWatches: [],
    childWatches: [],
    persistentWatches: [],
    persistentRecursiveWatches: [],
  };

  add(list: ListName, path: string): void {
    this.#lists[list].push(path);
    this.length += path.length + 1;
  }

  /** Without persistent watches, the older operation is used, which servers before 3.6 support. */
  toRequest(relativeZxid: number): SetWatchesRequest {
    const { persistentWatches, persistentRecursiveWatches } = this.#lists;
    const isPlain = persistentWatches.length + persistentRecursiveWatches.length === 0;
    return { op: isPlain ? OpCode.setWatches : OpCode.setWatches2, relativeZxid, ...this.#lists };
  }
}

/** Characters of paths in one setWatches, as other clients batch them; far below jute.maxbuffer. */
const BATCH_LENGTH = 128 * 1024;

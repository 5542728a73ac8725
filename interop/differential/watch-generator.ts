import { Op } from '../harness/raw-client.ts';
import { record } from '../harness/record-builder.ts';
import type { Guard } from './guard.ts';
import type { Random } from './random.ts';
import type { Request } from './requests.ts';
import * as requests from './requests.ts';
import { GUARDED_PATHS, OPEN_PATHS } from './vocabulary.ts';

/** The kind of watch that a slot may have on a path. */
type WatchClass = 'standard' | 'persistent' | 'recursive';

const STANDARD_TYPES: readonly number[] = [1, 2, 3];
const ANY_TYPE = 3;
const UNWATCHED_PATHS: readonly (string | null)[] = [
  ...['/never/watched', '/never/watched/', '//', '', 'never', 'never/watched', '\u0000', null],
];
const WATCHED_PATHS = [...OPEN_PATHS, ...GUARDED_PATHS];

export interface WatchRequest {
  readonly request: Request;
  readonly relativeZxid: bigint | null;
}

/**
 * Watches of all kinds. A slot has only one kind of watch on a path, because releases up to 3.8 keep one mode per
 * connection and path, and 3.9 a set of modes (docs/protocol/client.md, "Watches"): with mixed modes the two servers
 * would diverge permanently. Sets of modes are covered by the unit tests of watches.
 */
export class WatchGenerator {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** A read with a watch, if the slot's class for the path allows it. */
  read(slot: number, type: number, path: string | null): Request {
    return requests.watchedRead(type, path, watchClass(slot, path) === 'standard');
  }

  next(slot: number, path: string, zxid: bigint, guard: Guard): WatchRequest {
    const random = this.#random;
    const kind = random.weighted({ add: 14, remove: 8, check: 8, set: 10, odd: 2 });
    switch (kind) {
      case 'add':
        return plain(this.#add(slot, path));
      case 'remove':
        return this.#query(Op.removeWatches, slot, path);
      case 'check':
        return this.#query(Op.checkWatches, slot, path);
      case 'set':
        return this.#set(slot, zxid, guard);
      case 'odd':
        return this.#odd();
    }
  }

  #add(slot: number, path: string): Request {
    const kind = watchClass(slot, path);
    if (kind === 'standard') return requests.watchedRead(Op.getData, path, true);
    return requests.pathAndNumber(Op.addWatch, path, kind === 'persistent' ? 0 : 1);
  }

  #query(type: number, slot: number, path: string): WatchRequest {
    const isStandard = watchClass(slot, path) === 'standard';
    const watcherType = isStandard ? this.#random.pick(STANDARD_TYPES) : ANY_TYPE;
    return plain(requests.pathAndNumber(type, path, watcherType));
  }

  /** The setWatches of a reconnecting client that may still read its watched znodes, from a recent zxid. */
  #set(slot: number, zxid: bigint, guard: Guard): WatchRequest {
    const random = this.#random;
    const pathsOf = (kind: WatchClass): string[] =>
      WATCHED_PATHS.filter((path) => watchClass(slot, path) === kind && random.oneIn(4) && guard.canRead(slot, path));
    const isExtended = random.oneIn(2);
    const lists: (string[] | null)[] = [pathsOf('standard'), pathsOf('standard'), pathsOf('standard')];
    if (isExtended) lists.push(pathsOf('persistent'), pathsOf('recursive'));
    // Without its other lists, because the request may fail halfway.
    if (random.oneIn(30)) lists.fill([]).splice(0, 1, null);
    const body = record();
    for (const list of lists) body.strings(list);
    const back = BigInt(random.pick([0, 0, 1, 2, 5, 20, 100]));
    const relativeZxid = random.oneIn(20) ? zxid + 50n : zxid > back ? zxid - back : 0n;
    const type = isExtended ? Op.setWatches2 : Op.setWatches;
    const text = `${requests.name(type)} since ${relativeZxid} ${JSON.stringify(lists)}`;
    return { request: { type, body: body.build(), text }, relativeZxid };
  }

  /** Unknown modes and types, the types of 3.9, and invalid paths, which cannot be watched. */
  #odd(): WatchRequest {
    const random = this.#random;
    const path = random.pick(UNWATCHED_PATHS);
    if (random.oneIn(3)) return plain(requests.pathAndNumber(Op.addWatch, path, random.pick([-1, 2, 3, 100])));
    const watcherType = random.pick([0, -1, 1, 2, 3, 4, 5, 6, 7, 100]);
    const type = random.pick([Op.removeWatches, Op.checkWatches]);
    return plain(requests.pathAndNumber(type, path, watcherType));
  }
}

function plain(request: Request): WatchRequest {
  return { request, relativeZxid: null };
}

function watchClass(slot: number, path: string | null): WatchClass {
  let hash = slot * 7;
  for (const char of path ?? '') hash = (hash * 31 + (char.codePointAt(0) ?? 0)) >>> 0;
  const kinds: readonly WatchClass[] = ['standard', 'standard', 'persistent', 'recursive'];
  return kinds[(hash >>> 3) % kinds.length] ?? 'standard';
}

import type { CommittedTree } from '@meerkat/simulator';

/** The first of a line from a zxid on. */
export interface First {
  readonly fromZxid: number;
  /** null: none. */
  readonly path: string | null;
  /** Its czxid as reported to clients; null for none. */
  readonly token: bigint | null;
}

/**
 * Which znode was first in a line at which time, from the committed history rather than from what clients report:
 * always the oldest one in the line.
 */
export class LineHistory {
  readonly firsts: readonly First[];

  constructor(tree: CommittedTree, line: string, stands: (path: string) => boolean = () => true) {
    const changes = [...tree.paths()]
      .filter((path) => path.startsWith(`${line}/`) && stands(path))
      .flatMap((path) => tree.changesOf(path))
      .filter(({ type }) => type === 'created' || type === 'deleted')
      .sort((a, b) => a.position - b.position);
    // A map keeps insertion order.
    const standing = new Map<string, bigint>();
    const firsts: First[] = [{ fromZxid: 0, path: null, token: null }];
    for (const { type, path, zxid } of changes) {
      if (type === 'created') standing.set(path, BigInt(zxid));
      else standing.delete(path);
      const [first] = standing;
      const [now, token] = first ?? [null, null];
      if (token !== firsts.at(-1)!.token) firsts.push({ fromZxid: zxid, path: now, token });
    }
    this.firsts = firsts;
  }

  /** Right after that zxid. */
  at(zxid: number): First {
    return this.firsts.findLast(({ fromZxid }) => fromZxid <= zxid)!;
  }

  /** All that were first at some time from right after one zxid to right after another. */
  between(sinceZxid: number, untilZxid: number): readonly First[] {
    const from = this.firsts.indexOf(this.at(sinceZxid));
    return this.firsts.slice(from, this.firsts.indexOf(this.at(untilZxid)) + 1);
  }
}

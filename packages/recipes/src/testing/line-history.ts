import type { CommittedTree } from '@meerkat/simulator';

/** Who stood first in a line from a zxid on. */
export interface First {
  readonly fromZxid: number;
  /** null: none. */
  readonly path: string | null;
  /** As the zxid of its creation is told to clients; null for none. */
  readonly token: bigint | null;
}

/**
 * Who stood first in a line at what time, by what the servers have committed and not by what clients say: the oldest always does, of
 * those znodes that stand in it.
 */
export class LineHistory {
  readonly firsts: readonly First[];

  constructor(tree: CommittedTree, line: string, stands: (path: string) => boolean = () => true) {
    const changes = [...tree.paths()]
      .filter((path) => path.startsWith(`${line}/`) && stands(path))
      .flatMap((path) => tree.changesOf(path))
      .filter(({ type }) => type === 'created' || type === 'deleted')
      .sort((a, b) => a.position - b.position);
    // A map keeps the order in which its entries came.
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

  /** Those who stood first at some time from right after one zxid to right after another. */
  between(sinceZxid: number, untilZxid: number): readonly First[] {
    const from = this.firsts.indexOf(this.at(sinceZxid));
    return this.firsts.slice(from, this.firsts.indexOf(this.at(untilZxid)) + 1);
  }
}

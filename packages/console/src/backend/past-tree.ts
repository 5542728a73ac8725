import { type Client, joinPath, NoNodeError, nullableBytes, type Stat } from '@meerkat/client';
import type { PastChange, PastDifference, PastMoment, PastZnode } from '../api/past-messages.ts';
import type { ClusterSession } from './cluster-session.ts';
import type { PastTree } from './options.ts';
import { mayKnow, readAccess } from './past.ts';
import type { PastShelf } from './past-shelf.ts';
import { statInfo } from './znode-reader.ts';

/**
 * A past znode, and the names of its children, as far as this session may see them: same rule as for its history, see
 * `past.ts`.
 */
export function readPastZnode(session: ClusterSession, shelf: PastShelf, at: string, path: string): Promise<PastZnode> {
  return shelf.use(at, async (tree) => {
    const nothing = { moment: momentOf(tree), path, stat: null, data: null, isWithheld: false, children: [], total: 0 };
    try {
      if (!(await mayRead(session, tree.client, path))) return { ...nothing, isWithheld: true };
      const { data, stat } = await tree.client.get(path, { codec: nullableBytes });
      const names = (await tree.client.children(path)).children.toSorted();
      return {
        ...nothing,
        stat: statInfo(stat),
        data: data === null ? null : Buffer.from(data).toString('base64'),
        children: names.slice(0, CHILDREN_MAX),
        total: names.length,
      };
    } catch (error) {
      if (error instanceof NoNodeError) return nothing;
      throw error;
    }
  });
}

/**
 * The changes of a subtree. Both trees are of one log, so a znode is unchanged when its czxid, its mzxid and the
 * version of its ACL are the same.
 */
export function readDifference(
  session: ClusterSession,
  shelf: PastShelf,
  { from, to }: { readonly from: string; readonly to: string },
  path: string,
): Promise<PastDifference> {
  return shelf.use(from, (one) =>
    shelf.use(to, async (other) => {
      const [before, after] = BigInt(one.zxid) <= BigInt(other.zxid) ? [one, other] : [other, one];
      const walk = new DifferenceWalk(session, before.client, after.client);
      await walk.run(path);
      const { changes, compared, isCut, withheld } = walk;
      return { from: momentOf(before), to: momentOf(after), changes, compared, isCut, withheld };
    }),
  );
}

class DifferenceWalk {
  readonly changes: PastChange[] = [];
  compared = 0;
  withheld = 0;
  isCut = false;
  readonly #session: ClusterSession;
  readonly #before: Client;
  readonly #after: Client;

  constructor(session: ClusterSession, before: Client, after: Client) {
    this.#session = session;
    this.#before = before;
    this.#after = after;
  }

  async run(root: string): Promise<void> {
    const paths = [root];
    // On the stack, children come after their parent, in order.
    for (let path = paths.pop(); path !== undefined; path = paths.pop()) {
      if (this.compared >= COMPARED_MAX || this.changes.length >= CHANGES_MAX) {
        this.isCut = true;
        return;
      }
      const names = await this.#compare(path);
      for (const name of names.toSorted().toReversed()) paths.push(joinPath(path, name));
    }
  }

  /** @returns the children at both moments */
  async #compare(path: string): Promise<readonly string[]> {
    const [before, after] = await Promise.all([this.#look(this.#before, path), this.#look(this.#after, path)]);
    this.compared++;
    const change = changeOf(before?.stat ?? null, after?.stat ?? null);
    if (change !== null) this.changes.push({ path, change });
    const seen = [before, after].filter((side) => side !== null);
    // The names of children are shown only to sessions that may read.
    const open = seen.filter(({ mayRead }) => mayRead);
    if (open.length < seen.length) this.withheld++;
    return [...new Set(open.flatMap(({ children }) => children))];
  }

  async #look(
    client: Client,
    path: string,
  ): Promise<{ readonly stat: Stat; readonly children: readonly string[]; readonly mayRead: boolean } | null> {
    try {
      const [{ children, stat }, may] = await Promise.all([
        client.children(path),
        mayRead(this.#session, client, path),
      ]);
      return { stat, children, mayRead: may };
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      throw error;
    }
  }
}

function changeOf(before: Stat | null, after: Stat | null): PastChange['change'] | null {
  if (before === null) return after === null ? null : 'created';
  if (after === null) return 'deleted';
  if (before.czxid !== after.czxid) return 'recreated';
  if (before.mzxid !== after.mzxid) return 'changed';
  return before.aversion === after.aversion ? null : 'acl';
}

async function mayRead(session: ClusterSession, past: Client, path: string): Promise<boolean> {
  const { acl } = await past.getAcl(path);
  return mayKnow(await readAccess(session.client, path, session.call), acl);
}

function momentOf({ zxid, atMs }: PastTree): PastMoment {
  return { zxid, atMs };
}

const CHILDREN_MAX = 1000;
const COMPARED_MAX = 50_000;
const CHANGES_MAX = 2000;

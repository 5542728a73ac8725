import type { CommittedTree } from '@meerkat/simulator';
import type { Job } from './queue-job.ts';

/** A client had an item, whether it learned that or not. */
export interface Lease {
  readonly fromZxid: number;
  /** Infinite while it exists. */
  readonly toZxid: number;
  readonly sessionId: bigint;
  /** The session that ended it; null while it exists. */
  readonly enderId: bigint | null;
  /** When it was created, by the clock of the leader. */
  readonly fromMs: number;
}

/** The history of an item. */
export interface ItemHistory {
  readonly name: string;
  readonly job: Job;
  readonly fromZxid: number;
  readonly fromMs: number;
  /** Infinite while it exists. */
  readonly toZxid: number;
  /** The session that deleted it; null while it exists. */
  readonly enderId: bigint | null;
  readonly leases: readonly Lease[];
}

/** The history of a queue's items, from the committed history rather than from what clients report. */
export class QueueHistory {
  readonly items: readonly ItemHistory[];
  readonly #byName: ReadonlyMap<string, ItemHistory>;

  constructor(tree: CommittedTree, itemsPath: string, leasesPath: string) {
    const names = [...tree.paths()].filter((path) => path.startsWith(`${itemsPath}/`));
    this.items = names.flatMap((path) => readItem(tree, path, `${leasesPath}/${path.slice(itemsPath.length + 1)}`));
    this.#byName = new Map(this.items.map((item) => [item.name, item]));
  }

  item(name: string): ItemHistory {
    const item = this.#byName.get(name);
    if (item === undefined) throw new Error(`no client has put ${name}`);
    return item;
  }

  /** Items that were in the queue, and not held, at every moment from after one zxid to right after another. */
  free(sinceZxid: number, untilZxid: number): ItemHistory[] {
    return this.items.filter(
      ({ fromZxid, toZxid, leases }) =>
        fromZxid <= sinceZxid &&
        toZxid > untilZxid &&
        leases.every((lease) => lease.toZxid <= sinceZxid || lease.fromZxid > untilZxid),
    );
  }
}

/** Empty for a znode that is no item, such as the containers of kazoo's items. */
function readItem(tree: CommittedTree, path: string, leasePath: string): ItemHistory[] {
  const [life, ...others] = livesOf(tree, path);
  if (life === undefined) return [];
  if (others.length > 0) throw new Error(`${path} was there twice`);
  const job = readJob(tree.stateAt(path, life.fromZxid)?.data ?? null);
  if (job === null) return [];
  const leases = livesOf(tree, leasePath).map(({ fromZxid, toZxid }) => {
    const { owner, ctime } = tree.stateAt(leasePath, fromZxid)!;
    return { fromZxid, toZxid, sessionId: owner, enderId: enderOf(tree, toZxid), fromMs: ctime };
  });
  const enderId = enderOf(tree, life.toZxid);
  const fromMs = tree.stateAt(path, life.fromZxid)!.ctime;
  return [{ name: path.slice(path.lastIndexOf('/') + 1), job, ...life, fromMs, enderId, leases }];
}

/** The session that requested a txn, or whose end it is. */
function enderOf(tree: CommittedTree, zxid: number): bigint | null {
  return tree.entryAt(zxid)?.header.sessionId ?? null;
}

/** The lifetimes of the znodes at a path. */
function livesOf(tree: CommittedTree, path: string): { readonly fromZxid: number; readonly toZxid: number }[] {
  const lives: { fromZxid: number; toZxid: number }[] = [];
  for (const { type, zxid } of tree.changesOf(path)) {
    if (type === 'created') lives.push({ fromZxid: zxid, toZxid: Number.POSITIVE_INFINITY });
    else if (type === 'deleted') lives.at(-1)!.toZxid = zxid;
  }
  return lives;
}

/** Independent of the layout's envelope. */
function readJob(data: Uint8Array | null): Job | null {
  const text = /\{.*\}/.exec(new TextDecoder().decode(data ?? new Uint8Array()));
  return text === null ? null : JSON.parse(text[0]);
}

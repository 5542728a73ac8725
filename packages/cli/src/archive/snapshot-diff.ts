import { type Acl, openFile, type SnapshotZnode, scanSnapshot } from '@meerkat/server/archive';
import type { Column } from '../output/column.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { withArchive } from './archive-failure.ts';
import { Fingerprints } from './fingerprints.ts';
import { isBelow, oneSnapshot } from './one-file.ts';
import { describeAcl, describeData } from './txn-text.ts';
import type { SnapshotOptions } from './words.ts';

interface Difference {
  readonly path: string;
  readonly change: 'created' | 'deleted' | 'recreated' | 'changed';
  /** Which parts: data, acl, owner. */
  readonly what: readonly string[];
  readonly old: string | null;
  readonly new: string | null;
}

const COLUMNS: readonly Column<Difference>[] = [
  { name: 'change', value: ({ change }) => change },
  { name: 'path', value: ({ path }) => path },
  { name: 'what', value: ({ what }) => what, text: ({ what }) => what.join(' ') },
  { name: 'old', value: ({ old }) => old, text: ({ old }) => old ?? '' },
  { name: 'new', value: ({ new: now }) => now, text: ({ new: now }) => now ?? '' },
];

/** Changed znodes whose old side is kept at a time; for more of them the old snapshot is read again. */
const CHANGES_AT_ONCE = 20_000;

/**
 * `snapshot diff`: the znodes created, changed and deleted between two snapshots. It keeps 16 bytes per znode:
 *
 *     1. read the old snapshot: a fingerprint of each znode
 *     2. read the new one: a znode without an equal was created or changed; those left over were deleted
 *     3. read the old one again for the data of those
 */
export function diffSnapshots(
  context: Context,
  names: readonly string[],
  { path: top }: SnapshotOptions,
): Promise<CommandExit> {
  const { report, signal } = context;
  return withArchive(async () => {
    if (names.length !== 2) throw new InvocationFailure('snapshot diff: name two files, the older one first');
    const [oldPath, newPath] = await Promise.all(names.map((name) => oneSnapshot([name], 'diff')));
    const table = new Fingerprints();
    await scan(oldPath!, signal, (znode) => {
      if (isBelow(znode.path, top)) table.add(znode.path, contentsOf(znode));
    });
    table.sort();
    const list = await report.list(COLUMNS);
    let differences = 0;
    const emit = async (difference: Difference): Promise<void> => {
      differences++;
      await list.add(difference);
    };
    let changed: Side[] = [];
    const emitChanged = async (): Promise<void> => {
      if (changed.length === 0) return;
      const news = new Map(changed.map((side) => [side.path, side]));
      changed = [];
      const olds = new Map<string, Side>();
      await scan(oldPath!, signal, (znode) => {
        if (news.has(znode.path)) olds.set(znode.path, sideOf(znode));
      });
      for (const [path, side] of news) {
        const old = olds.get(path);
        // Two paths with one fingerprint: it is new.
        if (old === undefined) await emit({ path, change: 'created', what: [], old: null, new: shown(side) });
        else await emit(compare(old, side));
      }
    };
    let created: Side[] = [];
    await scan(
      newPath!,
      signal,
      (znode) => {
        if (!isBelow(znode.path, top)) return;
        const found = table.take(znode.path, contentsOf(znode));
        if (found === 'missing') created.push(sideOf(znode));
        else if (found === 'different') changed.push(sideOf(znode));
      },
      async () => {
        for (const side of created)
          await emit({ path: side.path, change: 'created', what: [], old: null, new: shown(side) });
        created = [];
        if (changed.length >= CHANGES_AT_ONCE) await emitChanged();
      },
    );
    await emitChanged();
    let deleted: Side[] = [];
    const takeDeleted = (znode: SnapshotZnode): void => {
      if (isBelow(znode.path, top) && table.isLeft(znode.path)) deleted.push(sideOf(znode));
    };
    const emitDeleted = async (): Promise<void> => {
      for (const side of deleted)
        await emit({ path: side.path, change: 'deleted', what: [], old: shown(side), new: null });
      deleted = [];
    };
    if (table.left > 0) await scan(oldPath!, signal, takeDeleted, emitDeleted);
    await list.end();
    if (differences === 0) context.note('the same znodes with the same data, ACLs and owners');
    return differences === 0 ? CommandExit.ok : CommandExit.no;
  });
}

async function scan(
  path: string,
  signal: AbortSignal,
  onZnode: (znode: SnapshotZnode) => void,
  onSlice?: () => Promise<void>,
): Promise<void> {
  await using file = await openFile(path);
  await scanSnapshot(file, { onZnode, ...(onSlice === undefined ? {} : { onSlice }) }, signal);
}

/** What makes two znodes of one path the same. */
function contentsOf({ data, acl, ephemeralOwner, czxid }: SnapshotZnode): readonly (Uint8Array | string)[] {
  return [data === null ? '-' : '+', data ?? '', aclText(acl), `${ephemeralOwner} ${czxid}`];
}

interface Side {
  readonly path: string;
  readonly czxid: number;
  readonly data: Uint8Array | null;
  readonly acl: string;
  readonly owner: bigint;
}

function sideOf({ path, czxid, data, acl, ephemeralOwner }: SnapshotZnode): Side {
  return { path, czxid, data: data === null ? null : Uint8Array.from(data), acl: aclText(acl), owner: ephemeralOwner };
}

function aclText(acl: readonly Acl[] | null): string {
  return acl === null ? 'unknown' : describeAcl(acl);
}

function shown({ data }: Side): string {
  return describeData(data);
}

function compare(old: Side, now: Side): Difference {
  const what: string[] = [];
  const isSameData =
    Buffer.compare(old.data ?? EMPTY, now.data ?? EMPTY) === 0 && (old.data === null) === (now.data === null);
  if (!isSameData) what.push('data');
  if (old.acl !== now.acl) what.push('acl');
  if (old.owner !== now.owner) what.push('owner');
  const describe = (side: Side): string => {
    return [...(isSameData ? [] : [shown(side)]), ...(old.acl === now.acl ? [] : [side.acl])].join(' ');
  };
  const change = old.czxid === now.czxid ? 'changed' : 'recreated';
  return { path: now.path, change, what, old: describe(old), new: describe(now) };
}

const EMPTY = new Uint8Array(0);

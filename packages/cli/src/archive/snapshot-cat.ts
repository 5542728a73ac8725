import { type OpenFile, openFile, type SnapshotZnode, scanSnapshot, showZxid } from '@meerkat/server/archive';
import type { Cell, Column } from '../output/column.ts';
import { hex, isoTime } from '../output/stat-columns.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { valueRecord } from '../value/value-record.ts';
import { withArchive } from './archive-failure.ts';
import { isBelow, oneSnapshot } from './one-file.ts';
import { describeAcl, describeData } from './txn-text.ts';
import type { SnapshotOptions } from './words.ts';

interface Session {
  readonly id: bigint;
  readonly timeoutMs: number;
}

const SESSION_COLUMNS: readonly Column<Session>[] = [
  { name: 'session', value: ({ id }) => hex(id) },
  { name: 'timeoutMs', value: ({ timeoutMs }) => timeoutMs, align: 'right' },
];

/** With its fields as cells, since the data are a view of memory that is used again. */
type Znode = Readonly<Record<string, Cell>>;

const NAMES = [
  ...['path', 'data', 'encoding', 'acl', 'czxid', 'ctime', 'mzxid', 'mtime', 'pzxid'],
  ...['version', 'cversion', 'aversion', 'ephemeralOwner', 'dataLength'],
];
const COLUMNS: readonly Column<Znode>[] = NAMES.map((name) => ({ name, value: (znode) => znode[name] ?? null }));

/** `snapshot cat`: every znode as the file has it, with memory for a slice of it. */
export function catSnapshot(
  context: Context,
  names: readonly string[],
  { path: top, stat, sessions }: SnapshotOptions,
): Promise<CommandExit> {
  const { report, signal } = context;
  return withArchive(async () => {
    await using file = await openFile(await oneSnapshot(names, 'cat'));
    if (sessions === true) return listSessions(context, file);
    const list = report.isForPeople ? null : await report.list(COLUMNS);
    let text = '';
    let cells: Znode[] = [];
    const onZnode = (znode: SnapshotZnode): void => {
      if (!isBelow(znode.path, top)) return;
      if (list === null) text += linesOf(znode, stat === true);
      else cells.push(cellsOf(znode));
    };
    const onSlice = async (): Promise<void> => {
      if (list === null) await report.write(text);
      else for (const znode of cells) await list.add(znode);
      text = '';
      cells = [];
    };
    await scanSnapshot(file, { onZnode, onSlice }, signal);
    await list?.end();
    return CommandExit.ok;
  });
}

async function listSessions({ report, signal }: Context, file: OpenFile): Promise<CommandExit> {
  const list = await report.list(SESSION_COLUMNS);
  let found: Session[] = [];
  const onSession = (id: bigint, timeoutMs: number): void => void found.push({ id, timeoutMs });
  const onSlice = async (): Promise<void> => {
    for (const session of found) await list.add(session);
    found = [];
  };
  await scanSnapshot(file, { onSession, onSlice }, signal);
  await list.end();
  return CommandExit.ok;
}

function linesOf(znode: SnapshotZnode, hasStat: boolean): string {
  const { path, data, acl } = znode;
  if (!hasStat) return `${path} ${describeData(data)}\n`;
  const { czxid, mzxid, pzxid, version, cversion, aversion, ephemeralOwner, mtime } = znode;
  const zxids = `czxid ${showZxid(czxid)} mzxid ${showZxid(mzxid)} pzxid ${showZxid(pzxid)}`;
  const versions = `version ${version} cversion ${cversion} aversion ${aversion}`;
  const owner = ephemeralOwner === 0n ? '' : ` owner ${hex(ephemeralOwner)}`;
  const list = acl === null ? 'unknown' : describeAcl(acl);
  return `${path} ${describeData(data)}\n  ${zxids} ${versions} modified ${isoTime(mtime)} acl ${list}${owner}\n`;
}

export function cellsOf(znode: SnapshotZnode): Znode {
  const { path, data, acl, czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner } = znode;
  return {
    path,
    ...(data === null ? { data: null, encoding: null } : valueRecord(data)),
    acl: acl === null ? null : describeAcl(acl),
    czxid: showZxid(czxid),
    ctime: isoTime(ctime),
    mzxid: showZxid(mzxid),
    mtime: isoTime(mtime),
    pzxid: showZxid(pzxid),
    version,
    cversion,
    aversion,
    ephemeralOwner: hex(ephemeralOwner),
    dataLength: data?.length ?? 0,
  };
}

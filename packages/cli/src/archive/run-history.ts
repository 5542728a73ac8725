import { readZnodeHistory, showZxid, type ZnodeChange, type ZnodeState, zxidAt } from '@meerkat/server/archive';
import type { Cell, Column } from '../output/column.ts';
import { hex, isoTime, localTime } from '../output/stat-columns.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { valueRecord } from '../value/value-record.ts';
import { auditedAddresses, connectedAddresses } from './addresses.ts';
import { withArchive } from './archive-failure.ts';
import { momentOf } from './moment-words.ts';
import { openSource } from './source.ts';
import { describeAcl, describeData } from './txn-text.ts';
import type { HistoryWords } from './words.ts';

interface Row extends ZnodeChange {
  readonly address: string | null;
}

const COLUMNS: readonly Column<Row>[] = [
  { name: 'zxid', value: ({ zxid }) => showZxid(zxid) },
  { name: 'time', value: ({ timeMs }) => isoTime(timeMs), text: ({ timeMs }) => localTime(timeMs) },
  {
    name: 'session',
    value: ({ session }) => hex(session),
    text: ({ session }) => (session === 0n ? 'server' : hex(session)),
  },
  { name: 'address', value: ({ address }) => address, text: ({ address }) => address ?? '' },
  { name: 'path', value: ({ path }) => path },
  { name: 'change', value: ({ change }) => change },
  { name: 'version', value: ({ version }) => version },
  { name: 'old', value: ({ old }) => (old === undefined ? null : stateCell(old)), only: 'data' },
  { name: 'new', value: ({ now }) => stateCell(now), only: 'data' },
];

function stateCell(state: ZnodeState | null): Cell {
  if (state === null) return null;
  const { data, acl, owner } = state;
  const value = data === null ? { data: null, encoding: null } : valueRecord(data);
  return {
    ...value,
    acl: acl === null ? null : describeAcl(acl),
    ephemeralOwner: owner === null ? null : hex(owner),
  };
}

export function runHistory(context: Context, path: string, words: HistoryWords): Promise<CommandExit> {
  const { report, signal } = context;
  const top = context.resolve(path);
  const from = momentOf(words.from, '--from');
  const to = momentOf(words.to, '--to');
  return withArchive(async () => {
    const files = await openSource(context, words);
    const onWarning = (text: string): void => context.note(text);
    const addresses = await connectedAddresses(files, signal);
    if (words.audit !== undefined) await auditedAddresses(words.audit, addresses);
    const upTo = to === null ? null : to.kind === 'zxid' ? to.zxid : await zxidAt(files, to.ms, onWarning, signal);
    const list = report.isForPeople ? null : await report.list(COLUMNS);
    let changes: Row[] = [];
    let count = 0;
    await readZnodeHistory(files, {
      path: top,
      isRecursive: words.recursive === true,
      upTo,
      onChange: (change) => {
        if (from !== null && (from.kind === 'zxid' ? change.zxid < from.zxid : change.timeMs < from.ms)) return;
        count++;
        changes.push({ ...change, address: addresses.get(BigInt.asUintN(64, change.session)) ?? null });
      },
      onSlice: async () => {
        for (const change of changes) {
          if (list === null) await report.write(await linesOf(context, change, words.diff === true));
          else await list.add(change);
        }
        changes = [];
      },
      onWarning,
      signal,
    });
    await list?.end();
    await files.close();
    if (count > 0) return CommandExit.ok;
    context.note(`nothing of ${top} was written in what ${files.place} has of the log`);
    return CommandExit.no;
  });
}

async function linesOf({ report }: Context, row: Row, hasDiff: boolean): Promise<string> {
  const { zxid, timeMs, session, address, path, change, version, old, now } = row;
  const who = session === 0n ? 'the server' : `session ${hex(session)}${address === null ? '' : ` of ${address}`}`;
  const what = [
    change === 'acl' ? 'acl of' : change,
    path,
    ...(version === null || version === 0 ? [] : [`version ${version}`]),
  ];
  const head = `${localTime(timeMs)} ${showZxid(zxid)} ${report.paint.bold(what.join(' '))} by ${who}\n`;
  if (hasDiff && change === 'changed' && old != null && now !== null) {
    const { diffValues } = await import('../value/value-diff.ts');
    const lines = diffValues(old.data ?? EMPTY, now.data ?? EMPTY, report.paint);
    return `${head}${lines === null ? '  the same data\n' : `${lines}\n`}`;
  }
  return `${head}  ${differenceOf(row)}\n`;
}

function differenceOf({ change, old, now }: ZnodeChange): string {
  const before = old === undefined ? OLDER : old;
  const show = ({ data, acl }: ZnodeState): string =>
    change === 'acl' ? (acl === null ? OLDER : describeAcl(acl)) : describeData(data);
  const left = before === null ? null : typeof before === 'string' ? before : show(before);
  if (now === null) return `was ${left ?? 'not there'}`;
  return left === null ? `${show(now)}${(now.owner ?? 0n) === 0n ? '' : ' ephemeral'}` : `${left} → ${show(now)}`;
}

const OLDER = 'older than the log';
const EMPTY = new Uint8Array(0);

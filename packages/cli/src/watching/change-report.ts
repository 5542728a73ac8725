import type { Cell, Column } from '../output/column.ts';
import type { Paint } from '../output/paint.ts';
import { byteCount, count, hex, isoTime, localTime } from '../output/stat-columns.ts';
import type { diffValues } from '../value/value-diff.ts';
import { valueRecord } from '../value/value-record.ts';
import type { Change } from './change.ts';
import type { Seen } from './picture.ts';

/** Lines of a difference that are shown. */
const LINES_MAX = 40;
const NOTHING = new Uint8Array(0);

/** The fields of a change. */
export const CHANGE_COLUMNS: readonly Column<Change>[] = [
  { name: 'time', value: ({ timeMs }) => isoTime(timeMs) },
  { name: 'zxid', value: ({ zxid }) => (zxid === null ? null : hex(zxid)) },
  { name: 'kind', value: ({ kind }) => kind },
  { name: 'path', value: ({ path }) => path },
  { name: 'source', value: ({ source }) => source },
  { name: 'version', value: ({ after }) => after?.version ?? null },
  { name: 'value', value: ({ value }) => value },
  { name: 'data', value: ({ after }) => recordOf(after)?.data ?? null },
  { name: 'encoding', value: ({ after }) => recordOf(after)?.encoding ?? null },
  {
    name: 'before',
    value: ({ before }): Cell => (before === null ? null : { version: before.version, ...recordOf(before) }),
  },
  { name: 'came', value: ({ came }) => came },
  { name: 'went', value: ({ went }) => went },
  { name: 'reason', value: ({ reason }) => reason },
  { name: 'missed', value: ({ missed }) => missed },
];

function recordOf(seen: Seen | null): ReturnType<typeof valueRecord> | null {
  return seen?.data == null ? null : valueRecord(seen.data);
}

/** A change for people: a line, and the difference of the data below it. */
export function describeChange(change: Change, paint: Paint, diff: typeof diffValues): string {
  const { timeMs, kind, zxid, path, source } = change;
  const time = paint.dim(localTime(timeMs).slice(11));
  if (kind === 'gap') return `${time}  ${paint.notable(`gap: ${describeGap(change)}`)}`;
  const id = (zxid === null ? '' : hex(zxid)).padEnd(ZXID_WIDTH);
  const word = (kind === 'created' ? paint.good : kind === 'deleted' ? paint.bad : paint.notable).call(
    paint,
    kind.padEnd(KIND_WIDTH),
  );
  const details = [...detailsOf(change), ...(source === 'comparison' ? ['found by comparison'] : [])];
  const tail = details.length === 0 ? '' : `  ${paint.dim(details.join(', '))}`;
  return [`${time}  ${id}  ${word}  ${path}${tail}`, ...differenceOf(change, paint, diff)].join('\n');
}

const ZXID_WIDTH = 11;
const KIND_WIDTH = 'children'.length;

function detailsOf({ kind, after, value, came, went }: Change): readonly string[] {
  switch (kind) {
    case 'children':
      if (value === 'passed') return [];
      if (came.length + went.length === 0) return ['the same names as before'];
      return [...came.map((name) => `+${name}`), ...went.map((name) => `-${name}`)];
    case 'deleted':
      return [];
    default: {
      if (after === null) return value === 'passed' ? ['changed again or deleted before it could be read'] : [];
      const size = [`version ${after.version}`, byteCount(after.size)];
      if (value === 'later') return [...size, 'as a later change has made it'];
      return value === 'known' ? [...size, 'known already'] : size;
    }
  }
}

function differenceOf(change: Change, paint: Paint, diff: typeof diffValues): readonly string[] {
  const { kind, before, after, value } = change;
  if (kind === 'deleted' || kind === 'children' || after === null || value === 'known') return [];
  const isUnknown = kind === 'changed' && before?.data == null;
  const note = isUnknown ? [`    ${paint.dim('what it was before is not known; it is now:')}`] : [];
  if (after.data === null) return [];
  const text = diff(before?.data ?? NOTHING, after.data, paint);
  if (text === null)
    return kind === 'changed' && !isUnknown ? [`    ${paint.dim('the same data, written again')}`] : [];
  const lines = text.split('\n');
  const shown = [...note, ...lines.slice(0, LINES_MAX).map((line) => `    ${line}`)];
  return lines.length > LINES_MAX
    ? [...shown, `    ${paint.dim(`… ${count(lines.length - LINES_MAX)} more lines`)}`]
    : shown;
}

function describeGap({ reason, missed }: Change): string {
  switch (reason) {
    case 'overflow':
      return `changes came faster than they could be printed; ${missed === null ? 'some' : count(missed)} are missing here`;
    case 'new-session':
      return 'the session was lost and there is a new one; changes may be missing here';
    default:
      return 'the connection was lost and is back; changes may be missing here';
  }
}

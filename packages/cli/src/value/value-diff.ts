import { structuredPatch } from 'diff';
import type { Paint } from '../output/paint.ts';
import { byteCount } from '../output/stat-columns.ts';
import { jsonOf, kindOf, textOf, unpack } from './value-kind.ts';

/*
 * The package `diff` costs a dozen milliseconds: a command loads this file when it has something to compare,
 * `const { diffValues } = await import('../value/value-diff.ts')`.
 */

/** Lines around a change. */
const CONTEXT_LINES = 3;
/** Texts that have more differences are reported as sizes: the search takes the square of this many steps. */
const EDITS_MAX = 2000;

/**
 * What differs between two values, for people: lines with − and + when both are text, two JSON values with one field a
 * line and in the same order, gzip unpacked; of other bytes the sizes and the first difference.
 *
 * @returns lines without a line feed behind the last one; null when the values are the same
 */
export function diffValues(a: Uint8Array, b: Uint8Array, paint: Paint): string | null {
  if (Buffer.compare(a, b) === 0) return null;
  const texts = textsOf(a, b);
  if (texts === null) return describeBytes(a, b);
  const { left, right, note } = texts;
  const lines = left === right ? [] : linesOf(left, right, paint);
  if (lines === null) return describeBytes(a, b);
  return [...(note === null ? [] : [paint.dim(note)]), ...lines].join('\n');
}

interface Texts {
  readonly left: string;
  readonly right: string;
  /** What was done to them, when what is shown would mislead without. */
  readonly note: string | null;
}

/** @returns null when one of them is no text */
function textsOf(a: Uint8Array, b: Uint8Array): Texts | null {
  if (kindOf(a) === 'gzip' && kindOf(b) === 'gzip') {
    const [left, right] = [unpack(a), unpack(b)];
    const inner = left === null || right === null ? null : textsOf(left, right);
    if (inner === null) return null;
    const note = inner.left === inner.right ? 'the same once it is unpacked: packed in another way' : 'unpacked';
    return { ...inner, note };
  }
  const [left, right] = [textOf(a), textOf(b)];
  if (left === null || right === null) return null;
  const [leftJson, rightJson] = [jsonOf(left), jsonOf(right)];
  if (leftJson === null || rightJson === null) return { left, right, note: null };
  const normal = { left: formatJson(leftJson), right: formatJson(rightJson) };
  if (normal.left !== normal.right) return { ...normal, note: null };
  // Numbers beyond 2^53 and repeated names are equal once parsed: compare the texts.
  return stripSpace(left) === stripSpace(right)
    ? { ...normal, note: 'the same JSON, with other white space' }
    : { left, right, note: null };
}

/** Only to see whether two texts that are the same JSON differ in more than white space; words inside of strings may join. */
function stripSpace(text: string): string {
  return text.replace(/\s+/g, '');
}

function formatJson(value: object): string {
  return JSON.stringify(value, (_name, inner: unknown) => sortNames(inner), 2);
}

/** The order of names means nothing in JSON. */
function sortNames(value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** @returns null when there are too many differences to be looked for */
function linesOf(left: string, right: string, paint: Paint): readonly string[] | null {
  const options = { context: CONTEXT_LINES, maxEditLength: EDITS_MAX };
  const patch = structuredPatch('', '', left, right, undefined, undefined, options);
  if (patch === undefined) return null;
  const isShort = patch.hunks.length === 1;
  return patch.hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => {
    const painted = withoutUselessNotes(lines).map((line) => paintLine(line, paint));
    return isShort ? painted : [paint.dim(`@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`), ...painted];
  });
}

/** Values of znodes rarely end with a line feed: that is reported only when it is what differs. */
function withoutUselessNotes(lines: readonly string[]): readonly string[] {
  const notes = lines.filter((line) => line.startsWith('\\')).length;
  const isShared = lines.some((line, i) => line.startsWith('\\') && lines[i - 1]?.startsWith(' '));
  const removedLast = lines.findLastIndex((line) => line.startsWith('-'));
  const addedLast = lines.findLastIndex((line) => line.startsWith('+'));
  const differs = notes === 1 && !isShared && removedLast >= 0 && addedLast >= 0;
  return differs ? lines : lines.filter((line) => !line.startsWith('\\'));
}

function paintLine(line: string, paint: Paint): string {
  if (line.startsWith('-')) return paint.bad(line);
  return line.startsWith('+') ? paint.good(line) : paint.dim(line);
}

function describeBytes(a: Uint8Array, b: Uint8Array): string {
  const length = Math.min(a.length, b.length);
  let at = 0;
  while (at < length && a[at] === b[at]) at++;
  const sizes =
    a.length === b.length ? `${byteCount(a.length)} each` : `${byteCount(a.length)} → ${byteCount(b.length)}`;
  return `${sizes}, the first difference at byte ${at}: ${showByte(a, at)} → ${showByte(b, at)}`;
}

function showByte(data: Uint8Array, at: number): string {
  const byte = data[at];
  return byte === undefined ? 'the end' : `0x${byte.toString(16).padStart(2, '0')}`;
}

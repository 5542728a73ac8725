/**
 * Carries a patch over a refactoring: finds the place of a hunk again whose lines stand elsewhere now.
 *
 *      …  context    ── may be another one there
 *     -…  changed    ── must be there once: in the hunk's own file or, when not, in one other file of its package
 *     +…
 *      …  context
 *
 * Lines that stand in several places are told apart by the context on one side of them. A hunk that only adds lines has
 * nothing but its context to be found by. Lines that were rewritten must be carried by hand.
 */
export interface Carried {
  readonly text: string;
  /** Hunks that no longer have a place, or have more than one, as `file: first line`. */
  readonly lost: readonly string[];
}

interface PatchHunk {
  readonly file: string;
  /** With their marks: blank, minus, plus. */
  readonly lines: readonly string[];
}

interface Place {
  readonly file: string;
  /** Index of the first line. */
  readonly at: number;
}

/** @param sources the texts of the package's files, by their paths from the root of the repository */
export function carry(patch: string, sources: ReadonlyMap<string, string>): Carried {
  const begin = patch.indexOf('\n--- ') + 1;
  const linesOf = new Map([...sources].map(([file, text]) => [file, text.split('\n')]));
  const lost: string[] = [];
  const old = readHunks(patch.slice(begin));
  const hunks = old.map((hunk) => {
    const moved = moveHunk(hunk, linesOf);
    if (moved === null) lost.push(`${hunk.file}: ${hunk.lines.find((line) => !line.startsWith(' ')) ?? ''}`);
    return moved ?? { ...hunk, at: 0 };
  });
  // Numbers of lines mean nothing: a patch whose lines are still there stays as it is.
  const isMoved = hunks.some(({ file, lines }, i) => file !== old[i]!.file || lines !== old[i]!.lines);
  if (lost.length > 0 || !isMoved) return { text: patch, lost };
  return { text: patch.slice(0, begin) + formatHunks(hunks), lost };
}

function readHunks(text: string): readonly PatchHunk[] {
  return text.split(/^(?=--- )/m).flatMap((part) => {
    const file = /^--- a\/(.*)$/m.exec(part)?.[1] ?? '';
    const [, ...hunks] = part.split(/^@@.*\n/m);
    return hunks.map((hunk) => ({ file, lines: hunk.split('\n').filter((line) => line !== '') }));
  });
}

function moveHunk(hunk: PatchHunk, linesOf: ReadonlyMap<string, readonly string[]>): (PatchHunk & Place) | null {
  const isContext = (line: string): boolean => line.startsWith(' ');
  const first = hunk.lines.findIndex((line) => !isContext(line));
  const last = hunk.lines.findLastIndex((line) => !isContext(line));
  const whole = beforeOf(hunk.lines);
  const unmoved = findPlace(whole, hunk.file, linesOf, 0);
  if (unmoved !== null) return { ...hunk, ...unmoved };
  const changed = hunk.lines.slice(first, last + 1);
  const sought = beforeOf(changed);
  // With what still stands on one side of it, or alone.
  const behind = findPlace(beforeOf(hunk.lines.slice(0, last + 1)), hunk.file, linesOf, first);
  const before = findPlace(beforeOf(hunk.lines.slice(first)), hunk.file, linesOf, 0);
  const place = behind ?? before ?? findPlace(sought, hunk.file, linesOf, 0);
  if (place === null) return null;
  const lines = linesOf.get(place.file)!;
  const at = Math.max(0, place.at - first);
  const end = place.at + sought.length;
  const mark = (line: string): string => ` ${line}`;
  const head = lines.slice(at, place.at).map(mark);
  const tail = lines.slice(end, end + hunk.lines.length - 1 - last).map(mark);
  return { file: place.file, at, lines: [...head, ...changed, ...tail] };
}

/** The lines as they are before the change. */
function beforeOf(lines: readonly string[]): readonly string[] {
  return lines.filter((line) => !line.startsWith('+')).map((line) => line.slice(1));
}

/**
 * The one place of some lines. The hunk's own file comes first: the same lines may stand in another one, too.
 *
 * @param skipped lines of it that stand before the place
 */
function findPlace(
  sought: readonly string[],
  own: string,
  linesOf: ReadonlyMap<string, readonly string[]>,
  skipped: number,
): Place | null {
  if (sought.length === 0) return null;
  const inOwn = findAll(sought, linesOf.get(own) ?? []);
  if (inOwn.length > 0) return inOwn.length === 1 ? { file: own, at: inOwn[0]! + skipped } : null;
  const others = [...linesOf].flatMap(([file, lines]) =>
    findAll(sought, lines).map((at) => ({ file, at: at + skipped })),
  );
  return others.length === 1 ? others[0]! : null;
}

function findAll(sought: readonly string[], lines: readonly string[]): readonly number[] {
  return lines.flatMap((_, at) => (sought.every((line, i) => lines[at + i] === line) ? [at] : []));
}

function formatHunks(hunks: readonly (PatchHunk & Place)[]): string {
  let text = '';
  let file = '';
  let grown = 0;
  for (const hunk of hunks) {
    if (hunk.file !== file) {
      text += `--- a/${hunk.file}\n+++ b/${hunk.file}\n`;
      file = hunk.file;
      grown = 0;
    }
    const before = beforeOf(hunk.lines).length;
    const after = hunk.lines.filter((line) => !line.startsWith('-')).length;
    text += `@@ -${hunk.at + 1},${before} +${hunk.at + 1 + grown},${after} @@\n${hunk.lines.join('\n')}\n`;
    grown += after - before;
  }
  return text;
}

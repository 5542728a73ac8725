import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A change of the sources that brings a defect back: a patch, with a few lines in front of it.
 *
 *     Mutation: commit-with-one-ack-too-few
 *     Defect: what comes back, in a sentence
 *     Simulate: --servers 3 --faults crash,power
 *     Test: packages/simulator/src/stories/commits.test.ts > a part of the title
 *     Found: seed 3, E8
 *
 *     --- a/packages/core/src/zab/quorum-watermark.ts
 *     +++ b/packages/core/src/zab/quorum-watermark.ts
 *     @@ -60,3 +60,3 @@
 *      …
 *
 * `Simulate` and `Test` say how it is found; one of the two may be missing. A mutation of a recipe has `Recipe: queues/queue`
 * instead of `Simulate`: seeds of the simulation of that recipe. `Compiler: refuses it` says that the types alone stop it;
 * how else it would be found is kept for bundles, which know no types. `Blind: …` says why nothing finds it yet. `Found` is the first
 * seed that has failed, and the invariant that it broke; `Missed: 200 seeds` in its place: none of those has. `--record` writes both.
 */
export interface Mutation {
  /** Name of the file, without `.patch`. */
  readonly id: string;
  readonly defect: string;
  /** Options of `simulate`; null where no random run can meet it. */
  readonly simulate: readonly string[] | null;
  /** Simulation of a recipe, as `simulate:recipes` names it; null for others. */
  readonly recipe: string | null;
  readonly test: MutationTest | null;
  /** False: the compiler refuses it. */
  readonly compiles: boolean;
  /** The first seed that has failed; null when none is known. */
  readonly foundBy: string | null;
  /** How many seeds were tried without one that failed; null where one is known, and where none were tried. */
  readonly missedBy: string | null;
  /** Why nothing finds it; null where it is to be found. */
  readonly blind: string | null;
  readonly hunks: readonly Hunk[];
}

export interface MutationTest {
  /** From the root of the repository. */
  readonly file: string;
  /** A part of the titles of the tests; null for all tests of the file. */
  readonly title: string | null;
}

/** Lines of one file that give way to others. */
export interface Hunk {
  /** From the root of the repository. */
  readonly file: string;
  readonly before: string;
  readonly after: string;
}

const SUFFIX = '.patch';

/** All mutations of a folder, by their ids. Throws on a patch that cannot be read. */
export function readMutations(directory: string): readonly Mutation[] {
  return readdirSync(directory)
    .flatMap((name) => (name.endsWith(SUFFIX) ? [name.slice(0, -SUFFIX.length)] : []))
    .sort()
    .map((id) => parseMutation(id, readFileSync(join(directory, id + SUFFIX), 'utf8')));
}

export function parseMutation(id: string, text: string): Mutation {
  const lines = text.split('\n');
  const begin = lines.findIndex((line) => line.startsWith('--- '));
  const head = lines.slice(0, Math.max(begin, 0));
  const headerOf = (name: string): string | null =>
    head.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? null;
  const defect = headerOf('Defect');
  const simulate = headerOf('Simulate');
  const recipe = headerOf('Recipe');
  const test = headerOf('Test');
  if (headerOf('Mutation') !== id) throw new Error(`${id}: its first line must be 'Mutation: ${id}'`);
  if (defect === null) throw new Error(`${id}: a line 'Defect: …' must say what comes back`);
  if (simulate === null && recipe === null && test === null) {
    throw new Error(`${id}: 'Simulate: …', 'Recipe: …' or 'Test: …' must say how it is found`);
  }
  return {
    id,
    defect,
    simulate: simulate?.split(' ') ?? null,
    recipe,
    test: test === null ? null : parseTest(test),
    compiles: headerOf('Compiler') !== 'refuses it',
    foundBy: headerOf('Found'),
    missedBy: headerOf('Missed'),
    blind: headerOf('Blind'),
    hunks: parseHunks(id, lines.slice(begin)),
  };
}

/** A patch that names the seed that has found it, or how many have missed it; what it said before is forgotten. */
export function withOutcome(patch: string, kind: 'Found' | 'Missed', seeds: string): string {
  const begin = patch.indexOf('\n--- ');
  const head = patch.slice(0, begin).trimEnd().split('\n');
  const others = head.filter((line) => !/^(?:Found|Missed): /.test(line));
  return `${[...others, `${kind}: ${seeds}`].join('\n')}\n${patch.slice(begin)}`;
}

/** A line for people: what it brings back and what finds it. */
export function describeMutation({ id, defect, foundBy, missedBy, test, compiles, blind }: Mutation): string {
  const missed = missedBy === null ? '' : `, not by ${missedBy}`;
  const others = foundBy ?? (test === null ? 'nothing' : `its test${missed}`);
  const finder = !compiles ? 'the compiler' : blind === null ? others : `nothing: ${blind}`;
  return `${id}: ${defect} (${finder})`;
}

function parseTest(text: string): MutationTest {
  const [file = '', title = null] = text.split(' > ');
  return { file, title };
}

function parseHunks(id: string, lines: readonly string[]): readonly Hunk[] {
  const hunks: Hunk[] = [];
  let file = '';
  let before: string[] = [];
  let after: string[] = [];
  const finish = (): void => {
    if (before.length > 0) hunks.push({ file, before: before.join('\n'), after: after.join('\n') });
    before = [];
    after = [];
  };
  for (const line of lines) {
    if (line.startsWith('--- ')) {
      finish();
      file = line.slice('--- a/'.length);
    } else if (line.startsWith('@@')) finish();
    else if (line.startsWith('-')) before.push(line.slice(1));
    else if (line.startsWith('+') && !line.startsWith('+++ ')) after.push(line.slice(1));
    else if (line.startsWith(' ')) {
      before.push(line.slice(1));
      after.push(line.slice(1));
    }
  }
  finish();
  if (hunks.length === 0) throw new Error(`${id}: there is no line to change`);
  return hunks;
}

/**
 * The text of a file with a hunk applied. The place is found by its lines, not by their numbers, so that a patch outlives
 * changes elsewhere in the file.
 *
 * Throws where the lines are not there, or more than once.
 */
export function applyHunk(text: string, { file, before, after }: Hunk): string {
  const whole = `\n${text}`;
  const sought = `\n${before}\n`;
  const at = whole.indexOf(sought);
  if (at < 0) throw new Error(`${file} no longer has these lines:\n${before}`);
  if (whole.indexOf(sought, at + 1) >= 0) throw new Error(`${file} has these lines more than once:\n${before}`);
  const end = at + sought.length;
  const middle = after === '' ? '\n' : `\n${after}\n`;
  return `${whole.slice(0, at)}${middle}${whole.slice(end)}`.slice(1);
}

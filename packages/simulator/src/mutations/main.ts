/** `npm run mutations`: brings defects back, one at a time, in a copy of the sources, and says what finds them. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { carry } from './carry.ts';
import {
  CHECKER_SOURCES,
  type CheckersOffOptions,
  countTestsWithout,
  describeRow,
  readPromises,
  switchCheckersOff,
} from './checkers-off.ts';
import { type Finding, find } from './finding.ts';
import { Mutant } from './mutant.ts';
import { describeMutation, type Mutation, readMutations, withOutcome } from './mutation.ts';
import { Workshop } from './workshop.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const MUTATIONS = join(ROOT, 'packages/simulator/mutations');
/** Seeds in which one checker alone has caught a mutation, after which no other is looked for. */
const ALONE_AFTER = 5;

const USAGE = `npm run mutations -- [options] [mutation …]

  --seeds N     seeds that are tried, from 1 on; default 200. 0: only the tests are run
  --minutes N   time for the seeds of one mutation; default 5
  --checkers    which checkers find them by seeds, and what else does with each of those switched off in turn, in up to
                five seeds that it finds
  --tests       how many unit tests fail without each checker
  --record      write into the patches which seed finds them, or how many have not
  --carry       after a refactoring: write the places where their lines stand now into the patches
  --list        say which mutations there are, and what finds them
  --help

Without a name all are tried. Exit code 1: one was not found.
`;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seeds: { type: 'string', default: '200' },
      minutes: { type: 'string', default: '5' },
      checkers: { type: 'boolean', default: false },
      tests: { type: 'boolean', default: false },
      record: { type: 'boolean', default: false },
      carry: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const mutations = readMutations(MUTATIONS);
  if (values.help || values.list) {
    process.stdout.write(values.help ? USAGE : mutations.map((mutation) => `${describeMutation(mutation)}\n`).join(''));
    return 0;
  }
  const unknown = positionals.find((name) => !mutations.some(({ id }) => id === name));
  const seedsMax = Number(values.seeds);
  const timeoutMs = Number(values.minutes) * 60_000;
  if (unknown !== undefined || !(seedsMax >= 0) || !(timeoutMs > 0)) {
    process.stderr.write(`${unknown === undefined ? 'a number is wrong' : `no such mutation: ${unknown}`}\n\n${USAGE}`);
    return 2;
  }
  const chosen = mutations.filter(({ id }) => positionals.length === 0 || positionals.includes(id));
  if (values.carry) return carryAll(chosen);
  if (values.checkers) return findCheckers(chosen, { seedsMax, aloneAfter: ALONE_AFTER, timeoutMs });
  if (values.tests) return countTests();
  const workshop = new Workshop(ROOT);
  const original = new Workshop(ROOT);
  const leave = (): void => {
    workshop.dispose();
    original.dispose();
  };
  process.on('SIGINT', () => {
    leave();
    process.exit(130);
  });
  try {
    await original.build();
    return await findAll(
      chosen,
      (mutation) => find(mutation, workshop, original, { seedsMax, timeoutMs }),
      (finding) => {
        if (values.record) record(finding);
      },
    );
  } finally {
    leave();
  }
}

/** Keeps what is known of seeds if none were run this time, or the time was up. */
function record({ id, bySeeds }: Finding): void {
  const missed = /^none of (\d+)$/.exec(bySeeds ?? '')?.[1];
  if (bySeeds === null || (missed === undefined && !bySeeds.startsWith('seed '))) return;
  const path = join(MUTATIONS, `${id}.patch`);
  const patch = readFileSync(path, 'utf8');
  const next =
    missed === undefined ? withOutcome(patch, 'Found', bySeeds) : withOutcome(patch, 'Missed', `${missed} seeds`);
  writeFileSync(path, next);
}

/** @returns 1 when a mutation no longer has a place and must be edited by hand */
function carryAll(chosen: readonly Mutation[]): number {
  let lostCount = 0;
  for (const { id, hunks } of chosen) {
    const path = join(MUTATIONS, `${id}.patch`);
    const patch = readFileSync(path, 'utf8');
    const sources = new Map(hunks.flatMap(({ file }) => readPackage(file.split('/').slice(0, 2).join('/'))));
    const { text, lost } = carry(patch, sources);
    for (const hunk of lost) process.stdout.write(`${id} has no place in ${hunk}\n`);
    lostCount += lost.length;
    if (text !== patch) writeFileSync(path, text);
  }
  return lostCount === 0 ? 0 : 1;
}

/** The sources of a package but its tests. */
function readPackage(directory: string): readonly (readonly [path: string, text: string])[] {
  return readdirSync(join(ROOT, directory, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !/\.test\.ts$|(?:^|\/)testing\//.test(name))
    .map((name) => [`${directory}/src/${name}`, readFileSync(join(ROOT, directory, 'src', name), 'utf8')]);
}

async function findAll(
  chosen: readonly Mutation[],
  findOne: (mutation: Mutation) => Promise<Finding>,
  onFinding: (finding: Finding) => void,
): Promise<number> {
  const missed: string[] = [];
  for (const mutation of chosen) {
    const finding = await findOne(mutation);
    const { id, bySeeds, byTest, isFound, seconds } = finding;
    const by = [bySeeds ?? '', byTest].filter((text) => text !== '').join('; ');
    const isMissed = !isFound && mutation.blind === null;
    const result = isFound ? 'found' : isMissed ? 'NOT FOUND' : 'not found, as expected,';
    process.stdout.write(`${result} ${id}: ${by} (${seconds.toFixed(1)} s)\n`);
    if (isMissed) missed.push(id);
    onFinding(finding);
  }
  process.stdout.write(`${chosen.length} tried; missed: ${missed.length === 0 ? 'none' : missed.join(', ')}\n`);
  return missed.length === 0 ? 0 : 1;
}

/** Writes a table: what catches each mutation, and what does with that checker switched off. @returns the exit code */
async function findCheckers(chosen: readonly Mutation[], options: CheckersOffOptions): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'meerkat-checkers-'));
  try {
    const original = await Mutant.make(ROOT, directory, null, 'minutes');
    process.stdout.write('| mutation | caught by | with that switched off |\n| --- | --- | --- |\n');
    for (const mutation of chosen) {
      if (mutation.simulate === null || !mutation.compiles) continue;
      const mutant = await Mutant.make(ROOT, directory, mutation, 'minutes');
      const row = await switchCheckersOff(mutant, original, mutation.simulate, options);
      process.stdout.write(`${describeRow(mutation.id, row, options.seedsMax)}\n`);
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  return 0;
}

/** @returns the exit code: 1 when no unit test notices that a checker is switched off */
async function countTests(): Promise<number> {
  const promises = readPromises(CHECKER_SOURCES.map((name) => join(ROOT, 'packages/simulator/src', name)));
  const workshop = new Workshop(ROOT);
  let unnoticed = 0;
  try {
    for (const promise of promises) {
      const failed = await countTestsWithout(promise, workshop);
      process.stdout.write(`without ${promise} ${failed} unit tests fail\n`);
      if (failed === 0) unnoticed++;
    }
  } finally {
    workshop.dispose();
  }
  return unnoticed === 0 ? 0 : 1;
}

process.exitCode = await main();

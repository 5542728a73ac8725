import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { applyHunk, type Mutation, type MutationTest } from './mutation.ts';

/** What the simulator is made of, the recipes, and what tests of the client start. */
const PACKAGES = ['protocol', 'core', 'client', 'simulator', 'recipes', 'testing', 'server', 'console'];
const FILES = ['package.json', 'tsconfig.base.json'];
/** Of vitest: tests load the sources of all packages, so that nothing has to be built for them. */
const TESTS_FROM_SOURCES = {
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'], externalConditions: ['source'] } },
  test: { testTimeout: 300_000, hookTimeout: 300_000, expect: { poll: { timeout: 120_000 } }, isolate: false },
};
const SIMULATOR = 'packages/simulator/dist/main.js';
const BUILD_MAX_MS = 300_000;
const TEST_MAX_MS = 180_000;

export interface SeedFailure {
  readonly seed: number;
  /** The first invariant that was violated, such as Z11. */
  readonly invariant: string;
  /** One line for people. */
  readonly message: string;
}

/** The time was up; every seed up to this one had passed, and perhaps some more. 0: that of the first is not known. */
export interface Late {
  readonly lateAfter: number;
}

/** What became of a test; `late`: it failed, and by nothing but its time. */
export type TestResult = 'passed' | 'failed' | 'late';

/** @param output of vitest, without colours. @returns null when no test has run */
export function resultOf(output: string, hasPassed: boolean): TestResult | null {
  const failed = Number(/Tests .*?(\d+) failed/.exec(output)?.[1] ?? 0);
  if (failed === 0 && !/Tests .*\d+ passed/.test(output)) return null;
  if (hasPassed) return 'passed';
  const late = output.match(/Error: (Test|Hook) timed out in \d+ms/g)?.length ?? 0;
  return failed > 0 && late >= failed ? 'late' : 'failed';
}

interface Finished {
  readonly code: number | null;
  readonly output: string;
  readonly isLate: boolean;
}

/** A copy of the sources in a temporary folder, where they are changed, built and run. */
export class Workshop {
  readonly root: string;
  /** What files were before they were changed. */
  readonly #originals: Map<string, string> = new Map();
  #running: ChildProcess | null = null;

  /** @param source root of the repository; it is only read */
  constructor(source: string) {
    this.root = mkdtempSync(join(tmpdir(), 'meerkat-mutation-'));
    for (const name of PACKAGES) {
      const from = join(source, 'packages', name);
      cpSync(from, join(this.root, 'packages', name), {
        recursive: true,
        filter: (path) => !['dist', 'node_modules'].includes(basename(path)),
      });
    }
    for (const name of FILES) cpSync(join(source, name), join(this.root, name));
    writeFileSync(join(this.root, 'vitest.config.mjs'), `export default ${JSON.stringify(TESTS_FROM_SOURCES)};\n`);
    const base = join(this.root, 'tsconfig.base.json');
    // A rule that is taken out leaves behind what it was made of.
    writeFileSync(base, readFileSync(base, 'utf8').replaceAll(/("noUnused\w+"): true/g, '$1: false'));
    this.#linkModules(join(source, 'node_modules'), join(this.root, 'node_modules'));
  }

  #linkModules(from: string, to: string): void {
    mkdirSync(join(to, '@meerkat'), { recursive: true });
    for (const name of readdirSync(from)) if (name !== '@meerkat') symlinkSync(join(from, name), join(to, name));
    for (const name of PACKAGES) symlinkSync(join(this.root, 'packages', name), join(to, '@meerkat', name));
  }

  /** Throws when the patch does not apply. */
  apply({ hunks }: Pick<Mutation, 'hunks'>): void {
    for (const hunk of hunks) {
      const path = join(this.root, hunk.file);
      const text = readFileSync(path, 'utf8');
      if (!this.#originals.has(path)) this.#originals.set(path, text);
      writeFileSync(path, applyHunk(text, hunk));
    }
  }

  restore(): void {
    for (const [path, text] of this.#originals) writeFileSync(path, text);
    this.#originals.clear();
  }

  /** Throws when the compiler is not content. */
  async build(): Promise<void> {
    const errors = await this.compile('packages/simulator');
    if (errors !== null) throw new Error(`the compiler does not accept it:\n${errors}`);
  }

  /** @returns what the compiler says against a package and what it depends on; null when it accepts them */
  async compile(folder: string): Promise<string | null> {
    const compiler = join(this.root, 'node_modules/typescript/bin/tsc');
    const { code, output, isLate } = await this.#run([compiler, '-b', folder], BUILD_MAX_MS);
    if (isLate) throw new Error(`the compiler has not ended within ${BUILD_MAX_MS} ms:\n${output}`);
    return code === 0 ? null : output;
  }

  /**
   * Runs seeds until one fails.
   *
   * @param options of `simulate`
   * @returns null when none does; `Late` when the time is up
   */
  async simulate(
    options: readonly string[],
    seeds: { readonly first: number; readonly last: number },
    timeoutMs: number,
  ): Promise<SeedFailure | Late | null> {
    const args = [SIMULATOR, '--seeds', `${seeds.first}..${seeds.last}`, '--no-shrink', ...options];
    const { code, output, isLate } = await this.#run(args, timeoutMs);
    if (code === 0) return null;
    const failure = /^seed (\d+) fails: .*\n {2}(\S+) at [\d.]+: (.*)$/m.exec(output);
    if (failure !== null) return { seed: Number(failure[1]), invariant: failure[2]!, message: failure[3]! };
    if (isLate) return { lateAfter: Number([...output.matchAll(/^seed (\d+): /gm)].at(-1)?.[1] ?? 0) };
    throw new Error(`the simulator cannot be run:\n${output}`);
  }

  /**
   * Runs seeds of the simulation of a recipe.
   *
   * @returns those that fail; 'late' when the time is up
   */
  async simulateRecipe(
    recipe: string,
    seeds: { readonly first: number; readonly last: number },
    timeoutMs: number,
  ): Promise<readonly number[] | 'late'> {
    const vitest = join(this.root, 'node_modules/vitest/vitest.mjs');
    const file = `packages/recipes/src/${recipe}.simulation.test.ts`;
    const { output, isLate } = await this.#run([vitest, 'run', '--bail', '1', file], timeoutMs, {
      SEEDS: `${seeds.first}..${seeds.last}`,
    });
    const failed = [...output.replaceAll(ESCAPES, '').matchAll(/FAIL .*\(seed (\d+)\)/g)].map(([, seed]) =>
      Number(seed),
    );
    if (failed.length > 0) return failed;
    if (isLate) return 'late';
    if (!/Tests .*\d+ passed/.test(output.replaceAll(ESCAPES, '')))
      throw new Error(`no such simulation: ${file}\n${output}`);
    return [];
  }

  /** Runs a test, which should fail. */
  async test({ file, title }: MutationTest): Promise<TestResult> {
    const vitest = join(this.root, 'node_modules/vitest/vitest.mjs');
    const filter = title === null ? [] : ['-t', title.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')];
    const args = [vitest, 'run', file, ...filter];
    const { code, output, isLate } = await this.#run(args, TEST_MAX_MS);
    if (isLate) return 'late';
    const result = resultOf(output.replaceAll(ESCAPES, ''), code === 0);
    if (result === null) {
      throw new Error(`no such test has run: ${file}${title === null ? '' : ` > ${title}`}\n${output}`);
    }
    return result;
  }

  /** @returns how many tests of these files fail */
  async countFailures(files: readonly string[]): Promise<number> {
    const vitest = join(this.root, 'node_modules/vitest/vitest.mjs');
    const { output } = await this.#run([vitest, 'run', ...files], TEST_MAX_MS);
    const plain = output.replaceAll(ESCAPES, '');
    if (!/Tests .*\d+ (passed|failed)/.test(plain))
      throw new Error(`no tests have run: ${files.join(', ')}\n${output}`);
    return Number(/Tests +(\d+) failed/.exec(plain)?.[1] ?? 0);
  }

  /** Ends what runs, and removes the copy. */
  dispose(): void {
    this.#running?.kill('SIGKILL');
    rmSync(this.root, { recursive: true, force: true });
  }

  #run(args: readonly string[], timeoutMs: number, environment: Record<string, string> = {}): Promise<Finished> {
    return new Promise((resolve, reject) => {
      const env = { ...process.env, ...environment };
      const child = spawn(process.execPath, args, { cwd: this.root, env, stdio: ['ignore', 'pipe', 'pipe'] });
      this.#running = child;
      let output = '';
      let isLate = false;
      const add = (chunk: Buffer): void => {
        output += chunk.toString();
      };
      child.stdout.on('data', add);
      child.stderr.on('data', add);
      const timer = setTimeout(() => {
        isLate = true;
        child.kill('SIGKILL');
      }, timeoutMs);
      child.on('error', reject);
      child.on('close', (code) => {
        clearTimeout(timer);
        this.#running = null;
        resolve({ code, output, isLate });
      });
    });
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the colours of a terminal
const ESCAPES = /\u001b\[[\d;]*m/g;

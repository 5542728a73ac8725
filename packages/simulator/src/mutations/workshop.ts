import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { applyHunk, type Mutation, type MutationTest } from './mutation.ts';

/** What the simulator is made of. */
const PACKAGES = ['protocol', 'core', 'client', 'simulator'];
const FILES = ['package.json', 'tsconfig.base.json', 'vitest.config.ts'];
const SIMULATOR = 'packages/simulator/dist/main.js';
const BUILD_MAX_MS = 300_000;
const TEST_MAX_MS = 180_000;

export interface SeedFailure {
  readonly seed: number;
  /** The first promise that was broken, for instance Z11. */
  readonly invariant: string;
  /** One line for people. */
  readonly message: string;
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
  apply({ hunks }: Mutation): void {
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
    const compiler = join(this.root, 'node_modules/typescript/bin/tsc');
    const { code, output } = await this.#run([compiler, '-b', 'packages/simulator'], BUILD_MAX_MS);
    if (code !== 0) throw new Error(`the compiler does not accept it:\n${output}`);
  }

  /**
   * Runs seeds until one fails.
   *
   * @param options of `simulate`
   * @returns null when none does; 'late' when the time is up
   */
  async simulate(
    options: readonly string[],
    seeds: { readonly first: number; readonly last: number },
    timeoutMs: number,
  ): Promise<SeedFailure | 'late' | null> {
    const args = [SIMULATOR, '--seeds', `${seeds.first}..${seeds.last}`, '--no-shrink', ...options];
    const { code, output, isLate } = await this.#run(args, timeoutMs);
    if (code === 0) return null;
    const failure = /^seed (\d+) fails: .*\n {2}(\S+) at [\d.]+: (.*)$/m.exec(output);
    if (failure !== null) return { seed: Number(failure[1]), invariant: failure[2]!, message: failure[3]! };
    if (isLate) return 'late';
    throw new Error(`the simulator cannot be run:\n${output}`);
  }

  /** @returns true when the test fails, as it should */
  async test({ file, title }: MutationTest): Promise<boolean> {
    const vitest = join(this.root, 'node_modules/vitest/vitest.mjs');
    const filter = title === null ? [] : ['-t', title.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')];
    const { code, output } = await this.#run([vitest, 'run', '--project', 'sources', file, ...filter], TEST_MAX_MS);
    const ran = /Tests .*\d+ (passed|failed)/.test(output.replaceAll(ESCAPES, ''));
    if (!ran) throw new Error(`no such test has run: ${file}${title === null ? '' : ` > ${title}`}\n${output}`);
    return code !== 0;
  }

  /** Ends what runs, and removes the copy. */
  dispose(): void {
    this.#running?.kill('SIGKILL');
    rmSync(this.root, { recursive: true, force: true });
  }

  #run(args: readonly string[], timeoutMs: number): Promise<Finished> {
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, args, { cwd: this.root, stdio: ['ignore', 'pipe', 'pipe'] });
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

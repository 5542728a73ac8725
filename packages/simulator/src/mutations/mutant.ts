import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';
import { applyHunk, type Mutation } from './mutation.ts';

/** Options of node for a run of a second: a quarter of it would go into optimizing code that is not needed for long. */
const FOR_A_SECOND = ['--no-opt', '--always-sparkplug', '--single-threaded-gc'];
/** For a run of many seeds. */
const FOR_MINUTES = ['--max-semi-space-size=64', '--single-threaded-gc'];

/** Invariants that a run has broken, each once, in the order of their moments; and what was printed. */
export interface MutantRun {
  readonly broken: readonly string[];
  readonly output: string;
  /** True: it was ended because its time was up. */
  readonly isLate: boolean;
}

/** `simulate` of the sources with a mutation applied, as one file of JavaScript: made in a third of a second, nothing is copied. */
export class Mutant {
  readonly #file: string;
  readonly #flags: readonly string[];

  private constructor(file: string, flags: readonly string[]) {
    this.#file = file;
    this.#flags = flags;
  }

  /**
   * @param root of the repository
   * @param directory where the file is put
   * @param mutation null: the sources as they are
   * @param duration of a run, for which node is prepared
   */
  static async make(
    root: string,
    directory: string,
    mutation: Mutation | null,
    duration: 'second' | 'minutes' = 'second',
  ): Promise<Mutant> {
    const file = join(directory, `${mutation?.id ?? 'original'}.mjs`);
    const build = await rolldown({
      input: join(root, 'packages/simulator/src/main.ts'),
      platform: 'node',
      resolve: { conditionNames: ['source'] },
      transform: { target: 'node20' },
      plugins: mutation === null ? [] : [patcher(root, mutation)],
    });
    await build.write({ file, codeSplitting: false });
    await build.close();
    return new Mutant(file, duration === 'second' ? FOR_A_SECOND : FOR_MINUTES);
  }

  /**
   * @param options of `simulate`; a failure is not made smaller
   * @param timeoutMs after which it is ended; 0: never
   */
  run(options: readonly string[], timeoutMs = 0): Promise<MutantRun> {
    const args = [...this.#flags, this.#file, '--no-shrink', ...options];
    return new Promise((resolve, reject) => {
      execFile(process.execPath, args, { timeout: Math.ceil(timeoutMs) }, (error, output, errors) => {
        const broken = [...output.matchAll(/^ {2}([A-Z]\d+) at /gm)].map(([, invariant]) => invariant!);
        const isLate = error?.killed === true;
        // 1: an invariant was violated.
        if (error !== null && error.code !== 1 && !isLate) reject(new Error(`${errors}\n${output}`, { cause: error }));
        else resolve({ broken: [...new Set(broken)], output, isLate });
      });
    });
  }
}

function patcher(root: string, { id, hunks }: Mutation): Plugin {
  return {
    name: id,
    load(path) {
      const own = hunks.filter(({ file }) => path === join(root, file));
      if (own.length === 0) return null;
      return { code: own.reduce(applyHunk, readFileSync(path, 'utf8')), moduleType: 'ts' };
    },
  };
}

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';
import { applyHunk, type Mutation } from './mutation.ts';

/** Of the second that a run takes, a quarter would go into optimizing code that is not needed for long. */
const ONE_SECOND = ['--no-opt', '--always-sparkplug', '--single-threaded-gc'];

/** Invariants that a run has broken, each once, in the order of their moments; and what was printed. */
export interface MutantRun {
  readonly broken: readonly string[];
  readonly output: string;
}

/** `simulate` of the sources with a mutation applied, as one file of JavaScript: made in a third of a second, nothing is copied. */
export class Mutant {
  readonly #file: string;

  private constructor(file: string) {
    this.#file = file;
  }

  /**
   * @param root of the repository
   * @param directory where the file is put
   * @param mutation null: the sources as they are
   */
  static async make(root: string, directory: string, mutation: Mutation | null): Promise<Mutant> {
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
    return new Mutant(file);
  }

  /** @param options of `simulate`; a failure is not made smaller */
  run(options: readonly string[]): Promise<MutantRun> {
    return new Promise((resolve, reject) => {
      execFile(process.execPath, [...ONE_SECOND, this.#file, '--no-shrink', ...options], (error, output, errors) => {
        const broken = [...output.matchAll(/^ {2}([A-Z]\d+) at /gm)].map(([, invariant]) => invariant!);
        // 1: a promise was broken.
        if (error !== null && error.code !== 1) reject(new Error(`${errors}\n${output}`, { cause: error }));
        else resolve({ broken: [...new Set(broken)], output });
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

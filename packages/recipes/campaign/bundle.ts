import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Plugin, rolldown } from 'rolldown';

/** This module runs either from source or bundled in `dist`. */
const HERE: string = fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? '.' : '..', import.meta.url));
const SOURCES: string = join(HERE, '../src');
const VITEST_STAND_IN = join(HERE, 'vitest-stand-in.ts');
const SEEDS_STAND_IN = join(HERE, 'seeds-stand-in.ts');
const FILE_END = '.simulation.test.ts';

/** The worker and all simulations in plain JavaScript. */
export interface Bundle {
  /** Equal for equal sources. */
  readonly hash: string;
  readonly workerFile: string;
  fileOf(name: string): string;
  remove(): void;
}

/** All simulations: their files below `src`, without the common suffix. */
export function findSimulations(): string[] {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith(FILE_END))
    .map((file) => file.slice(0, -FILE_END.length).replaceAll('\\', '/'))
    .sort();
}

/** The command that runs one seed of a simulation in vitest, from the workspace root. */
export function commandOf(name: string, seed: number): string {
  return `SEEDS=${seed} npx vitest run packages/recipes/src/${name}${FILE_END}`;
}

/**
 * Bundles the test files with stand-ins for vitest and for the list of seeds. vitest wraps each use of an import, which
 * takes half of a simulation's time.
 */
export async function makeBundle(names: readonly string[]): Promise<Bundle> {
  // Not in a temporary directory: the bundle imports parts of vitest.
  const parent = join(HERE, 'dist');
  mkdirSync(parent, { recursive: true });
  const directory = mkdtempSync(join(parent, 'bundle-'));
  const remove = (): void => rmSync(directory, { recursive: true, force: true });
  try {
    const simulations = names.map((name): [string, string] => [name, join(SOURCES, name + FILE_END)]);
    const build = await rolldown({
      input: { worker: join(HERE, 'worker.ts'), ...Object.fromEntries(simulations) },
      platform: 'node',
      resolve: { conditionNames: ['source'] },
      transform: { target: 'node20' },
      plugins: [STAND_INS],
    });
    const { output } = await build.write({ dir: directory });
    await build.close();
    const hash = createHash('sha256');
    for (const file of output.toSorted((a, b) => (a.fileName < b.fileName ? -1 : 1))) {
      hash.update(`${file.fileName}\n${file.type === 'chunk' ? file.code : file.source}\n`);
    }
    return {
      hash: hash.digest('hex').slice(0, 16),
      workerFile: join(directory, 'worker.js'),
      fileOf: (name) => join(directory, `${name}.js`),
      remove,
    };
  } catch (error) {
    remove();
    throw error;
  }
}

const STAND_INS: Plugin = {
  name: 'stand-ins',
  resolveId(source, importer) {
    if (source === 'vitest') return importer === VITEST_STAND_IN ? { id: source, external: true } : VITEST_STAND_IN;
    if (/\/(testing\/)?seeds\.ts$/.test(source)) return importer === SEEDS_STAND_IN ? null : SEEDS_STAND_IN;
    return null;
  },
};

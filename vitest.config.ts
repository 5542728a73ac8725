import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Tests beside sources that start processes of what has been built. */
const NEED_A_BUILD = [
  'packages/testing/src/process.test.ts',
  'examples/examples.test.ts',
  'examples/install.test.ts',
  'torture/torture.test.ts',
];

export default defineConfig({
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'], externalConditions: ['source'] } },
  test: {
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // By itself vitest leaves one processor free, which is half of a machine that has two.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    projects: [
      {
        extends: true,
        test: {
          name: 'sources',
          // Half of their time went into loading the same modules again for each file. They share nothing that they change.
          isolate: false,
          include: [
            'packages/*/src/**/*.test.ts',
            'packages/recipes/campaign/*.test.ts',
            'examples/**/*.test.ts',
            'docs/check/*.test.ts',
            'bench/*.test.mjs',
            'torture/*.test.ts',
          ],
          exclude: ['packages/cli/**', ...NEED_A_BUILD],
        },
      },
      {
        // These start what has been built, so it is built first.
        extends: true,
        test: {
          name: 'processes',
          include: ['packages/cli/src/**/*.test.ts', 'interop/**/*.test.ts', ...NEED_A_BUILD],
          globalSetup: './interop/build.ts',
        },
      },
    ],
  },
});

import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'], externalConditions: ['source'] } },
  test: {
    testTimeout: 60_000,
    hookTimeout: 120_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'sources',
          include: ['packages/*/src/**/*.test.ts'],
          exclude: ['packages/cli/**', 'packages/testing/src/process.test.ts'],
        },
      },
      {
        // These start what has been built, so it is built first.
        extends: true,
        test: {
          name: 'processes',
          include: [
            'packages/cli/src/**/*.test.ts',
            'packages/testing/src/process.test.ts',
            'interop/**/*.test.ts',
            'examples/**/*.test.ts',
          ],
          globalSetup: './interop/build.ts',
        },
      },
    ],
  },
});

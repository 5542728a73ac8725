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
          exclude: ['packages/cli/**'],
        },
      },
      {
        // These start the built command, so it is built first.
        extends: true,
        test: {
          name: 'processes',
          include: ['packages/cli/src/**/*.test.ts', 'interop/**/*.test.ts'],
          globalSetup: './interop/build.ts',
        },
      },
    ],
  },
});

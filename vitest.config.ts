import { availableParallelism } from 'node:os';
import { env } from 'node:process';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Tests beside sources that start processes or threads of what has been built. */
const NEED_A_BUILD = [
  'packages/testing/src/process.test.ts',
  'packages/server/src/node/network.test.ts',
  'packages/server/src/node/{scans,threads}/*.test.ts',
  'packages/server/src/tls/{client-port,store-reader}.test.ts',
  'packages/server/src/unreadable-file.test.ts',
  'examples/examples.test.ts',
  'torture/torture.test.ts',
];

/**
 * For tests that start the command often: as a single executable, where there is one, because it starts faster. Tests in
 * `packages/`, and the long ones that are not in `LONG_COMMANDS`, start what has been built in any case.
 */
const SINGLE_FILE = env['MEERKAT_SINGLE_FILE'];
const WITH_SINGLE_FILE: Record<string, string> = SINGLE_FILE === undefined ? {} : { MEERKAT_EXECUTABLE: SINGLE_FILE };

/** `npm run test:long`: what takes long, and what does more of the same there (see the variable TESTS). */
const LONG = ['{packages/cli,interop,examples,torture}/**/*.long.test.ts', 'interop/{crash,differential}.test.ts'];
/** Of those, what starts the command most often. */
const LONG_COMMANDS = [
  'interop/{cli,console,doctor,ensemble,recipes}/*.long.test.ts',
  'interop/{admin-changes,attacks,backup,data-directory,drain,end-session,frames}.long.test.ts',
  'interop/{large-txns,limits,migration,offline,system-znodes}.long.test.ts',
  'interop/sasl/{kerberos,quorum,quorum-kerberos}.long.test.ts',
];
/** Of those, what starts no process. */
const LONG_SOURCES = [
  'packages/{core,simulator}/src/**/*.long.test.ts',
  'packages/recipes/src/**/*.simulation.test.ts',
  'packages/simulator/src/client-faults.test.ts',
];
/** Two more than there are processors: three of ten seconds of these tests are waits. In a group of their own, as vitest wants it then. */
const LONG_WORKERS = { maxWorkers: availableParallelism() + 2, sequence: { groupOrder: 1 } } as const;
/** Tests that spend their time in other packages, which they load as they were built. */
const FROM_PACKAGES = ['packages/{simulator,recipes}/src/**/*.test.ts', 'packages/recipes/campaign/*.test.ts'];
/** Builds first. Node.js itself loads the packages then: a simulation takes a fifth less processor time than from sources. */
const FROM_BUILD = {
  globalSetup: './interop/build.ts',
  server: { deps: { external: [/packages\/\w+\/dist\//] } },
};
const NOT_LONG = [...configDefaults.exclude, '**/*.long.test.ts'];

/** They take longest, and nothing should wait for them in the end of their project. */
const FIRST = [
  'interop/frames',
  'interop/bench',
  'interop/console/operating',
  'interop/cli/lock',
  'interop/ensemble/',
  'mutations/mutants',
  'simulator/src/growth',
  'simulator/src/coverage',
  'simulator/src/seeds/',
  'torture/torture',
  'interop/console/',
  'interop/cli/',
];

/** One project after the other: a worker that keeps its modules is ended when the next file is of another one. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification): number => {
      const rank = FIRST.findIndex((part) => moduleId.includes(part));
      return rank < 0 ? FIRST.length : rank;
    };
    const sorted = await super.sort(files);
    const projects = [...new Set(sorted.map(({ project }) => project))];
    return projects.flatMap((own) =>
      sorted.filter(({ project }) => project === own).sort((a, b) => rankOf(a) - rankOf(b)),
    );
  }
}

export default defineConfig({
  test: {
    // Far more than any test needs: a machine that has other work to do is no failure.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // The same for what `expect.poll` waits for; vitest's default is one second.
    expect: { poll: { timeout: 120_000 } },
    // Fewer collections of young objects, by one thread: the other processors have tests to run. 5 % less processor time.
    execArgv: ['--max-semi-space-size=32', '--single-threaded-gc'],
    // One more than there are processors: many tests wait for processes.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongestFirst },
    // Each project transforms modules by itself, and they have most of them in common.
    experimental: { fsModuleCache: true },
    projects: [
      {
        extends: true,
        // Packages find each other's sources, so nothing has to be built.
        resolve: { conditions: ['source'] },
        ssr: { resolve: { conditions: ['source'], externalConditions: ['source'] } },
        test: {
          name: 'sources',
          // Half of their time went into loading the same modules again for each file. They share nothing that they change.
          isolate: false,
          include: [
            'packages/*/src/**/*.test.ts',
            'examples/**/*.test.ts',
            'docs/check/*.test.ts',
            'bench/*.test.mjs',
            'torture/*.test.ts',
          ],
          exclude: [...NOT_LONG, 'packages/cli/**', ...NEED_A_BUILD, ...FROM_PACKAGES],
        },
      },
      {
        extends: true,
        test: {
          name: 'packages',
          ...FROM_BUILD,
          isolate: false,
          include: FROM_PACKAGES,
          exclude: NOT_LONG,
        },
      },
      {
        extends: true,
        test: {
          name: 'processes',
          ...FROM_BUILD,
          isolate: false,
          include: ['packages/cli/src/**/*.test.ts', 'interop/**/*.test.ts', ...NEED_A_BUILD],
          exclude: NOT_LONG,
          env: WITH_SINGLE_FILE,
        },
      },
      {
        extends: true,
        test: {
          name: 'long',
          ...FROM_BUILD,
          isolate: false,
          ...LONG_WORKERS,
          include: LONG,
          exclude: [...configDefaults.exclude, ...LONG_COMMANDS],
          env: { TESTS: 'long' },
        },
      },
      {
        extends: true,
        test: {
          name: 'long-commands',
          ...FROM_BUILD,
          isolate: false,
          ...LONG_WORKERS,
          include: LONG_COMMANDS,
          env: { TESTS: 'long', ...WITH_SINGLE_FILE },
        },
      },
      {
        extends: true,
        test: {
          name: 'long-sources',
          ...FROM_BUILD,
          isolate: false,
          ...LONG_WORKERS,
          include: LONG_SOURCES,
          env: { TESTS: 'long' },
        },
      },
    ],
  },
});

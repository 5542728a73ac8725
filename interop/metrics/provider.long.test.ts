import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Ensemble, type Member } from '../ensemble/ensemble.ts';
import { CLASS_PATH, SHORT_JAVA } from '../harness/java.ts';
import { describeWith } from '../harness/peers.ts';
import { ServerProcess } from '../harness/server-process.ts';

/* Compares names and types on the Prometheus page with those that Apache's server registers with its provider. */

const SOURCE = fileURLToPath(new URL('./RecordingProvider.java', import.meta.url));

/** By name: the type, and the quantiles of summaries. */
type Families = ReadonlyMap<string, string>;

/** Quantiles of Apache's Prometheus provider for the two levels of detail. */
const QUANTILES: Readonly<Record<string, string>> = { BASIC: '0.5', ADVANCED: '0.5 0.9 0.99' };

/** Metrics that the server has registered and not removed. */
function readRecord(directory: string): Families {
  const families = new Map<string, string>();
  for (const line of readFileSync(join(directory, 'metrics.txt'), 'utf8').trim().split('\n')) {
    const [sign, kind = '', name = '', level = ''] = line.split(' ');
    if (sign === '-') families.delete(name);
    else families.set(name, kind === 'summary' ? `summary ${QUANTILES[level]}` : kind);
  }
  return families;
}

function readPage(text: string): Families {
  const families = new Map<string, string>();
  for (const family of text.split(/^(?=# HELP )/m)) {
    const [, name = '', type = ''] = /^# TYPE (\w+) (\w+)$/m.exec(family) ?? [];
    const quantiles = new Set([...family.matchAll(/quantile="([^"]*)"/g)].map(([, quantile]) => quantile));
    if (name !== '') families.set(name, [type, ...quantiles].join(' '));
  }
  return families;
}

/** Our own metrics, and those of ZooKeeper 3.9 that 3.8 does not have. */
const OURS = /^(?:meerkat|process|jvm_memory)_|^ssl_\w+_days_left$/;
const NEWER = ['restore_error_count', 'restore_rate_limited_count', 'restore_time'].concat([
  'snapshot_error_count',
  'snapshot_rate_limited_count',
]);

/** Quantiles cannot be compared for an empty set, which has no samples. */
function without(quantiles: string, page: string | undefined): string {
  return page === 'summary' ? 'summary' : quantiles;
}

function expectSame(theirs: Families, ours: Families): void {
  expect(theirs.size).toBeGreaterThan(100);
  const names = [...ours.keys()].filter((name) => !OURS.test(name) && !NEWER.includes(name));
  const page = Object.fromEntries(names.map((name) => [name, ours.get(name)]).toSorted());
  const record = Object.fromEntries(
    [...theirs].map(([name, type]) => [name, without(type, ours.get(name))]).toSorted(),
  );
  expect(page).toEqual(record);
}

describeWith(['apache', 'javac'], 'the Prometheus page', () => {
  const directory = mkdtempSync(join(tmpdir(), 'metrics-provider-'));
  const jar = join(directory, 'provider.jar');
  const env = { JAVA_TOOL_OPTIONS: `-javaagent:${jar}` };
  const config = { 'metricsProvider.className': 'RecordingProvider', 'metricsProvider.recordTo': 'metrics.txt' };

  beforeAll(() => {
    const classes = join(directory, 'classes');
    mkdirSync(classes);
    writeFileSync(join(directory, 'manifest'), 'Premain-Class: RecordingProvider\n');
    execFileSync('javac', [...SHORT_JAVA.map((flag) => `-J${flag}`), '-d', classes, '-cp', CLASS_PATH, SOURCE]);
    execFileSync('jar', ['cfm', jar, join(directory, 'manifest'), '-C', classes, '.']);
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  test('of a standalone server has the names and types that Apache’s server registers', async () => {
    await using apache = await ServerProcess.start('apache', { config, env });
    await using meerkat = await ServerProcess.start('meerkat', { hasAdmin: true });
    expectSame(readRecord(apache.directory), readPage(await meerkat.askAdmin('/metrics')));
  });

  test('of a leader, a follower and an observer has those of Apache’s server in that role', async () => {
    const theirs = await Ensemble.start(
      [
        { kind: 'apache', env },
        { kind: 'apache', env },
        { kind: 'apache', env, isObserver: true },
      ],
      config,
    );
    const place = { kind: 'meerkat', hasAdmin: true } as const;
    const ours = await Ensemble.start([place, place, { ...place, isObserver: true }]);
    try {
      const byRole = async (ensemble: Ensemble): Promise<Readonly<Record<string, Member>>> => {
        await ensemble.leader();
        const roles = await Promise.all(ensemble.members.map((member) => ensemble.modeOf(member)));
        return Object.fromEntries(ensemble.members.map((member, i) => [roles[i], member]));
      };
      const [apache, meerkat] = [await byRole(theirs), await byRole(ours)];
      expect(Object.keys(meerkat).toSorted()).toEqual(['follower', 'leader', 'observer']);
      for (const [role, { server }] of Object.entries(meerkat)) {
        const member = apache[role];
        expect(member, role).toBeDefined();
        expectSame(readRecord(member!.server.directory), readPage(await server.askAdmin('/metrics')));
      }
    } finally {
      await theirs.dispose();
      await ours.dispose();
    }
  });
});

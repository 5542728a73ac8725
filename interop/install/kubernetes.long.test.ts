import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { readZooCfg } from '@meerkat/server';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HERE = fileURLToPath(new URL('.', import.meta.url));
const TOOLS = join(ROOT, 'deploy/tools/package.json');
const MANIFEST = readFileSync(join(ROOT, 'deploy/kubernetes/meerkat.yaml'), 'utf8');

interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
}

/** A class of `kubernetes-models`, generated from Kubernetes' OpenAPI document. */
type Model = new (value: KubernetesObject) => { validate(): void };

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'meerkat-kubernetes-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

describeWith(['packagingTools'], 'the manifests for Kubernetes', () => {
  const require = createRequire(TOOLS);

  function readObjects(): readonly KubernetesObject[] {
    const { parseAllDocuments } = require('yaml') as {
      parseAllDocuments(text: string): readonly { toJSON(): KubernetesObject }[];
    };
    return parseAllDocuments(MANIFEST).map((document) => document.toJSON());
  }

  test('conform to the schemas of Kubernetes', async () => {
    const kinds: string[] = [];
    for (const object of readObjects()) {
      const file = join(ROOT, 'deploy/tools/node_modules/kubernetes-models', object.apiVersion, `${object.kind}.js`);
      const models = (await import(pathToFileURL(file).href)) as Readonly<Record<string, Model>>;
      const Kind = models[object.kind];
      if (Kind === undefined) throw new Error(`${file} has no ${object.kind}`);
      new Kind(object).validate();
      kinds.push(object.kind);
    }
    expect(kinds).toEqual(['Service', 'Service', 'PodDisruptionBudget', 'NetworkPolicy', 'StatefulSet']);
  });

  test('have no unknown fields', () => {
    // The schemas allow unknown fields; the compiler does not.
    const types: Readonly<Record<string, string>> = { v1: 'core/v1' };
    const lines = readObjects().map((object, i) => {
      const { apiVersion, kind } = object;
      const module = types[apiVersion] ?? apiVersion.replace('.k8s.io', '');
      return `import type { ${kind} as Kind${i} } from 'kubernetes-types/${module}';\nexport const object${i}: Kind${i} = ${JSON.stringify(object)};`;
    });
    const compile = (text: string): string => {
      writeFileSync(join(directory, 'objects.ts'), text);
      const paths = { 'kubernetes-types/*': [join(ROOT, 'deploy/tools/node_modules/kubernetes-types/*')] };
      const compilerOptions = {
        noEmit: true,
        strict: true,
        module: 'esnext',
        moduleResolution: 'bundler',
        types: [],
        paths,
      };
      writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['objects.ts'] }));
      return spawnSync('npx', ['tsc', '-p', directory], { cwd: ROOT, encoding: 'utf8' }).stdout;
    };
    expect(compile(lines.join('\n'))).toBe('');
    expect(compile(lines.join('\n').replace('readinessProbe', 'readynessProbe'))).toContain(
      '"readynessProbe"\' does not exist',
    );
  });

  test('produce a configuration of three members that the server accepts without a warning', () => {
    const set = readObjects().at(-1) as unknown as {
      readonly spec: {
        readonly template: {
          readonly spec: {
            readonly containers: readonly {
              readonly env: readonly { readonly name: string; readonly value: string }[];
            }[];
          };
        };
      };
    };
    const variables = Object.fromEntries(
      (set.spec.template.spec.containers[0]?.env ?? []).map(({ name, value }) => [name, value]),
    );
    const image = readFileSync(join(ROOT, 'deploy/container/Dockerfile'), 'utf8');
    const defaults = Object.fromEntries(
      [...image.matchAll(/(ZOO_[A-Z_]+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]),
    );
    const env = {
      PATH: process.env['PATH'],
      ...defaults,
      ...variables,
      ZOO_CONF_DIR: directory,
      ZOO_DATA_DIR: directory,
      ZOO_MY_ID: '2',
    };
    expect(
      spawnSync(join(ROOT, 'deploy/container/docker-entrypoint.sh'), ['true'], { env, encoding: 'utf8' }),
    ).toMatchObject({ status: 0 });
    const text = readFileSync(join(directory, 'zoo.cfg'), 'utf8');
    const { core, warnings } = readZooCfg({ text, file: 'zoo.cfg', workingDirectory: directory });
    expect(warnings).toEqual([]);
    expect(core.serverId).toBe(2);
    expect(core.ensemble?.membership.members.map(({ serverId }) => serverId)).toEqual([1, 2, 3]);
  });
});

/** Runs the script with the fake kubectl. @returns the restarted pods, in order */
function roll(
  leader: string,
  revisions: readonly string[],
  breaks = '',
): { restarted: string[]; status: number | null; stderr: string } {
  const cluster = join(directory, 'cluster');
  for (const [i, revision] of revisions.entries()) {
    const pod = join(cluster, `pods/meerkat-${i}`);
    mkdirSync(pod, { recursive: true });
    writeFileSync(join(pod, 'revision'), revision);
    writeFileSync(join(pod, 'uid'), `meerkat-${i}`);
  }
  writeFileSync(join(cluster, 'leader'), leader);
  writeFileSync(join(cluster, 'ready'), '3');
  writeFileSync(join(cluster, 'log'), '');
  copyFileSync(join(HERE, 'kubectl.sh'), join(directory, 'kubectl'));
  const env = { PATH: `${directory}:${process.env['PATH']}`, CLUSTER: cluster, BREAKS: breaks };
  const script = join(ROOT, 'deploy/kubernetes/rolling-update.sh');
  const { status, stderr } = spawnSync(script, ['--timeout', '1'], { env, encoding: 'utf8' });
  const restarted = readFileSync(join(cluster, 'log'), 'utf8').split('\n').filter(Boolean);
  return { restarted, status, stderr };
}

test.each([
  ['meerkat-2', ['meerkat-1', 'meerkat-0', 'meerkat-2']],
  ['meerkat-1', ['meerkat-2', 'meerkat-0', 'meerkat-1']],
  ['meerkat-0', ['meerkat-2', 'meerkat-1', 'meerkat-0']],
])('a rolling update under leader %s restarts it last', (leader, order) => {
  expect(roll(leader, ['old', 'old', 'old'])).toMatchObject({ status: 0, restarted: order });
});

test('an interrupted rolling update resumes with the remaining pods', () => {
  expect(roll('meerkat-2', ['old', 'new', 'old'])).toMatchObject({ status: 0, restarted: ['meerkat-0', 'meerkat-2'] });
});

test('a rolling update stops when a member does not become ready, before the quorum is lost', () => {
  const { status, restarted, stderr } = roll('meerkat-2', ['old', 'old', 'old'], 'meerkat-1');
  expect({ status, restarted }).toEqual({ status: 1, restarted: ['meerkat-1'] });
  expect(stderr).toContain('only 2 of 3 members of meerkat are ready');
});

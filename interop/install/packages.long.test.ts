import { spawn } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { TestServer } from '@meerkat/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { LocalRegistry } from './local-registry.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TOOLS = join(ROOT, 'deploy/tools/node_modules');
const CONSUMER = fileURLToPath(new URL('./consumer/', import.meta.url));
const NAMES = readdirSync(join(ROOT, 'packages'));

/** Packages that programs import; type-checked with every TypeScript version supported by docs/client/README.md. */
const LIBRARIES = ['protocol', 'client', 'recipes', 'testing', 'simulator'];
/** The oldest supported version, and ours. */
const COMPILERS = {
  '5.2': join(TOOLS, 'typescript-5.2/bin/tsc'),
  newest: join(ROOT, 'node_modules/typescript/bin/tsc'),
};

interface Ended {
  readonly status: number | null;
  readonly output: string;
}

async function run(
  program: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Ended> {
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const status = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { status: await status, output: output + errors };
}

describeWith(['packagingTools'], 'the published packages', () => {
  /** Directory with their files, and a project with them installed. */
  let directory = '';
  let registry: LocalRegistry;
  let published: Ended;
  const fileOf = (name: string): string => join(directory, `meerkat-${name}-0.1.0.tgz`);

  function npm(args: readonly string[], cwd: string): Promise<Ended> {
    // Bypasses the proxy for the registry.
    const NO_PROXY = ['127.0.0.1', process.env['NO_PROXY'] ?? process.env['no_proxy'] ?? ''].filter(Boolean).join();
    return run('npm', args, cwd, { ...process.env, NO_PROXY });
  }

  // Packs them once.
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'meerkat-packages-'));
    registry = await LocalRegistry.start(directory);
    // A registry in a manifest would take precedence.
    for (const name of NAMES)
      expect(readManifest(join(ROOT, 'packages', name)).publishConfig).not.toHaveProperty('registry');
    // Provenance can only be created by the release build service.
    const flags = registry.flagsToPublish('@meerkat');
    published = await npm(['publish', '--workspaces', '--provenance=false', ...flags], ROOT);
  });
  beforeAll(async () => {
    writeFileSync(join(directory, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }));
    const names = NAMES.map((name) => `@meerkat/${name}@0.1.0`);
    const flags = ['--no-audit', '--no-fund', '--prefer-offline', registry.flagFor('@meerkat')];
    const installed = await npm(['install', ...flags, ...names], directory);
    expect(installed.status, `${installed.output}\n${published.output}`).toBe(0);
    mkdirSync(join(directory, 'node_modules/@types'), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules/@types/node'), join(directory, 'node_modules/@types/node'));
  });
  afterAll(async () => {
    await registry?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });

  test('pass publint and attw, and have about the documented size', async () => {
    const check = join(ROOT, 'deploy/tools/check-packages.mjs');
    expect(await run(process.execPath, [check, ...NAMES.map(fileOf)], ROOT)).toEqual({ status: 0, output: '' });
    const page = readPage('docs/operations.md');
    const [, list = ''] = /packed, in KB: ([^.]*)\./.exec(page) ?? [];
    const listed = new Map(list.split(',').map((part) => part.trim().split(' ') as [string, string]));
    expect([...listed.keys()].toSorted()).toEqual(NAMES.toSorted());
    for (const [name, kilobytes] of listed) {
      const ratio = statSync(fileOf(name)).size / 1000 / Number(kilobytes);
      expect(Math.abs(Math.log2(ratio)), `${name}: ${ratio} of what docs/operations.md tells`).toBeLessThan(0.5);
    }
  });

  test('are all published', () => {
    const { status, output } = published;
    expect(status, output).toBe(0);
    for (const name of NAMES) expect(output).toContain(`+ @meerkat/${name}@0.1.0`);
  });

  // Each compiler and each resolution once.
  test.each([
    { version: '5.2', compiler: COMPILERS['5.2'], moduleResolution: 'node16', module: 'node16' },
    { version: 'newest', compiler: COMPILERS.newest, moduleResolution: 'bundler', module: 'esnext' },
  ])(
    'their types and the examples compile with TypeScript $version and moduleResolution $moduleResolution',
    async ({ version, compiler, ...resolution }) => {
      const project = join(directory, `types-${version}`);
      mkdirSync(project);
      cpSync(join(ROOT, 'examples'), project, {
        recursive: true,
        filter: (path) => path.endsWith('/examples') || /(?<!\.test)\.ts$/.test(path),
      });
      const entries = LIBRARIES.flatMap((name) => entriesOf(join(directory, 'node_modules/@meerkat', name)));
      expect(entries).toContain('@meerkat/recipes');
      const imports = entries.map((entry, i) => `export * as entry${i} from '${entry}';\n`);
      writeFileSync(join(project, 'entries.ts'), imports.join(''));
      expect(readPage('docs/client/README.md')).toContain('TypeScript (5.2 or newer) needs `@types/node`');
      const compilerOptions = {
        ...resolution,
        strict: true,
        skipLibCheck: false,
        target: 'es2022',
        lib: ['es2023'],
        types: ['node'],
        noEmit: true,
      };
      writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
      expect(await run(process.execPath, [compiler, '-p', project], project)).toEqual({ status: 0, output: '' });
    },
  );

  test('the client and recipes can be installed from files without a registry; programs compile and run', async () => {
    const project = join(directory, 'newcomer');
    mkdirSync(project);
    writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'newcomer', private: true, type: 'module' }));
    const files = ['protocol', 'client', 'recipes'].map(fileOf);
    const installed = await npm(['install', '--offline', '--no-audit', '--no-fund', ...files], project);
    expect(installed.status, installed.output).toBe(0);
    const modules = join(project, 'node_modules');
    expect(readdirSync(modules).filter((name) => !name.startsWith('.'))).toEqual(['@meerkat']);

    // Other prerequisites in the README.
    mkdirSync(join(modules, '@types'));
    symlinkSync(join(ROOT, 'node_modules/@types/node'), join(modules, '@types/node'));
    const compilerOptions = { strict: true, module: 'nodenext', target: 'es2023', types: ['node'], outDir: 'dist' };
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
    copyFileSync(join(ROOT, 'examples/first-steps.ts'), join(project, 'first-steps.ts'));
    copyFileSync(join(CONSUMER, 'lock.ts'), join(project, 'lock.ts'));
    expect(await run(process.execPath, [COMPILERS.newest], project)).toEqual({ status: 0, output: '' });

    await using server = await TestServer.start();
    const env = { ...process.env, ZOOKEEPER: server.connectString };
    const start = (program: string): Promise<Ended> => run(process.execPath, [program], project, env);
    expect(await start('dist/first-steps.js')).toEqual({ status: 0, output: 'hello, version 0\nchanged\n' });
    expect(await start('dist/lock.js')).toEqual({ status: 0, output: 'true\n' });
  });

  test('are used by a program on Node.js 20, 22, 24 and 26; the client also on Bun and Deno', async () => {
    for (const name of ['main.ts', 'client.ts']) copyFileSync(join(CONSUMER, name), join(directory, name));
    const compilerOptions = { strict: true, module: 'nodenext', target: 'es2022', types: ['node'] };
    writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
    expect(await run(process.execPath, [COMPILERS.newest, '-p', directory], directory)).toEqual({
      status: 0,
      output: '',
    });

    const { output } = await run(join(directory, 'node_modules/.bin/meerkat'), ['--version'], directory);
    expect(output).toBe(`${readManifest(join(ROOT, 'packages/cli')).version}\n`);

    await using server = await TestServer.start();
    const events = { status: 0, output: 'changed\ngood morning\n' };
    for (const version of ['20', '22', '24', '26']) {
      const node = join(TOOLS, `node-${version}/bin/node`);
      expect(await run(node, ['main.js'], directory), version).toEqual({ status: 0, output: 'hello, version 0\n' });
      expect(await run(node, ['client.js', server.connectString], directory), version).toEqual(events);
    }
    const bun = join(TOOLS, '@oven/bun-linux-x64/bin/bun');
    expect(await run(bun, ['client.js', server.connectString], directory), 'bun').toEqual(events);
    const deno = join(TOOLS, '@deno/linux-x64-glibc/deno');
    const permissions = ['run', '--no-prompt', '--allow-net=127.0.0.1', '--allow-env', '--allow-read', '--no-remote'];
    expect(await run(deno, [...permissions, 'client.js', server.connectString], directory), 'deno').toEqual(events);
  });
});

function readPage(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly publishConfig: object;
  readonly exports?: Readonly<Record<string, string | object>>;
}

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
}

/** The entry points of the package in a folder. */
function entriesOf(folder: string): string[] {
  const { name, exports = {} } = readManifest(folder);
  return Object.entries(exports).flatMap(([path, entry]) => (typeof entry === 'string' ? [] : [name + path.slice(1)]));
}

/**
 * Architecture rules that the compiler cannot enforce: which folder may import which, and what the deterministic core
 * must not use. See ARCHITECTURE.md, "Three rings".
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const PACKAGES = fileURLToPath(new URL('../../', import.meta.url));

interface SourceFile {
  /** Below `packages`, for instance `core/src/tree/data-tree.ts`. */
  readonly path: string;
  readonly text: string;
  /** The text without comments and without the contents of strings. */
  readonly code: string;
  readonly imports: readonly Import[];
}

interface Import {
  /** Below `packages` for a file, otherwise the package's name. */
  readonly target: string;
  readonly isTypeOnly: boolean;
}

const SOURCES = readdirSync(PACKAGES)
  .flatMap((name) => filesBelow(join(PACKAGES, name, 'src')))
  .map(readSource);

/** Folders of the inner ring: state machines that know records and zxids, but no bytes or disk blocks. */
const STATE_MACHINES = ['tree', 'watch', 'session', 'request', 'election', 'zab'];
/** Every ring of the core may import it; it imports nothing of the core. */
const BASE = 'core/src/base/';
/** Types whose values are proofs, with the only file that may cast to them. */
const PROOFS = {
  Durable: 'core/src/base/durable.ts',
  Agreed: 'core/src/zab/committed.ts',
  Committed: 'core/src/zab/committed.ts',
  Acknowledgement: 'core/src/zab/acknowledgement.ts',
  QuorumProof: 'core/src/election/electorate.ts',
};
/** Functions that make a proof from what only their callers can know, with the allowed callers. */
const WITNESSES = {
  onDisk: ['core/src/storage/'],
  onDiskOfLearner: ['core/src/zab/leader.ts', 'core/src/zab/leader-broadcast.ts', 'core/src/zab/leader-formation.ts'],
  withoutLog: ['core/src/zab/learned-history.ts'],
  agreedByLeader: ['core/src/zab/received-proposals.ts'],
  commitAlone: ['core/src/zab/solo.ts'],
};
/** Files that cast a number to a zxid: arithmetic, parsing, the empty vote, a znode table column, an error's text. */
const ZXID_MAKERS = [
  'protocol/src/zxid.ts',
  'protocol/src/records/election.ts',
  'core/src/tree/data-tree.ts',
  'core/src/storage/log-sequence.ts',
];

/** Names that packages export for different types, and what they stand for. */
const TYPES_OF_ONE_NAME = {
  'all: Configuration': 'the recipe; the configuration of an embedded server',
  'all: TlsOptions': 'of a client; of a server',
  'all: ZnodeState': 'at a point in the past; the state that a checker expects',
};

describe('the three rings', () => {
  test('state machines import neither links nor storage', () => {
    const allowed = [...STATE_MACHINES.map((folder) => `core/src/${folder}/`), BASE];
    const violations = sourcesOf(...STATE_MACHINES.map((folder) => `core/src/${folder}/`)).flatMap((source) =>
      source.imports
        .filter(({ target }) => target.startsWith('core/') && !allowed.some((prefix) => target.startsWith(prefix)))
        .map(({ target }) => `${source.path} imports ${target}`),
    );
    expect(violations).toEqual([]);
  });

  test('the base of the core imports nothing of the core', () => {
    const violations = sourcesOf(BASE).flatMap(({ path, imports }) =>
      imports
        .filter(({ target }) => target.startsWith('core/') && !target.startsWith(BASE))
        .map(({ target }) => `${path} imports ${target}`),
    );
    expect(violations).toEqual([]);
  });

  test('the web page and the backend of the console share only message types', () => {
    const violations = sourcesOf('console/src/web/', 'console/src/backend/').flatMap(({ path, imports }) => {
      const own = path.split('/').slice(0, 3).join('/');
      return imports
        .filter(({ target }) => target.startsWith('console/') && !target.startsWith(`${own}/`))
        .filter(({ target, isTypeOnly }) => !target.startsWith('console/src/api/') || !isTypeOnly)
        .map(({ target }) => `${path} imports ${target}`);
    });
    expect(violations).toEqual([]);
  });

  test('packages only depend inwards', () => {
    const allowed: Readonly<Record<string, readonly string[]>> = {
      protocol: [],
      core: ['protocol'],
      client: ['protocol'],
      simulator: ['core', 'protocol', 'client'],
      recipes: ['client'],
      server: ['core', 'protocol', 'client', 'console'],
      testing: ['server', 'client', 'core', 'protocol'],
      console: ['client'],
      cli: ['server', 'core', 'client', 'recipes', 'console'],
    };
    const violations = SOURCES.flatMap(({ path, imports }) => {
      const from = packageOf(path);
      return imports
        .filter(({ target }) => target.startsWith('@meerkat/') || packageOf(target) in allowed)
        .map(({ target }) => target.replace('@meerkat/', '').split('/')[0] ?? '')
        .filter((to) => to !== from && !allowed[from]?.includes(to))
        .map((to) => `${path} imports ${to}`);
    });
    expect(violations).toEqual([]);
  });

  test("the server uses the client's Kerberos module and nothing else of it", () => {
    const imports = sourcesOf('server/').flatMap(({ imports }) => imports.map(({ target }) => target));
    const used = new Set(imports.filter((target) => target.startsWith('@meerkat/client')));
    expect([...used]).toEqual(['@meerkat/client/kerberos']);
  });

  test('the core and the protocol import neither Node.js modules nor libraries', () => {
    const violations = sourcesOf('core/', 'protocol/').flatMap(({ path, imports }) =>
      imports
        .filter(({ target }) => target !== '@meerkat/protocol' && !/^(core|protocol)\//.test(target))
        .map(({ target }) => `${path} imports ${target}`),
    );
    expect(violations).toEqual([]);
  });

  test('the tests of recipes create their virtual world in fleet.ts only', () => {
    const makers = everyFileBelow(join(PACKAGES, 'recipes'))
      .map(readSource)
      .filter(({ code }) => /\bnew VirtualWorld\b/.test(code));
    expect(makers.map(({ path }) => path)).toEqual(['recipes/src/testing/fleet.ts']);
  });

  test('there are no import cycles, including type imports and tests', () => {
    const everything = ['packages', 'interop', 'examples', 'torture', 'bench', 'docs/check']
      .flatMap((folder) => everyFileBelow(join(PACKAGES, '..', folder)))
      .map(readSource);
    expect(everything.length).toBeGreaterThan(1000);
    const importsOf = new Map(everything.map(({ path, imports }) => [path, imports.map(({ target }) => target)]));
    const circles: string[] = [];
    const done = new Set<string>();
    const visit = (path: string, trail: readonly string[]): void => {
      if (trail.includes(path)) circles.push([...trail.slice(trail.indexOf(path)), path].join(' → '));
      if (done.has(path) || trail.includes(path)) return;
      for (const target of importsOf.get(path) ?? []) visit(target, [...trail, path]);
      done.add(path);
    };
    for (const path of importsOf.keys()) visit(path, []);
    expect(circles).toEqual([]);
  });
});

describe('determinism', () => {
  test.each([
    ['their own randomness', /\bMath\s*\.\s*random\b|\bcrypto\b/],
    ['a system clock', /\bDate\b|\bperformance\b/],
    ['timers', /\bset(Timeout|Interval|Immediate)\b|\bqueueMicrotask\b/],
    ['promises', /\basync\b|\bawait\b|\bPromise\b/],
  ])('the core and the protocol do not use %s', (_what, pattern) => {
    const violations = sourcesOf('core/', 'protocol/').flatMap((source) => linesWith(source, pattern));
    expect(violations).toEqual([]);
  });
});

describe('types', () => {
  test.each(Object.entries(PROOFS))('%s is cast to in one file only', (name, maker) => {
    const cast = new RegExp(`\\bas\\s+${name}\\b|[=(,]\\s*<\\s*${name}\\b`);
    const casts = SOURCES.flatMap((source) => linesWith(source, cast));
    expect(casts.filter((line) => !line.startsWith(`${maker}:`))).toEqual([]);
    expect(casts.length).toBeGreaterThan(0);
  });

  test.each(Object.entries(WITNESSES))('%s has only the allowed callers', (name, callers) => {
    const calls = SOURCES.flatMap((source) => linesWith(source, new RegExp(`(?<!function )\\b${name}\\(`)));
    expect(calls.filter((line) => !callers.some((caller) => line.startsWith(caller)))).toEqual([]);
    expect(calls.length).toBeGreaterThan(0);
  });

  test('type names are unique within a package and among all exports of packages', () => {
    const places = new Map<string, string[]>();
    const offered = new Map<string, string>();
    for (const { path, code } of SOURCES) {
      const name = packageOf(path);
      if (path.endsWith('/index.ts')) offered.set(name, (offered.get(name) ?? '') + code);
    }
    for (const { path, code } of SOURCES) {
      for (const [, name = ''] of code.matchAll(
        /^export (?:abstract |declare )*(?:class|interface|type|enum) (\w+)/gm,
      )) {
        const isOffered = new RegExp(`\\b${name}\\b`).test(offered.get(packageOf(path)) ?? '');
        for (const room of isOffered ? [packageOf(path), 'all'] : [packageOf(path)]) {
          const key = `${room}: ${name}`;
          places.set(key, [...(places.get(key) ?? []), path]);
        }
      }
    }
    const twice = [...places].filter(([key, paths]) => paths.length > 1 && !(key in TYPES_OF_ONE_NAME));
    expect(twice.map(([key, paths]) => `${key} is ${paths.join(' and ')}`)).toEqual([]);
    expect(Object.keys(TYPES_OF_ONE_NAME).filter((key) => (places.get(key)?.length ?? 0) < 2)).toEqual([]);
    expect(places.size).toBeGreaterThan(1000);
  });

  test('no other file casts numbers to zxids', () => {
    const casts = sourcesOf('core/', 'protocol/').flatMap((source) => linesWith(source, /\bas Zxid\b/));
    expect(casts.filter((line) => !ZXID_MAKERS.some((maker) => line.startsWith(`${maker}:`)))).toEqual([]);
  });

  test('no `any` and no @ts-ignore', () => {
    const violations = SOURCES.flatMap((source) => [
      ...linesWith(source, /(?::|\bas|<)\s*any\b/),
      ...(/@ts-(ignore|expect-error|nocheck)/.test(source.text) ? [source.path] : []),
    ]);
    expect(violations).toEqual([]);
  });
});

test('these checks find the sources', () => {
  expect(SOURCES.length).toBeGreaterThan(60);
  const solo = SOURCES.find(({ path }) => path === 'core/src/zab/solo.ts');
  expect(solo?.imports).toContainEqual({ target: 'core/src/base/durable.ts', isTypeOnly: true });
  expect(solo?.imports).toContainEqual({ target: 'core/src/base/assert.ts', isTypeOnly: false });
  expect(codeOf(`a('// no comment'); /* b */ c(\`d\${e}\`); // f`)).not.toMatch(/[bdf]|no comment/);
});

function sourcesOf(...prefixes: readonly string[]): readonly SourceFile[] {
  return SOURCES.filter(({ path }) => prefixes.some((prefix) => path.startsWith(prefix)));
}

function packageOf(path: string): string {
  return path.slice(0, path.indexOf('/'));
}

/** Every source except tests and test helpers. */
function filesBelow(directory: string): string[] {
  return everyFileBelow(directory).filter((path) => !/\.test\.tsx?$|\/src\/(?:.+\/)?testing\//.test(path));
}

/** Every source that is not compiler output. */
function everyFileBelow(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return ['node_modules', 'dist'].includes(entry.name) ? [] : everyFileBelow(path);
    return /(?<!\.d)\.tsx?$/.test(entry.name) ? [path] : [];
  });
}

function readSource(path: string): SourceFile {
  const text = readFileSync(path, 'utf8');
  const statements = text.matchAll(/^(?:import|export)\s+(type\s)?([^'";]*?from\s+)?['"]([^'"]+)['"]/gm);
  const found = [...statements].map(([, type, names, specifier = '']) => ({
    specifier,
    isTypeOnly: type !== undefined || isListOfTypes(names ?? ''),
  }));
  const later = text.matchAll(/^(?!\s*(?:\*|\/\/)).*?\bimport\('([^']+)'\)/gm);
  for (const [, specifier = ''] of later) found.push({ specifier, isTypeOnly: false });
  const imports = found.map(({ specifier, isTypeOnly }) => ({
    target: specifier.startsWith('.') ? relative(PACKAGES, join(dirname(path), specifier)) : specifier,
    isTypeOnly,
  }));
  return { path: relative(PACKAGES, path), text, code: codeOf(text), imports };
}

/** True for `{ type A, type B } from`, which is erased at compile time. */
function isListOfTypes(names: string): boolean {
  const list = /^\{([^}]*)\}/.exec(names.trim())?.[1];
  const parts = list?.split(',').map((name) => name.trim()) ?? [''];
  return parts.filter((name) => name !== '').every((name) => name.startsWith('type ')) && parts[0] !== '';
}

/** Replaces comments and strings by blanks; line numbers stay the same. */
function codeOf(text: string): string {
  const commentOrString = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g;
  return text.replace(commentOrString, (match) => match.replace(/[^\n]/g, ' '));
}

function linesWith({ path, code }: SourceFile, pattern: RegExp): readonly string[] {
  return code.split('\n').flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}: ${line.trim()}`] : []));
}

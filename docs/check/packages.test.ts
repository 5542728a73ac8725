import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findSnippets, pageExists, ROOT, readPage } from './pages.ts';

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly engines: { readonly node: string };
  readonly files: readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly publishConfig?: object;
  readonly sideEffects?: boolean;
  readonly keywords?: readonly string[];
  readonly exports?: object;
}

/** Packages that programs import. The others are parts of these, or the command. */
const LIBRARIES = ['client', 'protocol', 'recipes', 'simulator', 'testing'];

const PACKAGES = readdirSync(join(ROOT, 'packages')).filter((folder) => readManifest(folder).private !== true);

test('finds the published packages', () => {
  expect(PACKAGES).toEqual(expect.arrayContaining(LIBRARIES));
});

test.each(PACKAGES)('%s is published publicly, with provenance', (folder) => {
  expect(readManifest(folder).publishConfig).toEqual({ access: 'public', provenance: true });
});

test.each(LIBRARIES)('%s is free of side effects, has keywords, and exports its package.json', (folder) => {
  const { sideEffects, keywords, exports } = readManifest(folder);
  expect(sideEffects).toBe(false);
  expect(keywords).toContain('zookeeper');
  expect(exports).toHaveProperty(['./package.json'], './package.json');
});

/** A README is the page of its package in the registry, without the rest of the repository. */
describe.each(PACKAGES)('the README of %s', (folder) => {
  const page = `packages/${folder}/README.md`;
  const { name, engines, files, dependencies = {} } = readManifest(folder);
  const text = readPage(page);

  test('states how to install it, the Node.js versions, and its dependencies', () => {
    expect(text.startsWith(`# ${name}\n`)).toBe(true);
    expect(text).toMatch(new RegExp(`^ {4}npm install (?:\\S+ )*${name}(?: |$)`, 'm'));
    expect(text).toContain(`Node.js ${engines.node.replace('>=', '')}`);
    for (const dependency of Object.keys(dependencies)) expect(text).toContain(dependency);
    if (LIBRARIES.includes(folder)) expect(findSnippets(page)).not.toEqual([]);
  });

  test('has no links to files outside of the package', () => {
    for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(?:https:|#)/.test(target)) continue;
      const [first = ''] = target.split('/');
      expect(files.includes(first) && existsSync(join(ROOT, 'packages', folder, target)), target).toBe(true);
    }
  });

  test('names existing pages of the repository', () => {
    for (const [, path = ''] of text.matchAll(/`((?:docs|examples|packages)\/\S*|[A-Z]+\.md)`/g)) {
      expect(pageExists(path), path).toBe(true);
    }
  });
});

test("the client's page packs and installs all packages that depend on each other", () => {
  const page = readPage('docs/client/README.md');
  const packed = [...page.matchAll(/-w packages\/(\w+)/g)].map(([, folder = '']) => folder);
  const installed = [...page.matchAll(/meerkat-\{([\w,]+)\}/g)].flatMap(([, folders = '']) => folders.split(','));
  expect(packed).toContain('testing');
  expect(installed).toEqual(packed);
  for (const folder of packed) {
    const { dependencies = {}, peerDependencies = {} } = readManifest(folder);
    for (const name of Object.keys({ ...dependencies, ...peerDependencies })) {
      if (name.startsWith('@meerkat/')) expect(packed, `for ${folder}`).toContain(name.slice('@meerkat/'.length));
    }
  }
});

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(ROOT, 'packages', folder, 'package.json'), 'utf8')) as Manifest;
}

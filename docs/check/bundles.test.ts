/**
 * With `sideEffects: false` the libraries promise bundlers that unused modules can be dropped. Checks how much that
 * saves, and that dropping them changes nothing.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';
import { parseAst } from 'rolldown/parseAst';
import { describe, expect, test } from 'vitest';
import { ROOT } from './pages.ts';

const ENTRY = join(ROOT, 'docs/check/entry.js');

/** @returns the size of a minified Node.js bundle of this code and its imports */
async function sizeOf(code: string, ...plugins: Plugin[]): Promise<number> {
  const entry: Plugin = {
    name: 'entry',
    resolveId: (id) => (id === ENTRY ? id : null),
    load: (id) => (id === ENTRY ? code : null),
  };
  const build = await rolldown({
    input: ENTRY,
    platform: 'node',
    resolve: { conditionNames: ['source', 'import'] },
    plugins: [entry, ...plugins],
  });
  const { output } = await build.generate({ format: 'esm', minify: true });
  await build.close();
  return output[0].code.length;
}

/** Ignores the `sideEffects` field. */
const WITHOUT_PROMISE: Plugin = {
  name: 'without-promise',
  transform: (code) => ({ code, moduleSideEffects: true }),
};

/** Measured: 153 and 209 bytes; without the promise 62 KB for the client, 371 bytes for the recipes. */
const BYTES_MAX = 300;

test.each([
  ['a codec of the client', `export { text } from '@meerkat/client';`],
  ['a function of the recipes', `export { sequenceOf } from '@meerkat/recipes';`],
])('%s alone is bundled without the rest of its package', async (_, code) => {
  expect(await sizeOf(code)).toBeLessThan(BYTES_MAX);
  expect(await sizeOf(code, WITHOUT_PROMISE)).toBeGreaterThan(100 * BYTES_MAX);
});

/** Statements that modules run on load besides declarations: they set the names of their own classes. */
const WHEN_LOADED: Readonly<Record<string, readonly string[]>> = {
  'client/client.ts': ['showAs(Client'],
  'client/codec/decode-error.ts': ['Object.defineProperty(DecodeError.prototype'],
  'client/codec/standard-schema.ts': ['Object.defineProperty(SchemaError.prototype'],
  'client/errors.ts': ['registerErrors(ERROR_TYPES)'],
  'client/session-info.ts': ['showAs(SessionInfo'],
};

describe.each(['protocol', 'client', 'recipes', 'testing'])('the modules of %s', (name) => {
  test('have no side effects on load that affect code which does not import them', () => {
    const folder = join(ROOT, 'packages', name, 'src');
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(isModule);
    expect(files).toContain('index.ts');
    const found = files.flatMap((file) => statementsOf(join(folder, file)).map((text) => [`${name}/${file}`, text]));
    const unknown = found.filter(
      ([file = '', text = '']) => !WHEN_LOADED[file]?.some((start) => text.startsWith(start)),
    );
    expect(unknown).toEqual([]);
  });
});

function isModule(file: string): boolean {
  return file.endsWith('.ts') && !file.endsWith('.test.ts') && !/(^|\/)(testing|fixtures)\//.test(file);
}

/** The statements of a module that are not declarations, imports or exports. */
function statementsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  return parseAst(text, { lang: 'ts' }, file)
    .body.filter(({ type }) => !/^(Import|Export|TS)|Declaration$/.test(type))
    .map(({ start, end }) => text.slice(start, end));
}

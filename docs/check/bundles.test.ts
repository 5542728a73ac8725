/**
 * Libraries promise bundlers by `sideEffects: false` that a module which nothing is imported from can be left out. What that
 * saves is measured here, and that leaving it out changes nothing.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';
import { parseAst } from 'rolldown/parseAst';
import { describe, expect, test } from 'vitest';
import { ROOT } from './pages.ts';

const ENTRY = join(ROOT, 'docs/check/entry.js');

/** @returns the bytes of a program for Node.js, minified, that is nothing but this code and what it imports */
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

/** As if the packages promised nothing. */
const WITHOUT_PROMISE: Plugin = {
  name: 'without-promise',
  transform: (code) => ({ code, moduleSideEffects: true }),
};

/** Measured are 153 and 209 bytes; 62 KB where the client promises nothing, 371 bytes where the recipes do not. */
const BYTES_MAX = 300;

test.each([
  ['a codec of the client', `export { text } from '@meerkat/client';`],
  ['a function of the recipes', `export { sequenceOf } from '@meerkat/recipes';`],
])('%s alone is bundled without the rest of its package', async (_, code) => {
  expect(await sizeOf(code)).toBeLessThan(BYTES_MAX);
  expect(await sizeOf(code, WITHOUT_PROMISE)).toBeGreaterThan(100 * BYTES_MAX);
});

/** What modules do when they are loaded, beside declaring: they name their own classes, which nothing has that does not import them. */
const WHEN_LOADED: Readonly<Record<string, readonly string[]>> = {
  'client/client.ts': ['showAs(Client'],
  'client/codec/decode-error.ts': ['Object.defineProperty(DecodeError.prototype'],
  'client/codec/standard-schema.ts': ['Object.defineProperty(SchemaError.prototype'],
  'client/errors.ts': ['registerErrors(ERROR_TYPES)'],
  'client/session-info.ts': ['showAs(SessionInfo'],
};

describe.each(['protocol', 'client', 'recipes', 'testing'])('the modules of %s', (name) => {
  test('do nothing when they are loaded that somebody would miss who does not import them', () => {
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

/** The statements of a module that declare, import and export nothing. */
function statementsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  return parseAst(text, { lang: 'ts' }, file)
    .body.filter(({ type }) => !/^(Import|Export|TS)|Declaration$/.test(type))
    .map(({ start, end }) => text.slice(start, end));
}

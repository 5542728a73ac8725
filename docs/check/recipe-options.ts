import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './pages.ts';

const SOURCES = join(ROOT, 'packages/recipes/src');

/** An option of a recipe, from its source. */
export interface Option {
  readonly name: string;
  readonly isRequired: boolean;
  /** Its default, if that is a number, a quoted name, true or false: from its comment, and from the code. */
  readonly literals: readonly string[];
}

/**
 * The options of recipes, by the name of the interface, such as `MutexOptions`, or of a method with inline options,
 * such as `PublishedSet.publish`. Excludes options common to all calls (`CallOptions`, and the `signal` of `observe`).
 */
export function readRecipeOptions(): ReadonlyMap<string, readonly Option[]> {
  // Base interfaces are listed in the tables of those that extend them.
  const index = readFileSync(join(SOURCES, 'index.ts'), 'utf8').replace(/^.*'\.\/kernel\/options\.ts';$/m, '');
  const source = listSources().map((path) => readFileSync(path, 'utf8'));
  const options = new Map<string, readonly Option[]>();
  for (const [name] of index.matchAll(/\b\w+Options\b|\bDownPolicy\b|\bServiceDescription\b/g)) {
    const found = source.map((text) => interfaceIn(source, text, name)).find((some) => some !== null);
    if (found == null) throw new Error(`${name} is in no form that is known here`);
    options.set(name, found);
  }
  for (const text of source) {
    for (const [name, some] of optionsOfMethods(text)) {
      if (new RegExp(`\\b${name.split('.')[0]}\\b`).test(index)) options.set(name, some);
    }
  }
  return options;
}

function listSources(): string[] {
  return readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && !path.startsWith('testing'))
    .map((path) => join(SOURCES, path));
}

function interfaceIn(source: readonly string[], text: string, name: string): readonly Option[] | null {
  const omitted = new RegExp(`export type ${name}(?:<T>)? = Omit<(\\w+)(?:<T>)?, '(\\w+)'>;`).exec(text);
  if (omitted !== null) {
    const [, whole = '', without = ''] = omitted;
    return interfaceAnywhere(source, whole).filter((option) => option.name !== without);
  }
  const partial = new RegExp(`export type ${name}<.*> = Pick<(\\w+)<T>, '(\\w+)'> & Partial<\\1<T>>;`).exec(text);
  if (partial !== null) {
    const [, whole = '', required = ''] = partial;
    return interfaceAnywhere(source, whole).map((option) => ({ ...option, isRequired: option.name === required }));
  }
  const alias = new RegExp(`export type ${name} = (\\w+);`).exec(text);
  if (alias !== null) return interfaceAnywhere(source, alias[1] ?? '');
  const body = '\\{(?:\\}|\\n([\\s\\S]*?)\\n\\})';
  const own = new RegExp(`export interface ${name}(?:<[^>]*>)?(?: extends ([\\w, ]+?))? ${body}`).exec(text);
  if (own === null) return null;
  const [, parents = 'CallOptions', fields = ''] = own;
  const inherited = parents
    .split(', ')
    .flatMap((parent) => (parent === 'CallOptions' ? [] : interfaceAnywhere(source, parent)));
  return [...inherited, ...optionsOf(fields, text)];
}

function interfaceAnywhere(source: readonly string[], name: string): readonly Option[] {
  for (const text of source) {
    const found = interfaceIn(source, text, name);
    if (found !== null) return found;
  }
  throw new Error(`there is no interface ${name}`);
}

/** Parses fields with their comments, and the code that destructures them. */
function optionsOf(fields: string, code: string): Option[] {
  return [...fields.matchAll(/(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*)?readonly (\w+)(\??): /g)].map(
    ([, comment = '', name = '', mark]) => {
      const words = comment.replaceAll(/\s*\n\s*\*\s*/g, ' ');
      const stated = /\b[Dd]efault (\d(?:[\d,]*\d)?(?: KiB)?|'[^']+'|true|false)/.exec(words)?.[1];
      const done = new RegExp(`\\{[^{}]*\\b${name} = (\\d[\\d_]*|'[^']+'|true|false)(?:,| \\})[^{}]*`).exec(code)?.[1];
      const literals = [stated, done?.replaceAll('_', ',')].filter((literal) => literal !== undefined);
      return { name, isRequired: mark === '', literals };
    },
  );
}

/** Options declared inline in the signature of a public method. */
function optionsOfMethods(text: string): [name: string, options: Option[]][] {
  const found: [string, Option[]][] = [];
  let owner = '';
  for (const [, className, method, parameters = ''] of text.matchAll(
    /^(?:export )?(?:abstract )?class (\w+)|^ {2}(?:async )?\*?(\w+)(?:<\w+>)?\(((?:[^()]|\([^()]*\))*)\)[^\n]* \{$/gm,
  )) {
    if (className !== undefined) owner = className;
    const options = optionsOf(parameters, '').filter(({ name }) => name !== 'signal');
    if (method !== undefined && options.length > 0) found.push([`${owner}.${method}`, options]);
  }
  return found;
}

import { readFileSync } from 'node:fs';
import { type Client, nameOf } from '@meerkat/client';
import { expect } from 'vitest';
import type { Library } from './shared.ts';

/** The pattern of a name, from the table in docs/recipes/README.md. */
export function namePattern(recipe: string, layout: Library): RegExp {
  const page = readFileSync(new URL('../../docs/recipes/README.md', import.meta.url), 'utf8');
  const row = page.split('\n').find((line) => line.startsWith(`| ${recipe} |`));
  // A bar within a cell is escaped with a backslash.
  const cell = row?.split(/(?<!\\)\|/)[layout === 'curator' ? 2 : 3] ?? '';
  const form = nameOf(/`([^`]+)`/.exec(cell)?.[1] ?? `no row of ${recipe}`);
  const pattern = form.replace(/<[^>]+>/g, (part) => PARTS[part] ?? part);
  return new RegExp(`^${pattern}$`);
}

/** Expects all children of a path, from any library, to be named as in the table, except those in `beside`. */
export async function expectNames(
  client: Client,
  path: string,
  recipe: string,
  layout: Library,
  beside: readonly string[] = [],
): Promise<void> {
  const { children } = await client.children(path, { read: 'linearizable' });
  const names = children.filter((name) => !beside.includes(name));
  expect(names).not.toEqual([]);
  for (const name of names) expect(name).toMatch(namePattern(recipe, layout));
}

const PARTS: Readonly<Record<string, string>> = {
  '<uuid>': '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}',
  '<hex>': '[0-9a-f]{32}',
  '<number>': '[0-9]{10}',
  '<0 or 1>': '[01]',
  '<3 digits>': '[0-9]{3}',
  '<8 digits>': '[0-9A-F]{8}',
  '<digits>': '[0-9A-F]+',
  '<id>': '[^|]+',
};

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('what builds the packages imports nothing that needs them before', () => {
  const source = readFileSync(join(import.meta.dirname, 'build.ts'), 'utf8');
  const names = [...source.matchAll(/^import .* from '([^']+)'/gm)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(0);
  expect(names.filter((name) => !name?.startsWith('node:'))).toEqual([]);
});

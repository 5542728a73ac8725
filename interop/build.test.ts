import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('the build of the packages does not import them', () => {
  const source = readFileSync(join(import.meta.dirname, 'build.ts'), 'utf8');
  const names = [...source.matchAll(/^import .* from '([^']+)'/gm)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(0);
  expect(names.filter((name) => !name?.startsWith('node:'))).toEqual([]);
});

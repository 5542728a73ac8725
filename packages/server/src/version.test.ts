import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FULL_VERSION, MEERKAT_VERSION } from './version.ts';

test('the version is that of the package', () => {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  expect(MEERKAT_VERSION).toBe(manifest.version);
  expect(FULL_VERSION).toMatch(/^3\.9\.5-meerkat-\d+\.\d+\.\d+, built on \d{4}-\d\d-\d\d \d\d:\d\d UTC$/);
});

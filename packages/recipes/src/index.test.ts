import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import * as recipes from './index.ts';

/** Parts of recipes, or their base classes. */
const PARTS: readonly string[] = ['Cache', 'ClaimedName', 'Guarded', 'Lock'];

const RECIPES = Object.entries(recipes).flatMap(([name, value]) =>
  /^class\b/.test(String(value)) && !name.endsWith('Error') && !PARTS.includes(name) ? [name] : [],
);

test.each(RECIPES)('%s is simulated under faults', (name) => {
  const sources = new URL('./', import.meta.url);
  const simulations = readdirSync(sources, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.simulation.test.ts'))
    .map((path) => readFileSync(new URL(path, sources), 'utf8'));
  expect(simulations.some((text) => text.includes(`new ${name}(`) || text.includes(`new ${name}<`))).toBe(true);
});

test('the recipes are found', () => {
  expect(RECIPES).toContain('Mutex');
  expect(RECIPES.length).toBeGreaterThan(30);
});

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { playElection } from '../testing/election-scenario.ts';
import { playScenario } from '../testing/scenario.ts';

const folder = new URL('.', import.meta.url);

/** Each file is a whole conversation. `RECORD=1 npx vitest run scenarios` writes down anew what is said. */
describe('scenarios', () => {
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.txt'))) {
    it(file.replace('.txt', '').replaceAll('-', ' '), () => {
      const url = new URL(file, folder);
      const text = readFileSync(url, 'utf8');
      const played = file.startsWith('election-') ? playElection(text) : playScenario(text);
      if (process.env['RECORD'] === '1') writeFileSync(url, played);
      else expect(played).toBe(text);
    });
  }
});

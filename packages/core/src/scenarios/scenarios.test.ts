import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { playElection } from '../testing/election-scenario.ts';
import { playLearner } from '../testing/learner-scenario.ts';
import { playScenario } from '../testing/scenario.ts';
import { playZabLeader } from '../testing/zab-leader-scenario.ts';

const folder = new URL('.', import.meta.url);

/** Players by file name prefix; the last one plays all other files. */
const PLAYERS: readonly (readonly [string, (text: string) => string])[] = [
  ['election-', playElection],
  ['zab-leader-', playZabLeader],
  ['zab-learner-', playLearner],
  ['', playScenario],
];

/** Each file is a whole conversation. `RECORD=1 npx vitest run scenarios` records the output again. */
describe('scenarios', () => {
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.txt'))) {
    it(file.replace('.txt', '').replaceAll('-', ' '), () => {
      const url = new URL(file, folder);
      const text = readFileSync(url, 'utf8');
      const [, play] = PLAYERS.find(([prefix]) => file.startsWith(prefix))!;
      const played = play(text);
      if (process.env['RECORD'] === '1') writeFileSync(url, played);
      else expect(played).toBe(text);
    });
  }
});

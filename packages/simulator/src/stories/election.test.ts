import { describe, expect, test } from 'vitest';
import { play } from './stage.ts';

describe('an ensemble', () => {
  test('131, 569, 480: nobody goes on following a leader that is gone', () =>
    play({ servers: 3 }, async (stage) => {
      const leader = await stage.start();
      await stage.write(leader, 3);
      stage.kill(leader);
      const next = await stage.leader();
      expect(next).not.toBe(leader);
      await stage.write(next, 2);
    }));
});

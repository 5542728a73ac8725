import { describe, expect, test } from 'vitest';
import { describeWith } from './harness/peers.ts';
import { fourLetterWord, SERVER_KINDS, ServerProcess } from './harness/server-process.ts';

describeWith(['apache'], 'a four-letter word outside the whitelist', () => {
  describe.each(SERVER_KINDS)('%s', (kind) => {
    test('is refused at once, also stmk without its eight bytes', async () => {
      await using server = await ServerProcess.start(kind, { config: { '4lw.commands.whitelist': 'srvr' } });
      for (const word of ['stmk', 'ruok']) {
        // Nothing follows the word: a server that waits for more would not answer within this time.
        expect(await fourLetterWord(server.port, word, 5000)).toBe(
          `${word} is not executed because it is not in the whitelist.\n`,
        );
      }
    });
  });
});

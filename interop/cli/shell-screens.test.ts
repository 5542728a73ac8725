import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { MEERKAT_IN_SHELL } from '../harness/meerkat-command.ts';
import { describeWith } from '../harness/peers.ts';
import { ServerProcess } from '../harness/server-process.ts';
import { isAsExpected, trimmed } from './console-blocks.ts';
import { RunningCommand } from './harness.ts';
import { findScreens, type ScreenStep } from './shell/screens.ts';
import { Terminal } from './shell/terminal.ts';

const PAGE = fileURLToPath(new URL('../../docs/cli/shell.md', import.meta.url));
/** The address shown on the page. */
const SHOWN_ADDRESS = '127.0.0.1:2181';
/** An empty prompt: of the shell, of a multi-line value, or of sh. */
const PROMPT = /^(?:\[.*\]|\S{0,5}>|\$)$/;

describeWith(['tmux'], 'docs/cli/shell.md', () => {
  test('matches the screens of a terminal', async () => {
    const screens = findScreens(readFileSync(PAGE, 'utf8'));
    expect(screens.length).toBeGreaterThan(3);
    await using server = await ServerProcess.start('meerkat', { config: { tickTime: 500, maxSessionTimeout: 3000 } });
    using home = new Home();
    const address = `127.0.0.1:${server.port}`;
    await using terminal = await Terminal.start(['sh'], { ...home.env, PS1: '$ ', MEERKAT_SERVER: address });
    const shown = (screen: string): string => screen.replaceAll(address, SHOWN_ADDRESS);
    for (const [i, { line, steps, expected }] of screens.entries()) {
      // Clears the input line and the screen.
      if (i > 0) await terminal.press('C-a', 'C-k', 'C-l');
      for (const step of steps) await take(step, terminal, server);
      try {
        await terminal.until('what the page shows', (screen) => isAsExpected(shown(screen), expected));
      } catch {
        expect.soft(trimmed(shown(await terminal.screen())), `docs/cli/shell.md:${line}`).toBe(trimmed(expected));
      }
    }
  });
});

async function take({ verb, words }: ScreenStep, terminal: Terminal, server: ServerProcess): Promise<void> {
  switch (verb) {
    case 'enter':
      await terminal.until('a prompt', (screen) => PROMPT.test(lastLine(screen)));
      await terminal.type(words);
      await terminal.until('the line', (screen) => lastLine(screen).endsWith(words));
      await terminal.press('Enter');
      await terminal.until('the next line', (screen) => !lastLine(screen).endsWith(words));
      return;
    case 'type':
      await terminal.until('a prompt', (screen) => PROMPT.test(lastLine(screen)));
      return terminal.type(words);
    case 'keys':
      return terminal.press(...words.split(' '));
    case 'wait':
      await terminal.until(words, (screen) => screen.includes(words));
      return;
    case 'elsewhere': {
      const args = [...words.split(' '), '--server', `127.0.0.1:${server.port}`];
      expect(await new RunningCommand(args, {}, false).ended).toMatchObject({ exitCode: 0 });
      return;
    }
    case 'server':
      if (words === 'pause') return server.pause();
      await server.kill();
      rmSync(server.dataDirectory, { recursive: true });
      return server.restart();
  }
}

function lastLine(screen: string): string {
  return screen.slice(screen.lastIndexOf('\n') + 1);
}

/** The environment of the shell of the page. */
class Home implements Disposable {
  readonly env: Readonly<Record<string, string>>;
  readonly #directory: string = mkdtempSync(join(tmpdir(), 'screens-'));

  constructor() {
    const bin = join(this.#directory, 'bin');
    mkdirSync(bin);
    const program = join(bin, 'meerkat');
    writeFileSync(program, `#!/bin/sh\nexec ${MEERKAT_IN_SHELL} "$@"\n`);
    chmodSync(program, 0o755);
    this.env = { HOME: this.#directory, PATH: `${bin}:${process.env['PATH'] ?? ''}` };
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

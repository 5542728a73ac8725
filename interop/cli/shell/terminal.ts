import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { guardOrphan } from '../../harness/orphan-guard.ts';

const run = promisify(execFile);

const COLUMNS = 100;
const ROWS = 40;
/** What takes longer than this does not happen. Milliseconds. */
const WAIT_MS = 120_000;
const LOOK_EVERY_MS = 25;

/** A program in a terminal: a tmux of its own, whose keys are pressed and whose screen is looked at. */
export class Terminal implements AsyncDisposable {
  readonly #directory: string;
  #release: () => void = () => {};

  /** @param env on top of nothing but a path: the user who runs the tests has an environment too */
  static async start(command: readonly string[], env: Readonly<Record<string, string>>): Promise<Terminal> {
    const terminal = new Terminal(mkdtempSync(join(tmpdir(), 'terminal-')));
    const words = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
    const settings = Object.entries({ TZ: 'UTC', LANG: 'C.UTF-8', ...env }).map(
      ([name, value]) => `${name}='${value}'`,
    );
    // The screen stays when the program has ended, and says so.
    const script = `env ${settings.join(' ')} ${words}; echo "ended with $?"; exec cat`;
    await terminal.#tmux('-f', '/dev/null', 'new-session', '-d', '-x', String(COLUMNS), '-y', String(ROWS), script);
    const { stdout } = await terminal.#tmux('display-message', '-p', '#{pid}');
    terminal.#release = guardOrphan(Number(stdout), terminal.#directory);
    return terminal;
  }

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** What can be seen, as lines that were too long are meant; without spaces at their ends and empty lines at the bottom. */
  async screen(): Promise<string> {
    const { stdout } = await this.#tmux('capture-pane', '-p', '-J');
    return stdout.replaceAll(/[ \t]+$/gm, '').trimEnd();
  }

  /** Types text, and presses no key behind it. */
  async type(text: string): Promise<void> {
    await this.#tmux('send-keys', '-l', '--', text);
  }

  /** Presses keys by tmux's names: Enter, Tab, Up, C-c. */
  async press(...keys: readonly string[]): Promise<void> {
    await this.#tmux('send-keys', ...keys);
  }

  /** Types a line. */
  async enter(line: string): Promise<void> {
    await this.type(line);
    await this.press('Enter');
  }

  /** Puts text in as a paste: all of it at once. */
  async paste(text: string): Promise<void> {
    await this.#tmux('set-buffer', '--', text);
    await this.#tmux('paste-buffer');
  }

  /** Looks until the screen is as it should be. @returns it */
  async until(what: string, holds: (screen: string) => boolean): Promise<string> {
    const deadline = Date.now() + WAIT_MS;
    for (;;) {
      const screen = await this.screen();
      if (holds(screen)) return screen;
      if (Date.now() > deadline) throw new Error(`the screen never showed ${what}:\n${screen}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  }

  /** Waits until the terminal collects lines by itself again: no program reads single keys. */
  async untilCooked(): Promise<void> {
    const { stdout } = await this.#tmux('display-message', '-p', '#{pane_tty}');
    const deadline = Date.now() + WAIT_MS;
    for (;;) {
      const { stdout: settings } = await run('stty', ['-a', '-F', stdout.trim()]);
      if (!settings.includes('-icanon')) return;
      if (Date.now() > deadline) throw new Error(`the terminal stays in raw mode:\n${await this.screen()}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tmux('kill-server').catch(() => {});
    this.#release();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #tmux(...args: readonly string[]): Promise<{ stdout: string }> {
    return run('tmux', ['-S', join(this.#directory, 'socket'), ...args], {
      env: { PATH: process.env['PATH'], HOME: this.#directory, TERM: 'xterm-256color', LANG: 'C.UTF-8' },
    });
  }
}

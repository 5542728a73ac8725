import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { guardOrphan } from '../../harness/orphan-guard.ts';

const run = promisify(execFile);

const COLUMNS = 100;
const ROWS = 40;
/** Timeout of all waits. Milliseconds. */
const WAIT_MS = 120_000;
const LOOK_EVERY_MS = 25;

/** A program in a terminal, a separate tmux server, that is controlled by keys and its screen. */
export class Terminal implements AsyncDisposable {
  readonly #directory: string;
  #release: () => void = () => {};

  /** @param env the environment, to which only a path is added; the user's environment is not inherited */
  static async start(command: readonly string[], env: Readonly<Record<string, string>>): Promise<Terminal> {
    const terminal = new Terminal(mkdtempSync(join(tmpdir(), 'terminal-')));
    const words = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
    const settings = Object.entries({ TZ: 'UTC', LANG: 'C.UTF-8', ...env }).map(
      ([name, value]) => `${name}='${value}'`,
    );
    // The screen stays after the program has exited, and says so.
    const script = `env ${settings.join(' ')} ${words}; echo "ended with $?"; exec cat`;
    await terminal.#tmux('-f', '/dev/null', 'new-session', '-d', '-x', String(COLUMNS), '-y', String(ROWS), script);
    const { stdout } = await terminal.#tmux('display-message', '-p', '#{pid}');
    terminal.#release = guardOrphan(Number(stdout), terminal.#directory);
    return terminal;
  }

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** The visible text with wrapped lines joined, without trailing spaces and empty lines at the bottom. */
  async screen(): Promise<string> {
    const { stdout } = await this.#tmux('capture-pane', '-p', '-J');
    return stdout.replaceAll(/[ \t]+$/gm, '').trimEnd();
  }

  /** Types text without Enter. */
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

  /** Pastes text. */
  async paste(text: string): Promise<void> {
    await this.#tmux('set-buffer', '--', text);
    await this.#tmux('paste-buffer');
  }

  /** Polls until the screen matches. @returns the screen */
  async until(what: string, holds: (screen: string) => boolean): Promise<string> {
    const deadline = Date.now() + WAIT_MS;
    for (;;) {
      const screen = await this.screen();
      if (holds(screen)) return screen;
      if (Date.now() > deadline) throw new Error(`the screen never showed ${what}:\n${screen}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  }

  /** Waits until the terminal is in cooked mode, so that no program reads single keys. */
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

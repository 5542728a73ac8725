import { StringDecoder } from 'node:string_decoder';
import { CommandFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';
import type { Io } from '../run/io.ts';
import type { Shell } from './shell.ts';
import { type CommandLine, type Missing, scan } from './words.ts';

/** How lines of a script are run. */
export interface ScriptOptions {
  /** Stop at the first line that fails. */
  readonly exitOnError: boolean;
  readonly signal: AbortSignal;
}

/** Runs the text of `-c`. @returns the exit code of the last line that failed, 0 when none did */
export async function runText(shell: Shell, text: string, options: ScriptOptions): Promise<number> {
  const { commands, missing } = scan(text);
  if (missing !== null) throw incomplete(missing);
  return new ScriptRun(shell, options).run(commands, () => 'meerkat: ');
}

/**
 * Runs lines as they arrive, so that a program that writes one and waits for what it prints gets on.
 *
 * @returns the exit code of the last line that failed, 0 when none did
 */
export async function runInput(shell: Shell, stdin: Io['stdin'], options: ScriptOptions): Promise<number> {
  const run = new ScriptRun(shell, options);
  const placeOf = (lineNumber: number): string => `meerkat: line ${linesBefore + lineNumber}: `;
  const decoder = new StringDecoder('utf8');
  /** What has come and has not been run. */
  let waiting = '';
  let linesBefore = 0;
  const abort = (): void => void stdin.destroy();
  options.signal.addEventListener('abort', abort, { once: true });
  try {
    for await (const chunk of stdin) {
      waiting += typeof chunk === 'string' ? chunk : decoder.write(chunk as Buffer);
      const end = completeEnd(waiting);
      if (end === 0) continue;
      const text = waiting.slice(0, end);
      waiting = waiting.slice(end);
      await run.run(scan(text).commands, placeOf);
      if (run.isOver) return run.exitCode;
      linesBefore += text.split('\n').length - 1;
    }
  } catch (error) {
    if (!options.signal.aborted) throw error;
    return run.exitCode;
  } finally {
    options.signal.removeEventListener('abort', abort);
  }
  const { commands, missing } = scan(waiting);
  if (missing !== null) throw incomplete(missing);
  return run.run(commands, placeOf);
}

/** Up to where whole lines have come, and no command that continues in the next one. */
function completeEnd(text: string): number {
  const end = text.lastIndexOf('\n') + 1;
  if (end === 0) return 0;
  // A backslash before the last line feed waits for the line behind it.
  const { missing, completeLength } = scan(text.slice(0, end - 1));
  return missing === null ? end : completeLength;
}

class ScriptRun {
  readonly #shell: Shell;
  readonly #options: ScriptOptions;
  exitCode: number = CommandExit.ok;
  /** Nothing more is to be run. */
  isOver = false;

  constructor(shell: Shell, options: ScriptOptions) {
    this.#shell = shell;
    this.#options = options;
  }

  async run(commands: readonly CommandLine[], prefixOf: (lineNumber: number) => string): Promise<number> {
    const { signal, exitOnError } = this.#options;
    for (const { words, text, lineNumber } of commands) {
      if (signal.aborted || this.isOver) break;
      this.#shell.lines.push(text);
      const exitCode = await this.#shell.run(words, prefixOf(lineNumber), signal);
      if (exitCode !== CommandExit.ok) this.exitCode = exitCode;
      // Without a server at the beginning every line would wait for one.
      const hasNoServer = exitCode === CommandExit.unreachable && !this.#shell.session.hasBeenOpen;
      this.isOver = this.#shell.isLeaving || hasNoServer || (exitOnError && exitCode !== CommandExit.ok);
    }
    return this.exitCode;
  }
}

function incomplete(missing: Missing): CommandFailure {
  return new CommandFailure(CommandExit.invocation, `the input ends too soon: ${describeMissing(missing)}`);
}

export function describeMissing(missing: Missing): string {
  switch (missing.kind) {
    case 'quote':
      return `the quote ${missing.quote} is open`;
    case 'document':
      return `the line ${missing.mark} that ends a here-document is missing`;
    case 'next-line':
      return 'there is no line behind a "\\"';
  }
}

import { Paint } from '../output/paint.ts';
import type { CatalogEntry } from '../run/command.ts';
import type { CommonWords } from '../run/common-words.ts';
import { CommandExit } from '../run/exit-code.ts';
import { explainFailure } from '../run/failure.ts';
import { type Io, writeAll } from '../run/io.ts';
import { Completer } from './completer.ts';
import { HistoryFile } from './history-file.ts';
import { LineEditor, TerminalInput } from './line-editor.ts';
import { formatContinuation, formatPrompt } from './prompt.ts';
import { Shell } from './shell.ts';
import { type CommandLine, type Missing, scan } from './words.ts';

/** A shell at a terminal. @returns the exit code of the last line, as shells have it */
export async function runInteractive(
  io: Io,
  stdin: NodeJS.ReadStream,
  words: CommonWords,
  catalog: readonly CatalogEntry[],
  signal: AbortSignal,
): Promise<number> {
  using terminalInput = new TerminalInput();
  const shellIo: Io = {
    get stdin() {
      return terminalInput.stream;
    },
    stdout: io.stdout,
    stderr: io.stderr,
    env: io.env,
  };
  await using shell = new Shell(shellIo, words, catalog);
  const run = new InteractiveRun(shell, stdin, terminalInput, signal);
  return await run.run();
}

class InteractiveRun {
  readonly #shell: Shell;
  readonly #stdin: NodeJS.ReadStream;
  readonly #terminalInput: TerminalInput;
  readonly #signal: AbortSignal;
  readonly #paint: Paint;
  readonly #historyFile: HistoryFile;
  #exitCode: number = CommandExit.ok;

  constructor(shell: Shell, stdin: NodeJS.ReadStream, terminalInput: TerminalInput, signal: AbortSignal) {
    this.#shell = shell;
    this.#stdin = stdin;
    this.#terminalInput = terminalInput;
    this.#signal = signal;
    this.#paint = Paint.for(shell.io.stdout, shell.io, shell.words.color !== false);
    this.#historyFile = HistoryFile.of(shell.io.env);
  }

  async run(): Promise<number> {
    const shell = this.#shell;
    await this.#greet();
    const completer = new Completer(shell, () => editor.completionArrived());
    using editor = new LineEditor(shell.io, this.#stdin, this.#historyFile.read(), (line) => completer.complete(line));
    const end = (): void => editor[Symbol.dispose]();
    this.#signal.addEventListener('abort', end, { once: true });
    shell.notify = (text) => editor.notify(text);
    /** The lines of a command that continues; null between commands. */
    let open: { readonly text: string; readonly missing: Missing } | null = null;
    const prompt = (): string => {
      if (open !== null) return formatContinuation(open.missing, this.#paint);
      const { server, state } = shell.session;
      return formatPrompt({ server, state, path: shell.currentPath }, this.#paint);
    };
    shell.onChange = () => editor.setPrompt(prompt());
    let hasInterrupted = false;
    while (!shell.isLeaving && !this.#signal.aborted) {
      const read = await editor.read(prompt());
      if (read.kind === 'end') {
        if (!this.#signal.aborted) shell.io.stdout.write('\n');
        break;
      }
      if (read.kind === 'interrupt') {
        const isEmpty: boolean = read.wasEmpty && open === null;
        if (isEmpty && hasInterrupted) break;
        hasInterrupted = isEmpty;
        open = null;
        if (isEmpty) editor.notify(this.#paint.dim('Ctrl-C once more, or Ctrl-D, leaves'));
        continue;
      }
      hasInterrupted = false;
      const text: string = open === null ? read.text : `${open.text}\n${read.text}`;
      const { commands, missing } = scan(text);
      open = missing === null ? null : { text, missing };
      if (missing !== null || commands.length === 0) continue;
      this.#remember(editor, text);
      await this.#runCommands(commands);
      completer.forget();
    }
    shell.onChange = () => {};
    this.#signal.removeEventListener('abort', end);
    return this.#exitCode;
  }

  /** The session is opened first, so that the prompt is true. Without one the shell begins all the same. */
  async #greet(): Promise<void> {
    const shell = this.#shell;
    const { stdout, stderr } = shell.io;
    const interrupt = new LineInterrupt(this.#signal);
    try {
      if (shell.words.quiet !== true)
        await writeAll(stdout, `${this.#paint.dim('"help" lists the commands, Tab completes, Ctrl-D leaves')}\n`);
      await interrupt.race(shell.session.open(interrupt.signal));
    } catch (error) {
      await writeAll(stderr, `${this.#paint.bad(explainFailure(error).message)}\n`);
    } finally {
      interrupt[Symbol.dispose]();
    }
  }

  #remember(editor: LineEditor, text: string): void {
    editor.remember(text);
    this.#historyFile.append(text);
    this.#shell.lines.push(text);
  }

  async #runCommands(commands: readonly CommandLine[]): Promise<void> {
    for (const { words } of commands) {
      const interrupt = new LineInterrupt(this.#signal);
      try {
        const exitCode = await interrupt.race(this.#shell.run(words, '', interrupt.signal));
        this.#exitCode = exitCode ?? CommandExit.interrupted;
        if (exitCode === null) this.#shell.notify(this.#paint.notable('the command does not end; it was left behind'));
      } finally {
        interrupt[Symbol.dispose]();
        this.#terminalInput[Symbol.dispose]();
      }
      // Ctrl-C stops what stands behind it on the line as well.
      if (interrupt.signal.aborted || this.#shell.isLeaving) return;
    }
  }
}

/** Ctrl-C while a command runs: the first stops it, the second does not wait for its end. */
class LineInterrupt implements Disposable {
  readonly #controller: AbortController = new AbortController();
  readonly #left: Promise<null>;
  #leave: () => void = () => {};
  readonly signal: AbortSignal;

  constructor(outer: AbortSignal) {
    this.#left = new Promise((resolve) => {
      this.#leave = () => resolve(null);
    });
    this.signal = AbortSignal.any([outer, this.#controller.signal]);
    process.on('SIGINT', this.#onSigint);
  }

  /** @returns null when the work was left behind */
  async race<T>(work: Promise<T>): Promise<T | null> {
    return await Promise.race([work, this.#left]);
  }

  [Symbol.dispose](): void {
    process.off('SIGINT', this.#onSigint);
  }

  readonly #onSigint = (): void => {
    // The terminal has shown ^C.
    process.stdout.write('\n');
    if (this.#controller.signal.aborted) this.#leave();
    this.#controller.abort(new Error('interrupted'));
  };
}

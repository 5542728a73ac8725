import { CommandExit } from './exit-code.ts';
import type { Io } from './io.ts';

/**
 * Why a run ends before it is done: a signal, or a reader of its output that has gone. The first one aborts `signal`, so
 * that the command stops where it stands, says how far it came and closes its session; a second signal ends the process.
 */
export class Interruption implements Disposable {
  readonly #controller: AbortController = new AbortController();
  readonly #io: Io;
  #exitCode: CommandExit | null = null;
  /** Why the output could not be written, unless its reader has gone; null while it can. */
  outputError: NodeJS.ErrnoException | null = null;

  /** @param hearsSigint false when another listener handles Ctrl-C */
  constructor(io: Io, hearsSigint = true) {
    this.#io = io;
    if (hearsSigint) process.on('SIGINT', this.#onSigint);
    process.on('SIGTERM', this.#onSigterm);
    process.on('SIGHUP', this.#onSigterm);
    io.stdout.on('error', this.#onOutputError);
    io.stderr.on('error', this.#onOutputError);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** null while nothing has happened. */
  get exitCode(): CommandExit | null {
    return this.#exitCode;
  }

  [Symbol.dispose](): void {
    process.off('SIGINT', this.#onSigint);
    process.off('SIGTERM', this.#onSigterm);
    process.off('SIGHUP', this.#onSigterm);
    this.#io.stdout.off('error', this.#onOutputError);
    this.#io.stderr.off('error', this.#onOutputError);
  }

  readonly #onSigint = (): void => this.#onSignal(CommandExit.interrupted);
  readonly #onSigterm = (): void => this.#onSignal(CommandExit.terminated);

  #onSignal(exitCode: CommandExit): void {
    if (this.#exitCode !== null) process.exit(exitCode);
    this.#abort(exitCode, 'interrupted');
  }

  readonly #onOutputError = (error: NodeJS.ErrnoException): void => {
    // Only a reader that is gone is not a failure; a full disk behind a redirection is reported.
    if (error.code !== 'EPIPE') this.outputError ??= error;
    this.#abort(error.code === 'EPIPE' ? CommandExit.pipeClosed : CommandExit.file, error.message);
  };

  #abort(exitCode: CommandExit, reason: string): void {
    if (this.#exitCode !== null) return;
    this.#exitCode = exitCode;
    this.#controller.abort(new DOMException(reason, 'AbortError'));
  }
}

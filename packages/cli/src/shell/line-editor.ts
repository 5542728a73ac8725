import { openSync } from 'node:fs';
import { clearScreenDown, createInterface, cursorTo, type Interface, type Key, moveCursor } from 'node:readline';
import { PassThrough } from 'node:stream';
import { ReadStream } from 'node:tty';
import type { Io } from '../run/io.ts';
import type { Completion } from './completion.ts';

const TAB = 0x09;

/** The result of reading a line. */
export type LineRead =
  | { readonly kind: 'line'; readonly text: string }
  /** Ctrl-C. */
  | { readonly kind: 'interrupt'; readonly wasEmpty: boolean }
  /** Ctrl-D, or the terminal was closed. */
  | { readonly kind: 'end' };

/**
 * Lines typed at a terminal, with Node's readline.
 *
 *     terminal ──► process.stdin ──► keys ──► readline ──► lines
 *                        └ only while a line is read: between lines the terminal is as a command expects it
 *
 * Text that comes by itself goes above the line that is being typed.
 */
export class LineEditor implements Disposable {
  readonly #io: Io;
  readonly #stdin: NodeJS.ReadStream;
  readonly #keys: PassThrough = new PassThrough();
  readonly #readline: Interface;
  readonly #complete: (line: string) => Completion | null;
  /** The latest first, as readline has them. */
  #history: string[];
  /** Lines that came at once, pasted, and are still to be read. */
  readonly #lines: string[] = [];
  #waiting: ((read: LineRead) => void) | null = null;
  #hasEnded = false;
  /** Where Tab was pressed while the answer was not known, and whether for the second time. */
  #tabbed: { readonly line: string; readonly cursor: number; readonly isSecond: boolean } | null = null;

  /** @param complete null: the answer is not known yet; `completionArrived` is called when it is */
  constructor(
    io: Io,
    stdin: NodeJS.ReadStream,
    history: readonly string[],
    complete: (line: string) => Completion | null,
  ) {
    this.#io = io;
    this.#stdin = stdin;
    this.#complete = complete;
    this.#history = history.toReversed();
    const input = Object.assign(this.#keys, { isTTY: true, setRawMode: (isRaw: boolean) => this.#setRawMode(isRaw) });
    this.#readline = createInterface({
      input,
      output: io.stdout,
      terminal: true,
      history: this.#history,
      historySize: 2000,
      removeHistoryDuplicates: true,
      completer: (line: string, done: (error: null, result: [string[], string]) => void) => {
        done(null, this.#onTab(line));
      },
    });
    this.#readline.on('line', (text) => this.#onLine(text));
    this.#readline.on('SIGINT', () => this.#onInterrupt());
    // Back from Ctrl-Z.
    this.#readline.on('SIGCONT', () => this.#readline.prompt(true));
    this.#readline.on('close', () => this.#onEnd());
    // Whole commands are kept, which may have several lines: readline's own entries are taken out again.
    this.#readline.on('history', (entries) => {
      this.#history = entries;
      entries.shift();
    });
    this.#setRawMode(false);
  }

  /** Reads one line. */
  read(prompt: string): Promise<LineRead> {
    if (this.#hasEnded) return Promise.resolve({ kind: 'end' });
    const line = this.#lines.shift();
    if (line !== undefined) return Promise.resolve({ kind: 'line', text: line });
    return new Promise((resolve) => {
      this.#waiting = (read) => {
        this.#waiting = null;
        this.#handOver();
        resolve(read);
      };
      this.#readline.setPrompt(prompt);
      this.#takeOver();
      this.#readline.prompt(true);
    });
  }

  /** The prompt of the line that is being read has changed. */
  setPrompt(prompt: string): void {
    this.#readline.setPrompt(prompt);
    if (this.#waiting !== null) this.#readline.prompt(true);
  }

  /** Prints a line, above the one that is being typed. */
  notify(text: string): void {
    const { stdout } = this.#io;
    if (this.#waiting === null) {
      stdout.write(`${text}\n`);
      return;
    }
    const { rows } = this.#readline.getCursorPos();
    moveCursor(stdout, 0, -rows);
    cursorTo(stdout, 0);
    clearScreenDown(stdout);
    // Drawing the line again begins with a step up by the rows of the cursor.
    stdout.write(`${text}\n${'\n'.repeat(rows)}`);
    this.#readline.prompt(true);
  }

  /** A whole command, for the keys up and down. */
  remember(command: string): void {
    if (this.#history[0] === command) return;
    const earlier = this.#history.indexOf(command);
    if (earlier !== -1) this.#history.splice(earlier, 1);
    this.#history.unshift(command);
  }

  /** The completions for Tab have arrived: Tab is replayed, unless something else was typed. */
  completionArrived(): void {
    const tabbed = this.#tabbed;
    this.#tabbed = null;
    if (tabbed === null || this.#waiting === null) return;
    const { line, cursor } = this.#readline;
    if (line !== tabbed.line || cursor !== tabbed.cursor) return;
    // The second of two tabs lists what fits; another key between them makes it the first.
    if (!tabbed.isSecond) this.#press({ name: 'nothing' });
    this.#press({ name: 'tab' });
  }

  /** Stops waiting for a line. */
  [Symbol.dispose](): void {
    this.#handOver();
    this.#readline.close();
    this.#stdin.pause();
  }

  #onTab(line: string): [string[], string] {
    const completion = this.#complete(line);
    const { line: whole, cursor } = this.#readline;
    const isSecond = this.#tabbed?.line === whole && this.#tabbed.cursor === cursor;
    this.#tabbed = completion === null ? { line: whole, cursor, isSecond } : null;
    return completion === null ? [[], line] : [[...completion.texts], completion.on];
  }

  #onLine(text: string): void {
    this.#tabbed = null;
    // Since Node.js 24 the lines of an entry of the history come with carriage returns between them.
    const line = text.replaceAll('\r', '\n');
    if (this.#waiting === null) this.#lines.push(line);
    else this.#waiting({ kind: 'line', text: line });
  }

  #onInterrupt(): void {
    const wasEmpty = this.#readline.line === '';
    this.#press({ ctrl: true, name: 'e' });
    const { rows } = this.#readline.getCursorPos();
    this.#io.stdout.write(`^C\n${'\n'.repeat(rows)}`);
    this.#readline.setPrompt('');
    this.#press({ ctrl: true, name: 'u' });
    this.#lines.length = 0;
    this.#waiting?.({ kind: 'interrupt', wasEmpty });
  }

  #onEnd(): void {
    this.#hasEnded = true;
    this.#waiting?.({ kind: 'end' });
  }

  readonly #onKeys = (chunk: Buffer): void => {
    // Several keys at once are a paste to readline, where a tab is a character. One line that ends in tabs was typed
    // quickly, though, or the connection is slow: the tabs are keys.
    const text = chunk.subarray(0, endWithoutTabs(chunk));
    if (text.some((byte) => byte < 0x20)) {
      this.#keys.write(chunk);
      return;
    }
    if (text.length > 0) this.#keys.write(text);
    for (let tabs = chunk.length - text.length; tabs > 0; tabs--) this.#keys.write('\t');
  };
  readonly #onKeysEnd = (): void => void this.#keys.end();

  #takeOver(): void {
    this.#setRawMode(true);
    this.#stdin.on('data', this.#onKeys);
    this.#stdin.on('end', this.#onKeysEnd);
    this.#stdin.resume();
    this.#readline.resume();
  }

  #handOver(): void {
    this.#stdin.off('data', this.#onKeys);
    this.#stdin.off('end', this.#onKeysEnd);
    this.#stdin.pause();
    this.#setRawMode(false);
  }

  #press(key: Key): void {
    // Its declaration forgets that there may be a key without text.
    this.#readline.write(null as unknown as string, key);
  }

  #setRawMode(isRaw: boolean): void {
    if (this.#stdin.isTTY) this.#stdin.setRawMode(isRaw);
  }
}

/** Where the tabs at the end begin. */
function endWithoutTabs(chunk: Uint8Array): number {
  let end = chunk.length;
  while (end > 0 && chunk[end - 1] === TAB) end--;
  return end;
}

/**
 * What commands read while a shell has the terminal: the terminal itself, opened when a command asks for it. The end of
 * its input (Ctrl-D) is then not the end of the shell's.
 */
export class TerminalInput implements Disposable {
  #stream: ReadStream | null = null;

  get stream(): ReadStream {
    this.#stream ??= new ReadStream(openSync('/dev/tty', 'r'));
    return this.#stream;
  }

  /** Behind each command. */
  [Symbol.dispose](): void {
    this.#stream?.destroy();
    this.#stream = null;
  }
}

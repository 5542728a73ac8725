import type { Client, StateChange } from '@meerkat/client';
import { type Command, CommanderError } from 'commander';
import type { Service } from '../connection/location.ts';
import { Paint } from '../output/paint.ts';
import { hex } from '../output/stat-columns.ts';
import type { CatalogEntry } from '../run/command.ts';
import type { CommonWords } from '../run/common-words.ts';
import { CommandExit } from '../run/exit-code.ts';
import { type Io, writeAll } from '../run/io.ts';
import { openSession, wordsFor } from '../run/process-context.ts';
import { ShellCatalog } from './catalog.ts';
import { defineLine, withTwoDashes } from './line-command.ts';
import { LineHost } from './line-host.ts';
import type { ShellState } from './shell-command.ts';
import { ShellSession } from './shell-session.ts';
import { WatchList } from './watch-list.ts';

/** Timeout of closing the session, in milliseconds. */
const CLOSE_MS = 2000;

/** A shell, wherever its lines come from: the session, the current znode, the watches, and what a line does. */
export class Shell implements ShellState, AsyncDisposable {
  readonly io: Io;
  readonly words: CommonWords;
  readonly commands: ShellCatalog;
  readonly catalog: readonly CatalogEntry[];
  readonly session: ShellSession;
  readonly watches: WatchList;
  readonly lines: string[] = [];
  /** Prints a line that no command prints: an event, a change of the connection. The terminal replaces it. */
  notify: (text: string) => void;
  onChange: () => void = () => {};
  currentPath = '/';
  previousPath = '/';
  isLeaving = false;
  readonly #paint: Paint;
  readonly #others: Map<string, Promise<Client>> = new Map();

  /** @param catalog the commands of the command line, which are lines of the shell too */
  constructor(io: Io, words: CommonWords, catalog: readonly CatalogEntry[]) {
    this.io = io;
    this.catalog = catalog;
    this.commands = new ShellCatalog(catalog);
    this.words = words;
    this.#paint = Paint.for(io.stdout, io, words.color !== false);
    this.notify = (text) => void writeAll(io.stdout, `${text}\n`);
    this.session = new ShellSession(io, words, (change) => this.#onState(change));
    this.watches = new WatchList(this.#paint, (text) => this.notify(text));
  }

  async run(words: readonly string[], prefix: string, signal: AbortSignal): Promise<number> {
    const [name = '', ...rest] = words;
    const entry = this.commands.find(name);
    if (entry === null) {
      await writeAll(this.io.stderr, `${prefix}${this.commands.describeUnknown(name)}\n`);
      return CommandExit.invocation;
    }
    let host: LineHost | null = null;
    const makeHost = (program: Command): LineHost => {
      host = new LineHost(this, this.catalog, program, { command: name, prefix }, signal);
      return host;
    };
    const line = await defineLine(entry, this.io, makeHost, prefix);
    try {
      await line.program.parseAsync([name, ...withTwoDashes(line, rest)], { from: 'user' });
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      return error.exitCode === 0 ? CommandExit.ok : CommandExit.invocation;
    }
    return (host as LineHost | null)?.exitCode ?? CommandExit.ok;
  }

  goTo(path: string): void {
    this.previousPath = this.currentPath;
    this.currentPath = path;
  }

  otherSession(service: Service, signal: AbortSignal): Promise<Client> {
    const key = JSON.stringify(service);
    const known = this.#others.get(key);
    if (known !== undefined) return known;
    const made = openSession(wordsFor(service, this.words), this.io, signal);
    this.#others.set(key, made);
    // The next line may have more luck.
    made.catch(() => this.#others.delete(key));
    return made;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.notify = () => {};
    this.onChange = () => {};
    const others = await Promise.allSettled(this.#others.values());
    await Promise.all([
      this.session.close(),
      ...others.map(async (other) => {
        if (other.status === 'fulfilled') await other.value.close({ timeoutMs: CLOSE_MS }).catch(() => {});
      }),
    ]);
  }

  #onState(change: StateChange): void {
    const text = describeChange(change, this.session.server);
    if (text !== null && this.words.quiet !== true) {
      const isGood = change.state === 'connected' && change.sameSession;
      this.notify(isGood ? this.#paint.good(text) : this.#paint.bad(text));
    }
    this.onChange();
  }
}

/** What a change of the connection means to the user; null for those that do not matter. */
function describeChange(
  { state, previous, reason, sessionId, sameSession }: StateChange,
  server: string,
): string | null {
  switch (state) {
    case 'suspended':
      return `the connection is suspended: ${reason}; requests wait for another one`;
    case 'lost':
      return (
        `session ${hex(sessionId)} may be over: ${reason}; if it is, its ephemeral znodes are gone. ` +
        'Requests are refused until there is a connection'
      );
    case 'connected':
    case 'read-only':
      if (previous === 'connecting') return null;
      return sameSession
        ? `connected to ${server} again, with the same session: its ephemeral znodes are there, its watches are set`
        : `connected to ${server} with a new session ${hex(sessionId)}: ephemeral znodes of the old one are gone; ` +
            'watches are set again, and changes in between may not have been reported';
    case 'auth-failed':
      return `${reason}: the session is over; the next command opens another, without these credentials`;
    case 'connecting':
    case 'closed':
      return null;
  }
}

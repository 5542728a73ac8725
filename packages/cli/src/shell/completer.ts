import { joinPath } from '@meerkat/client';
import { Answers } from './answers.ts';
import { type Completion, candidatesFor, completionOf, cursorOf, splitPath, wordEnd } from './completion.ts';
import { defineLine, type LineCommand } from './line-command.ts';
import type { Shell } from './shell.ts';
import type { ShellCatalogEntry } from './shell-command.ts';
import type { Quote } from './words.ts';
import { resolvePath } from './znode-path.ts';

/** Limit for an answer. Milliseconds. */
const ASK_MS = 2000;

/**
 * Completes commands, options and paths from what is known at once. What is not known is asked for, and `onNews` called
 * when it has come: typing continues meanwhile.
 */
export class Completer {
  readonly #shell: Shell;
  readonly #onNews: () => void;
  readonly #listings: Answers<readonly string[]>;
  /** Which znodes have children. */
  readonly #parents: Answers<boolean>;
  readonly #commands: Map<string, LineCommand> = new Map();

  constructor(shell: Shell, onNews: () => void) {
    this.#shell = shell;
    this.#onNews = onNews;
    this.#listings = new Answers(onNews);
    this.#parents = new Answers(onNews);
  }

  /** A command has run: what is known of the tree may be wrong. */
  forget(): void {
    this.#listings.clear();
    this.#parents.clear();
  }

  /** @param line up to the cursor. @returns null when the answer has to be waited for */
  complete(line: string): Completion | null {
    const { slot, quote } = cursorOf(line);
    if (slot.kind === 'command' || (slot.command === 'help' && slot.before.length === 0)) {
      return this.#among(this.#shell.commands.entries.map(({ name }) => name).sort(), slot.typed, quote);
    }
    const entry = this.#shell.commands.find(slot.command);
    if (entry === null) return null;
    const command = this.#commands.get(entry.name);
    if (command === undefined) {
      void this.#define(entry);
      return null;
    }
    const { texts, mayBePath } = candidatesFor(command.command, command.program, slot.before, slot.typed);
    return mayBePath ? this.#path(slot.typed, quote) : this.#among(texts, slot.typed, quote);
  }

  /** It is not run: nothing but its options and arguments is looked at. */
  async #define(entry: ShellCatalogEntry): Promise<void> {
    const host = { isShell: true, catalog: this.#shell.catalog, run: async () => {}, shell: this.#shell } as const;
    this.#commands.set(entry.name, await defineLine(entry, this.#shell.io, () => host));
    this.#onNews();
  }

  #among(texts: readonly string[], typed: string, quote: Quote | null): Completion {
    return completionOf(
      texts.filter((text) => text.startsWith(typed)),
      typed,
      quote,
      wordEnd(quote),
    );
  }

  #path(typed: string, quote: Quote | null): Completion | null {
    const { parent, start } = splitPath(typed);
    const path = resolvePath(this.#shell.currentPath, parent);
    const names = this.#namesBelow(path);
    if (names === null) return null;
    const fitting = names.filter((name) => name.startsWith(start));
    const [only] = fitting;
    if (only === undefined || fitting.length > 1) return completionOf(fitting, start, quote, '');
    // A "/" behind it where the way continues.
    const isParent = this.#isParent(joinPath(path, only));
    if (isParent === null) return null;
    return completionOf(fitting, start, quote, isParent ? '/' : wordEnd(quote));
  }

  /** @returns null when they have to be asked for */
  #namesBelow(path: string): readonly string[] | null {
    return this.#listings.get(
      path,
      this.#shell.session.client,
      async (client) => {
        const { children } = await client.children(path, { timeoutMs: ASK_MS });
        return children.toSorted();
      },
      [],
    );
  }

  #isParent(path: string): boolean | null {
    return this.#parents.get(
      path,
      this.#shell.session.client,
      async (client) => {
        return ((await client.exists(path, { timeoutMs: ASK_MS }))?.numChildren ?? 0) > 0;
      },
      false,
    );
  }
}

import type { Command } from 'commander';
import { FORMATS } from '../output/report.ts';
import { type Quote, scan } from './words.ts';

/** The word at the cursor, and its completions. */
export type Slot =
  | { readonly kind: 'command'; readonly typed: string }
  /** A word of a command that is not its first. `before` are the words between. */
  | { readonly kind: 'word'; readonly command: string; readonly before: readonly string[]; readonly typed: string };

/** The word at the end of the line, without quotes and escapes; an open quote stays with it. */
export interface Cursor {
  readonly slot: Slot;
  readonly quote: Quote | null;
}

/** @param line up to the cursor */
export function cursorOf(line: string): Cursor {
  const { last, isInWord, missing } = scan(line);
  const words = last.map(({ text }) => text);
  const typed = isInWord ? (words.pop() ?? '') : '';
  const quote = missing?.kind === 'quote' ? missing.quote : null;
  const [command, ...before] = words;
  return { slot: command === undefined ? { kind: 'command', typed } : { kind: 'word', command, before, typed }, quote };
}

/** What a word of a command can be: one of these texts, or the path of a znode. */
export interface Candidates {
  readonly texts: readonly string[];
  readonly mayBePath: boolean;
}

/** @param line the options of every line */
export function candidatesFor(command: Command, line: Command, before: readonly string[], typed: string): Candidates {
  const options = [...command.options, ...line.options];
  const previous = before.at(-1) ?? '';
  const pending = options.find(({ short, long, required }) => required && (short === previous || long === previous));
  if (pending !== undefined) {
    const texts = pending.long === '--output' ? FORMATS : (pending.argChoices ?? []);
    return { texts, mayBePath: false };
  }
  if (typed.startsWith('-')) return { texts: options.flatMap(({ long }) => long ?? []), mayBePath: false };
  const position = before.filter((word) => !word.startsWith('-')).length;
  const argument = command.registeredArguments[position] ?? command.registeredArguments.at(-1);
  if (argument === undefined) return { texts: [], mayBePath: false };
  if (argument.argChoices !== undefined) return { texts: argument.argChoices, mayBePath: false };
  return { texts: [], mayBePath: true };
}

/** A completion for the terminal: what the end of the line, `on`, may become. */
export interface Completion {
  readonly texts: readonly string[];
  readonly on: string;
}

/** More are not listed. */
const LISTED_MAX = 100;

/**
 * @param fitting names that begin with what was typed, `on`
 * @param tail goes behind the only one
 */
export function completionOf(fitting: readonly string[], on: string, quote: Quote | null, tail: string): Completion {
  const typed = escapeWord(on, quote);
  const [only, second] = fitting;
  if (only === undefined) return { texts: [], on: typed };
  if (second === undefined) return { texts: [`${escapeWord(only, quote)}${tail}`], on: typed };
  const common = commonStart(fitting);
  if (common.length > on.length) return { texts: [escapeWord(common, quote)], on: typed };
  const listed = fitting.slice(0, LISTED_MAX);
  const more = fitting.length - listed.length;
  return { texts: more === 0 ? listed : [...listed, `… ${more} more`], on: typed };
}

/** What goes behind a whole word. */
export function wordEnd(quote: Quote | null): string {
  return `${quote === null ? '' : quote.slice(-1)} `;
}

/** What all of them begin with. */
function commonStart(names: readonly string[]): string {
  let common = names[0] ?? '';
  for (const name of names) while (!name.startsWith(common)) common = common.slice(0, -1);
  return common;
}

/** As a word must be typed so that it is this text. */
export function escapeWord(text: string, quote: Quote | null): string {
  if (quote === '"') return text.replace(/["\\]/g, '\\$&');
  if (quote !== null) return text;
  return text.replace(/[ \t\\;]|^['"#<]|^\$(?=')/g, '\\$&');
}

/** The znode whose children complete a path, and how the name of the child begins. */
export function splitPath(typed: string): { readonly parent: string; readonly start: string } {
  const end = typed.lastIndexOf('/') + 1;
  return { parent: typed.slice(0, end) || '.', start: typed.slice(end) };
}

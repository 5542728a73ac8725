import { InvocationFailure } from '../run/command-failure.ts';
import { type Io, writeAll } from '../run/io.ts';
import { type Column, cellText, dataColumns, tableColumns } from './column.ts';
import type { Paint } from './paint.ts';

/**
 * How a command says what it has found.
 *
 * - `table`: for people; may change from version to version. A command may write text of its own instead of a table.
 * - `json`: one JSON value: an array of what was found, or one object.
 * - `ndjson`: one JSON object a line, each as soon as it is known.
 * - `fields`: one thing a line, its fields in the documented order with tabs between them; backslash, tab, line feed and
 *   carriage return inside a field are written \\, \t, \n and \r.
 */
export const FORMATS = ['table', 'json', 'ndjson', 'fields'] as const;
export type Format = (typeof FORMATS)[number];

export function parseFormat(text: string, origin: string): Format {
  const format = FORMATS.find((known) => known === text);
  if (format === undefined)
    throw new InvocationFailure(`${origin}: expected one of ${FORMATS.join(', ')}, found "${text}"`);
  return format;
}

/** A list whose items are printed one after the other. */
export interface ListReport<T> {
  /** Resolves, or returns nothing, when the next one may come. */
  add(item: T): Promise<void> | undefined;
  end(): Promise<void> | undefined;
}

export class Report {
  readonly format: Format;
  readonly paint: Paint;
  readonly #io: Io;
  readonly #signal: AbortSignal | undefined;

  /** @param signal aborted: a slow reader is not waited for any longer */
  constructor(io: Io, format: Format, paint: Paint, signal?: AbortSignal) {
    this.#io = io;
    this.#signal = signal;
    this.format = format;
    this.paint = paint;
  }

  /** Whether a person reads it: text may be written then, and nothing else may otherwise. */
  get isForPeople(): boolean {
    return this.format === 'table';
  }

  /** Whether standard output is a terminal. */
  get isTerminal(): boolean {
    return this.#io.stdout.isTTY === true;
  }

  write(text: string | Uint8Array): Promise<void> | undefined {
    return writeAll(this.#io.stdout, text, this.#signal);
  }

  line(text: string): Promise<void> | undefined {
    return this.write(`${text}\n`);
  }

  /** Begins a list. */
  async list<T>(columns: readonly Column<T>[]): Promise<ListReport<T>> {
    const data = dataColumns(columns);
    switch (this.format) {
      case 'table': {
        const { Table } = await import('./table.ts');
        const table = new Table(columns, this.paint);
        return { add: (item) => this.write(table.add(item)), end: () => this.write(table.end()) };
      }
      case 'json': {
        let isFirst = true;
        return {
          add: (item) => {
            const text = `${isFirst ? '[\n' : ',\n'}  ${JSON.stringify(toObject(data, item))}`;
            isFirst = false;
            return this.write(text);
          },
          end: () => this.write(isFirst ? '[]\n' : '\n]\n'),
        };
      }
      case 'ndjson':
        return { add: (item) => this.line(JSON.stringify(toObject(data, item))), end: () => undefined };
      case 'fields':
        return { add: (item) => this.line(toFields(data, item)), end: () => undefined };
    }
  }

  /** Prints one item: for people, one field per line, as a name and a value. */
  one<T>(columns: readonly Column<T>[], item: T): Promise<void> | undefined {
    const data = dataColumns(columns);
    switch (this.format) {
      case 'table': {
        const shown = tableColumns(columns);
        const width = Math.max(...shown.map(({ name }) => name.length));
        const lines = shown.map(({ name, text, value }) => {
          return `${this.paint.dim(name.padEnd(width))}  ${text?.(item) ?? cellText(value(item))}`.trimEnd();
        });
        return this.line(lines.join('\n'));
      }
      case 'json':
        return this.line(JSON.stringify(toObject(data, item), null, 2));
      case 'ndjson':
        return this.line(JSON.stringify(toObject(data, item)));
      case 'fields':
        return this.line(toFields(data, item));
    }
  }
}

function toObject<T>(columns: readonly Column<T>[], item: T): object {
  return Object.fromEntries(columns.map(({ name, value }) => [name, value(item)]));
}

function toFields<T>(columns: readonly Column<T>[], item: T): string {
  return columns.map(({ value }) => escapeField(cellText(value(item)))).join('\t');
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/** One field of the format `fields`. */
export function escapeField(text: string): string {
  return text.replace(/[\\\t\n\r]/g, (character) => ESCAPES[character] ?? character);
}

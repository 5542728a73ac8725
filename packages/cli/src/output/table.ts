import stringWidth from 'string-width';
import { type Column, cellText, tableColumns } from './column.ts';
import type { Paint } from './paint.ts';

/** Rows that are looked at before the width of the columns is settled; later ones may be wider. */
const ROWS_LOOKED_AT = 1000;
const GAP = '  ';

/** Lines up columns: a header, then the rows. */
export class Table<T> {
  readonly #columns: readonly Column<T>[];
  readonly #paint: Paint;
  #waiting: string[][] = [];
  #widths: number[] | null = null;

  constructor(columns: readonly Column<T>[], paint: Paint) {
    this.#columns = tableColumns(columns);
    this.#paint = paint;
  }

  /** @returns what can be printed by now */
  add(item: T): string {
    const cells = this.#columns.map(({ text, value }) => text?.(item) ?? cellText(value(item)));
    if (this.#widths !== null) return this.#line(cells, this.#widths);
    this.#waiting.push(cells);
    return this.#waiting.length < ROWS_LOOKED_AT ? '' : this.#settle();
  }

  /** @returns what is left to print */
  end(): string {
    return this.#widths === null && this.#waiting.length > 0 ? this.#settle() : '';
  }

  #settle(): string {
    const headers = this.#columns.map(({ name }) => name);
    const rows = this.#waiting;
    this.#waiting = [];
    const widths = headers.map((header, i) =>
      rows.reduce((width, row) => Math.max(width, widthOf(row[i] ?? '')), header.length),
    );
    this.#widths = widths;
    return (
      this.#paint.bold(this.#line(headers, widths).trimEnd()) +
      '\n' +
      rows.map((row) => this.#line(row, widths)).join('')
    );
  }

  #line(cells: readonly string[], widths: readonly number[]): string {
    const padded = cells.map((cell, i) => {
      const padding = ' '.repeat(Math.max(0, (widths[i] ?? 0) - widthOf(cell)));
      return this.#columns[i]?.align === 'right' ? padding + cell : cell + padding;
    });
    return `${padded.join(GAP).trimEnd()}\n`;
  }
}

const PLAIN = /^[\x20-\x7e]*$/;

/** Columns on a terminal. */
export function widthOf(text: string): number {
  return PLAIN.test(text) ? text.length : stringWidth(text);
}

import type { Report } from '../output/report.ts';
import { count } from '../output/stat-columns.ts';
import { Table } from '../output/table.ts';
import type { Io, Output } from '../run/io.ts';
import { CHURN_COLUMNS, type ChurnTable } from './churn.ts';

/** How often the table is drawn again. Milliseconds. */
const EVERY_MS = 1000;

/** Draws the busiest znodes on a terminal, over and over in the same place. */
export class ChurnScreen implements Disposable {
  readonly #churn: ChurnTable;
  readonly #report: Report;
  readonly #stdout: Output & { readonly rows?: number };
  readonly #startMs = performance.now();
  readonly #timer: NodeJS.Timeout;
  /** Lines that are on the screen. */
  #height = 0;

  constructor(churn: ChurnTable, report: Report, { stdout }: Io) {
    this.#churn = churn;
    this.#report = report;
    this.#stdout = stdout;
    this.#timer = setInterval(() => this.#draw(), EVERY_MS);
  }

  /** Lets something else be written where the table stands; the table goes below it. */
  interrupt(write: () => void): void {
    void this.#report.write(this.#erasing);
    this.#height = 0;
    write();
    this.#draw();
  }

  /** Takes it off the screen. */
  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    void this.#report.write(this.#erasing);
    this.#height = 0;
  }

  get #erasing(): string {
    return this.#height === 0 ? '' : `\x1b[${this.#height}A\r\x1b[J`;
  }

  #draw(): void {
    const { rows = 24 } = this.#stdout;
    const elapsedMs = performance.now() - this.#startMs;
    const table = new Table(CHURN_COLUMNS, this.#report.paint);
    const busiest = this.#churn.rows(elapsedMs).slice(0, Math.max(1, rows - 4));
    const body = busiest.map((row) => table.add(row)).join('') + table.end();
    const text = `${describeChurn(this.#churn, elapsedMs)}\n${body}`;
    const lines = text.split('\n').slice(0, -1);
    // Lines are cut, not wrapped (?7l): a line that wraps would be two when it is erased.
    void this.#report.write(`${this.#erasing}\x1b[?7l${lines.join('\n')}\n\x1b[?7h`);
    this.#height = lines.length;
  }
}

/** `1,234 changes of 12 znodes in 60 s`. */
export function describeChurn(churn: ChurnTable, elapsedMs: number): string {
  const gaps = churn.gaps === 0 ? '' : `; changes may be missing ${countOf(churn.gaps, 'time')}`;
  const seconds = Math.round(elapsedMs / 1000);
  return `${countOf(churn.total, 'change')} of ${countOf(churn.paths, 'znode')} in ${seconds} s${gaps}`;
}

function countOf(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? '' : 's'}`;
}

import type { SeedOutcome } from './seed-outcome.ts';

interface Row {
  readonly name: string;
  readonly title: string;
  seeds: number;
  virtualMs: number;
  /** Seeds that violated a property. */
  violations: number;
  cpuMs: number;
}

/** Adds up the outcomes of the seeds of all simulations. */
export class Totals {
  /** By simulation, then by title. */
  readonly #rows: Map<string, Map<string, Row>>;
  readonly #total: Row = makeRow('all', '');
  #seeds = 0;

  /** @param names the simulations, in the order of the table */
  constructor(names: readonly string[]) {
    this.#rows = new Map(names.map((name) => [name, new Map()]));
  }

  /** Seeds of all simulations; one that runs in several tests counts once. */
  get seeds(): number {
    return this.#seeds;
  }

  get violations(): number {
    return this.#total.violations;
  }

  get virtualMs(): number {
    return this.#total.virtualMs;
  }

  add(name: string, { runs }: SeedOutcome): void {
    const rows = this.#rows.get(name);
    if (rows === undefined) return;
    this.#seeds++;
    for (const run of runs) {
      let row = rows.get(run.title);
      if (row === undefined) {
        row = makeRow(name, run.title);
        rows.set(run.title, row);
      }
      for (const sum of [row, this.#total]) {
        sum.seeds++;
        sum.virtualMs += run.virtualMs;
        sum.cpuMs += run.cpuMs;
        if (run.violation !== null) sum.violations++;
      }
    }
  }

  /** A table in Markdown. */
  format(): string {
    const rows = [...this.#rows.values()].flatMap((ofName) => [...ofName.values()]);
    return formatTable([COLUMNS, ...rows.map(cellsOf), cellsOf(this.#total)]);
  }
}

const COLUMNS = ['simulation', 'what holds', 'seeds', 'virtual hours', 'violations', 'CPU seconds'];
/** The first columns are text, the others numbers. */
const TEXT_COLUMNS = 2;

function makeRow(name: string, title: string): Row {
  return { name, title, seeds: 0, virtualMs: 0, violations: 0, cpuMs: 0 };
}

function cellsOf({ name, title, seeds, virtualMs, violations, cpuMs }: Row): string[] {
  const hours = (virtualMs / 3_600_000).toFixed(2);
  return [name, title, String(seeds), hours, String(violations), (cpuMs / 1000).toFixed(1)];
}

/** The first row is the head. */
function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const pad = (cell: string, column: number): string =>
    column < TEXT_COLUMNS ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  const lines = rows.map((row) => `| ${row.map(pad).join(' | ')} |`);
  const rule = widths.map((width, column) => (column < TEXT_COLUMNS ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  lines.splice(1, 0, `| ${rule.join(' | ')} |`);
  return lines.join('\n');
}

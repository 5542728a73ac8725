import type { Violation } from '../checkers/violation.ts';
import { Coverage, EXECUTED_SHARE_MIN, SUCCEEDED_PER_MINUTE_MIN } from '../coverage.ts';
import { DRAWN_FAULT_KINDS, type Fault } from '../fault.ts';
import { SIGHTINGS } from '../sightings.ts';
import type { SimulateStats } from '../simulate.ts';
import { TRAITS } from '../traits.ts';
import { CAMPAIGN_SHAPES, type CampaignShape } from './shapes.ts';

/** What came of one seed. */
export interface SeedOutcome {
  readonly seed: number;
  readonly stats: SimulateStats;
  readonly plan: readonly Fault[];
  /** The first ones. */
  readonly violations: readonly Violation[];
}

interface Row {
  seeds: number;
  virtualMs: number;
  operations: number;
  faults: number;
  epochs: number;
  serverStarts: number;
  /** Seeds that violated an invariant. */
  failures: number;
  /** The longest time from the healing of everything until everything worked. */
  recoveredMaxMs: number;
}

/** Adds up what a campaign has done. */
export class Tally {
  readonly #rows: Map<CampaignShape, Row> = new Map(CAMPAIGN_SHAPES.map((shape) => [shape, makeRow()]));
  readonly #coverage: Coverage = new Coverage();
  readonly #total: Row = makeRow();

  get seeds(): number {
    return this.#total.seeds;
  }

  get failures(): number {
    return this.#total.failures;
  }

  get virtualMs(): number {
    return this.#total.virtualMs;
  }

  add(shape: CampaignShape, outcome: SeedOutcome): void {
    const row = this.#rows.get(shape);
    if (row !== undefined) addTo(row, outcome);
    addTo(this.#total, outcome);
    this.#coverage.add(outcome);
  }

  /** What was below its floor, for people; few seeds do not reach everything. */
  get lacks(): readonly string[] {
    return this.#coverage.lacks(DRAWN_FAULT_KINDS, TRAITS);
  }

  /** Tables in Markdown: ensembles, kinds of faults, and what traits of worlds led to. */
  format(): string {
    const rows = [...this.#rows].map(([{ name }, row]): string[] => [name, ...cellsOf(row)]);
    const { executed, executedShare, succeededPerMinute } = this.#coverage;
    const kinds = DRAWN_FAULT_KINDS.map((kind) => [kind, String(executed.get(kind) ?? 0)]);
    const sightings = TRAITS.flatMap((trait) =>
      SIGHTINGS[trait].map((name) => [`${trait}: ${name}`, String(this.#coverage.countOf(name))]),
    );
    const progress = [
      `${Math.round(succeededPerMinute)} operations a virtual minute succeeded under faults; the floor is ${SUCCEEDED_PER_MINUTE_MIN}.`,
      `${Math.round(100 * executedShare)} % of the planned faults were carried out; the floor is ${100 * EXECUTED_SHARE_MIN} %.`,
    ];
    return [
      ...formatTable([COLUMNS, ...rows, ['all', ...cellsOf(this.#total)]]),
      '',
      ...formatTable([['fault', 'times'], ...kinds]),
      '',
      ...formatTable([['trait: what it led to', 'times'], ...sightings]),
      '',
      ...progress,
      ...this.lacks.map((lack) => `BELOW ITS FLOOR: ${lack}`),
    ].join('\n');
  }
}

const COLUMNS: readonly string[] = [
  'ensemble',
  'seeds',
  'virtual hours',
  'operations',
  'faults',
  'starts of servers',
  'epochs',
  'slowest recovery (s)',
  'seeds with violations',
];

function makeRow(): Row {
  return {
    seeds: 0,
    virtualMs: 0,
    operations: 0,
    faults: 0,
    epochs: 0,
    serverStarts: 0,
    failures: 0,
    recoveredMaxMs: 0,
  };
}

function addTo(row: Row, { stats, violations }: SeedOutcome): void {
  row.seeds++;
  row.virtualMs += stats.virtualMs;
  row.operations += stats.operations;
  row.faults += stats.faults;
  row.epochs += stats.epochs;
  row.serverStarts += stats.serverStarts;
  row.recoveredMaxMs = Math.max(row.recoveredMaxMs, stats.recoveredMs ?? 0);
  if (violations.length > 0) row.failures++;
}

function cellsOf(row: Row): string[] {
  const { seeds, operations, faults, serverStarts, epochs, failures } = row;
  const hours = (row.virtualMs / 3_600_000).toFixed(1);
  const recoveredMaxS = (row.recoveredMaxMs / 1000).toFixed(1);
  return [seeds, hours, operations, faults, serverStarts, epochs, recoveredMaxS, failures].map(String);
}

/** The first row is the head; the first column is text, the others are numbers. */
function formatTable(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0), 3));
  const pad = (cell: string, column: number): string =>
    column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  const lines = rows.map((row) => `| ${row.map(pad).join(' | ')} |`);
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  lines.splice(1, 0, `| ${rule.join(' | ')} |`);
  return lines;
}

import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import type { SeedOutcome } from './seed-outcome.ts';
import type { Slice } from './slices.ts';

/** A finished slice: a line of JSON. */
export interface SliceRecord extends Slice {
  /** Informative; slices are matched by `bundle`. */
  readonly commit: string;
  /** The hash of everything that ran. */
  readonly bundle: string;
  readonly outcomes: readonly SeedOutcome[];
}

export function appendRecord(file: string, record: SliceRecord): void {
  appendFileSync(file, `${JSON.stringify(record)}\n`);
}

/** A process that was killed may have left a truncated line: what is appended starts a new one. */
export function endLastLine(file: string): void {
  if (existsSync(file) && !/(^|\n)$/.test(readFileSync(file, 'utf8'))) appendFileSync(file, '\n');
}

/** The slices finished with the same sources; none when there is no file. */
export function readRecords(file: string, bundle: string): SliceRecord[] {
  if (!existsSync(file)) return [];
  const records: SliceRecord[] = [];
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const record = parseRecord(line);
    if (record !== null && record.bundle === bundle) records.push(record);
  }
  return records;
}

/** @returns null for a truncated or empty line */
function parseRecord(line: string): SliceRecord | null {
  try {
    return line === '' ? null : (JSON.parse(line) as SliceRecord);
  } catch {
    return null;
  }
}

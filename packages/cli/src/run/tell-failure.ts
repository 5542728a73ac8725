import type { Report } from '../output/report.ts';
import { type Io, writeAll } from './io.ts';

/** A failure on standard error: a line for people, an object for scripts that read JSON. */
export async function tellFailure(error: unknown, report: Report, io: Io): Promise<void> {
  // It loads the client, which what does not fail may not need.
  const { explainFailure } = await import('./failure.ts');
  const { exitCode, code, message, path } = explainFailure(error);
  const isJson = report.format === 'json' || report.format === 'ndjson';
  const text = isJson ? JSON.stringify({ error: { code, exitCode, path, message } }) : `meerkat: ${message}`;
  await writeAll(io.stderr, `${text}\n`);
}

/** It ended because it was told to. */
export function isAbortion(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || ('code' in error && error.code === 'ABORTED'));
}

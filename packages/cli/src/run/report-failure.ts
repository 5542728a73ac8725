import type { Report } from '../output/report.ts';
import { type Io, writeAll } from './io.ts';

/** A failure on standard error: a line for people, an object for scripts that read JSON. */
export async function reportFailure(error: unknown, report: Report, io: Io): Promise<void> {
  // Loaded only on failure: it imports the client.
  const { explainFailure } = await import('./failure.ts');
  const { exitCode, code, message, path } = explainFailure(error);
  const isJson = report.format === 'json' || report.format === 'ndjson';
  const text = isJson ? JSON.stringify({ error: { code, exitCode, path, message } }) : `meerkat: ${message}`;
  await writeAll(io.stderr, `${text}\n`);
}

/** Whether a run was aborted on request. */
export function isAbortion(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || ('code' in error && error.code === 'ABORTED'));
}

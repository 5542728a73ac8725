import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileFailure } from '../run/command-failure.ts';

/** One line of the log of a server or client: Meerkat's, Apache's, or another implementation's. */
export interface LogLine {
  /** The text without time and level, as far as these were found. */
  readonly text: string;
  /** Milliseconds, comparable within one file; null of a line without a time. */
  readonly timeMs: number | null;
  /** As it stood in the file. */
  readonly time: string;
}

/** Reads a log: ours as text or JSON, Apache's with any of the usual layouts, or what a client has written. */
export async function* readLog(path: string): AsyncGenerator<LogLine> {
  const input = createReadStream(path, 'utf8');
  try {
    let before: LogLine | null = null;
    for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      const line = parseLogLine(text);
      // An exception stands below the line that has its time.
      before = line.timeMs === null && before !== null ? later(line, before) : line;
      yield before;
    }
  } catch (error) {
    throw fileFailure(`cannot read the log ${path}`, error);
  }
}

function later({ text }: LogLine, { timeMs, time }: LogLine): LogLine {
  return { text, timeMs, time };
}

export function parseLogLine(line: string): LogLine {
  if (line.startsWith('{')) {
    const record = parseRecord(line);
    if (record !== null) return record;
  }
  const found = TIME.exec(line);
  if (found === null) return { text: line, timeMs: null, time: '' };
  const [time, date = '1970-01-01', clock = ''] = found;
  const timeMs = Date.parse(`${date}T${clock.replace(',', '.')}Z`);
  return {
    text: line.slice(found.index + time.length).trimStart(),
    timeMs: Number.isNaN(timeMs) ? null : timeMs,
    time,
  };
}

/** `2026-11-21 10:03:11.123`, with a comma in Apache's, or the time alone. */
const TIME = /(?:(\d{4}-\d\d-\d\d)[ T])?\b(\d\d:\d\d:\d\d[.,]\d{3})/;

function parseRecord(line: string): LogLine | null {
  try {
    const { time, msg } = JSON.parse(line) as { time?: unknown; msg?: unknown };
    if (typeof msg !== 'string') return null;
    const timeMs = typeof time === 'number' ? time : null;
    return { text: msg, timeMs, time: timeMs === null ? '' : new Date(timeMs).toISOString() };
  } catch {
    return null;
  }
}

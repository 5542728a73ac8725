import type { ConnectionWords } from '../connection/connection-words.ts';
import { parseDuration } from '../connection/duration.ts';
import { Paint } from '../output/paint.ts';
import { parseFormat, Report } from '../output/report.ts';
import type { Io } from './io.ts';

/** The options that every command has besides those of the connection. */
export interface CommonWords extends ConnectionWords {
  readonly output?: string;
  readonly quiet?: boolean;
  /** --no-color makes it false. */
  readonly color?: boolean;
}

/** As the command line, else the environment, wants it. */
export function makeReport(io: Io, words: CommonWords, signal: AbortSignal): Report {
  const fromEnvironment = io.env['MEERKAT_OUTPUT'];
  const format =
    words.output !== undefined
      ? parseFormat(words.output, '-o')
      : fromEnvironment === undefined || fromEnvironment === ''
        ? 'table'
        : parseFormat(fromEnvironment, 'MEERKAT_OUTPUT');
  return new Report(io, format, Paint.for(io.stdout, io, words.color !== false), signal);
}

/** How long one request may take. */
export function timeoutOf(words: CommonWords): number | undefined {
  return words.timeout === undefined ? undefined : parseDuration(words.timeout, '--timeout');
}

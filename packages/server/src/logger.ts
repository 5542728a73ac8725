import type { Logger as PinoLogger } from 'pino';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Where the server says what happens, for people and for machines. */
export interface Logger {
  log(level: LogLevel, message: string, fields?: LogFields): void;
}

/** Values that a machine can look for; a line for people has them in its words already. */
export type LogFields = Readonly<Record<string, string | number | boolean>>;

export interface LoggerOptions {
  /** One line of text, or one line of JSON (`MEERKAT_LOG=json`). */
  readonly format: 'text' | 'json';
  /** The least level that is shown (`MEERKAT_LOG_LEVEL`). */
  readonly level: LogLevel;
}

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/** Reads the environment; what it does not understand counts as not set. */
export function readLoggerOptions(environment: NodeJS.ProcessEnv): LoggerOptions {
  const level = LEVELS.find((known) => known === environment['MEERKAT_LOG_LEVEL']?.toLowerCase());
  return { format: environment['MEERKAT_LOG']?.toLowerCase() === 'json' ? 'json' : 'text', level: level ?? 'info' };
}

/** A logger that writes to the standard error stream. pino is loaded only for JSON: it costs 30 ms of a start. */
export async function makeLogger(options: LoggerOptions): Promise<Logger> {
  if (options.format === 'text') return new TextLogger(options.level, (line) => process.stderr.write(line));
  const { pino } = await import('pino');
  return new JsonLogger(
    pino(
      { level: options.level, base: { service: 'meerkat', pid: process.pid } },
      pino.destination({ dest: 2, sync: true }),
    ),
  );
}

/** Characters of a message, and of each of its fields. Clients and other servers have a say in what stands there. */
const CHARACTERS_MAX = 2000;

/** What is left out at the end of a long text is counted. */
export function cutText(text: string): string {
  if (text.length <= CHARACTERS_MAX) return text;
  return `${text.slice(0, CHARACTERS_MAX)}… and ${text.length - CHARACTERS_MAX} more characters`;
}

/** For embedding: says nothing. */
export const SILENT_LOGGER: Logger = { log() {} };

/** `2026-11-21 10:03:11.123 INFO  serves clients on 127.0.0.1:2181`, times in UTC. */
export class TextLogger implements Logger {
  readonly #least: number;
  readonly #write: (line: string) => void;

  constructor(level: LogLevel, write: (line: string) => void) {
    this.#least = LEVELS.indexOf(level);
    this.#write = write;
  }

  log(level: LogLevel, message: string): void {
    if (LEVELS.indexOf(level) < this.#least) return;
    const time = new Date().toISOString().replace('T', ' ').replace('Z', '');
    // One event is one line, whatever a client managed to put into it.
    const line = cutText(message).replace(/\p{Cc}+/gu, ' ');
    this.#write(`${time} ${level.toUpperCase().padEnd(5)} ${line}\n`);
  }
}

export class JsonLogger implements Logger {
  readonly #pino: PinoLogger;

  constructor(pino: PinoLogger) {
    this.#pino = pino;
  }

  log(level: LogLevel, message: string, fields: LogFields = {}): void {
    const short = Object.entries(fields).map(([key, value]) => [
      key,
      typeof value === 'string' ? cutText(value) : value,
    ]);
    this.#pino[level](Object.fromEntries(short), cutText(message));
  }
}

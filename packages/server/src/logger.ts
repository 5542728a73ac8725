import type { Logger as PinoLogger } from 'pino';
import { ApacheLines } from './apache-lines.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Where the server says what happens, for people and for machines. */
export interface Logger {
  log(level: LogLevel, message: string, fields?: LogFields): void;
}

/** Values that a machine can look for; a line for people has them in its words already. */
export type LogFields = Readonly<Record<string, string | number | boolean>>;

export interface LoggerOptions {
  /** One line of text, one line of JSON (`MEERKAT_LOG=json`), or text as Apache's server writes it (`zookeeper`). */
  readonly format: 'text' | 'json' | 'zookeeper';
  /** The least level that is shown (`MEERKAT_LOG_LEVEL`). */
  readonly level: LogLevel;
}

const FORMATS: readonly LoggerOptions['format'][] = ['text', 'json', 'zookeeper'];
const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/** Reads the environment; what it does not understand counts as not set. */
export function readLoggerOptions(environment: NodeJS.ProcessEnv): LoggerOptions {
  const level = LEVELS.find((known) => known === environment['MEERKAT_LOG_LEVEL']?.toLowerCase());
  const format = FORMATS.find((known) => known === environment['MEERKAT_LOG']?.toLowerCase());
  return { format: format ?? 'text', level: level ?? 'info' };
}

/**
 * A logger that writes to the standard error stream. pino is loaded only for JSON: it costs 30 ms of a start.
 *
 * @param serverId of a member of an ensemble
 */
export async function makeLogger(options: LoggerOptions, serverId: number | null = null): Promise<Logger> {
  const write = (line: string): unknown => process.stderr.write(line);
  if (options.format === 'text') return new TextLogger(options.level, write);
  if (options.format === 'zookeeper') return new ApacheLogger(options.level, serverId, write);
  const { pino } = await import('pino');
  return new JsonLogger(
    pino(
      { level: options.level, base: { service: 'meerkat', pid: process.pid } },
      pino.destination({ dest: 2, sync: true }),
    ),
  );
}

/** Maximum of characters of a message and of each field, as they may quote clients and other servers. */
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
    // One event is one line: control characters from clients are removed.
    const line = cutText(message).replace(/\p{Cc}+/gu, ' ');
    this.#write(`${time} ${level.toUpperCase().padEnd(5)} ${line}\n`);
  }
}

/**
 * `2026-11-21 10:03:11,123 [myid:1] - INFO  [main:session-expired@0] - Expiring session 0x1b, timeout of 4000ms exceeded`:
 * lines as programs that read the logs of Apache's server expect them, its own text before ours where it has one.
 */
export class ApacheLogger implements Logger {
  readonly #least: number;
  readonly #serverId: number | null;
  readonly #write: (line: string) => void;
  readonly #lines: ApacheLines;

  constructor(level: LogLevel, serverId: number | null, write: (line: string) => void) {
    this.#least = LEVELS.indexOf(level);
    this.#serverId = serverId;
    this.#write = write;
    this.#lines = new ApacheLines(serverId);
  }

  log(level: LogLevel, message: string, fields: LogFields = {}): void {
    const now = new Date();
    const isShown = LEVELS.indexOf(level) >= this.#least;
    const time = now.toISOString().replace('T', ' ').replace('.', ',').replace('Z', '');
    const place = `[main:${fields['event'] ?? 'Server'}@0]`;
    const emit = (shown: LogLevel, text: string): void => {
      const line = cutText(text).replace(/\p{Cc}+/gu, ' ');
      this.#write(`${time} [myid:${this.#serverId ?? ''}] - ${shown.toUpperCase().padEnd(5)} ${place} - ${line}\n`);
    };
    for (const { text, isForAll } of this.#lines.of(message, fields, now.getTime())) {
      if (isShown) emit(level, text);
      else if (isForAll === true && this.#least <= LEVELS.indexOf('info')) emit('info', text);
    }
    if (isShown) emit(level, message);
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

import { appendFile } from 'node:fs';
import { userInfo } from 'node:os';
import type { Audit, AuditEntry } from '@meerkat/core';
import { fieldsOf, formatAuditLine, type ServerEvent } from './audit-line.ts';

export interface AuditOptions {
  /** Absolute path of the file that lines are appended to; null: standard output. */
  readonly path: string | null;
  readonly format: 'text' | 'json';
}

/** Characters that wait to be written; of more, entries are left out and counted. */
const WAITING_MAX = 16 * 1024 * 1024;

/**
 * The audit log: a line for each change that clients of this server have made or tried to make.
 *
 * The file is opened anew for each batch of lines, so that it may be renamed at any time. Nothing waits for it: lines that a
 * full or slow disk does not take are lost, and the server's log says how many.
 */
export class AuditLog implements Audit {
  readonly #options: AuditOptions;
  readonly #warn: (message: string) => void;
  readonly #user: string = userName();
  #waiting: string[] = [];
  #waitingLength = 0;
  #leftOut = 0;
  #isWriting = false;
  #idle: (() => void)[] = [];

  /** @param warn hears of lines that are lost */
  constructor(options: AuditOptions, warn: (message: string) => void) {
    this.#options = options;
    this.#warn = warn;
  }

  add(entry: AuditEntry | ServerEvent): void {
    if (this.#waitingLength > WAITING_MAX) {
      this.#leftOut++;
      return;
    }
    const line = this.#format(entry);
    this.#waiting.push(line);
    this.#waitingLength += line.length;
    if (this.#waiting.length === 1 && !this.#isWriting) setImmediate(() => this.#write());
  }

  /** Resolves once everything that was added is written, or lost. */
  flush(): Promise<void> {
    if (this.#waiting.length === 0 && !this.#isWriting) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #format(entry: AuditEntry | ServerEvent): string {
    const fields = fieldsOf(entry, this.#user);
    const level = fields.get('result') === 'failure' ? 'ERROR' : 'INFO';
    const time = new Date().toISOString();
    if (this.#options.format === 'json') {
      return `${JSON.stringify({ time, level: level.toLowerCase(), ...Object.fromEntries(fields) })}\n`;
    }
    return `${time.replace('T', ' ').replace('Z', '')} ${level.padEnd(5)} ${formatAuditLine(fields)}\n`;
  }

  #write(): void {
    const lines = this.#waiting;
    if (lines.length === 0 || this.#isWriting) return;
    this.#waiting = [];
    this.#waitingLength = 0;
    this.#isWriting = true;
    const done = (error?: Error | null): void => {
      this.#isWriting = false;
      const lost = this.#leftOut + (error ? lines.length : 0);
      this.#leftOut = 0;
      if (lost > 0) this.#warn(`the audit log has lost ${lost} lines: ${error?.message ?? 'they came too fast'}`);
      if (this.#waiting.length > 0) this.#write();
      else for (const resolve of this.#idle.splice(0)) resolve();
    };
    const { path } = this.#options;
    if (path === null) process.stdout.write(lines.join(''), done);
    else appendFile(path, lines.join(''), { mode: 0o640 }, done);
  }
}

/** Java's `user.name`; a container may run as a number that nobody has named. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}

import { appendFile } from 'node:fs';
import { userInfo } from 'node:os';
import type { Audit, AuditEntry } from '@meerkat/core';
import { type AdminEvent, fieldsOf, formatAuditLine, formatSessionId, type ServerEvent } from './audit-line.ts';

export interface AuditOptions {
  /** Absolute path of the file that lines are appended to; null: standard output. */
  readonly path: string | null;
  readonly format: 'text' | 'json';
}

const SESSION_TEXTS_MAX = 1000;
/** Milliseconds between two batches while lines keep coming: to open the file takes longer than to write a hundred lines. */
const PAUSE_MS = 20;
/** Characters that wait to be written; of more, entries are left out and counted. */
const WAITING_MAX = 16 * 1024 * 1024;

/**
 * The audit log: a line for each change that clients of this server have made or tried to make.
 *
 * The file is reopened for each batch of lines, so that it may be renamed at any time. No request waits for it: lines
 * that a full or slow disk does not take are dropped, and the server's log reports how many.
 */
export class AuditLog implements Audit {
  readonly #options: AuditOptions;
  readonly #warn: (message: string) => void;
  readonly #user: string = userName();
  readonly #sessionTexts = new Map<bigint, string>();
  #timeMs = Number.NaN;
  #timeText = '';
  #waiting: string[] = [];
  #waitingLength = 0;
  #leftOut = 0;
  #isWriting = false;
  #timer: NodeJS.Timeout | null = null;
  #idle: (() => void)[] = [];

  /** @param warn is notified of dropped lines */
  constructor(options: AuditOptions, warn: (message: string) => void) {
    this.#options = options;
    this.#warn = warn;
  }

  add(entry: AuditEntry | ServerEvent | AdminEvent): void {
    if (this.#waitingLength > WAITING_MAX) {
      this.#leftOut++;
      return;
    }
    const line = this.#format(entry);
    this.#waiting.push(line);
    this.#waitingLength += line.length;
    if (this.#waiting.length === 1 && !this.#isWriting && this.#timer === null) setImmediate(this.#write);
  }

  /** Resolves once everything that was added is written, or lost. */
  flush(): Promise<void> {
    if (this.#waiting.length === 0 && !this.#isWriting) return Promise.resolve();
    const flushed = new Promise<void>((resolve) => this.#idle.push(resolve));
    this.#write();
    return flushed;
  }

  #format(entry: AuditEntry | ServerEvent | AdminEvent): string {
    const fields = fieldsOf(entry, this.#user, this.#sessionText);
    const isFailure = fields.result === 'failure';
    if (this.#options.format === 'json') {
      return `${JSON.stringify({ time: this.#time('json'), level: isFailure ? 'error' : 'info', ...fields })}\n`;
    }
    return `${this.#time('text')} ${isFailure ? 'ERROR' : 'INFO '} ${formatAuditLine(fields)}\n`;
  }

  /** Written once for each millisecond. */
  #time(format: 'text' | 'json'): string {
    const nowMs = Date.now();
    if (nowMs !== this.#timeMs) {
      const time = new Date(nowMs).toISOString();
      this.#timeMs = nowMs;
      this.#timeText = format === 'json' ? time : time.replace('T', ' ').replace('Z', '');
    }
    return this.#timeText;
  }

  /** Of the sessions that had entries last, their ids as text: to write one takes as long as the rest of a line. */
  readonly #sessionText = (id: bigint): string => {
    let text = this.#sessionTexts.get(id);
    if (text !== undefined) return text;
    text = formatSessionId(id);
    if (this.#sessionTexts.size >= SESSION_TEXTS_MAX) this.#sessionTexts.clear();
    this.#sessionTexts.set(id, text);
    return text;
  };

  readonly #write = (): void => {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
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
      if (this.#waiting.length === 0) for (const resolve of this.#idle.splice(0)) resolve();
      else if (this.#idle.length > 0) this.#write();
      else this.#timer = setTimeout(this.#write, PAUSE_MS);
    };
    const { path } = this.#options;
    if (path === null) process.stdout.write(lines.join(''), done);
    else appendFile(path, lines.join(''), { mode: 0o640 }, done);
  };
}

/** Java's `user.name`; a container may run as a user id without a name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}

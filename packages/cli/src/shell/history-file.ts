import { appendFileSync, chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Io } from '../run/io.ts';
import { makeDirectory } from '../run/make-directory.ts';

/** Commands that are kept. The file is rewritten when it has twice as many lines. */
const KEPT_MAX = 2000;

/**
 * The commands of earlier shells, oldest first, a line each; a command of several lines is written as a JSON string. Shells
 * that run at the same time append to it side by side.
 *
 * It is a convenience: a file that cannot be read or written is left alone, without a message.
 */
export class HistoryFile {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** $XDG_STATE_HOME/meerkat/history, else ~/.local/state/meerkat/history. */
  static of(env: Io['env']): HistoryFile {
    const state = env['XDG_STATE_HOME'];
    const home = env['HOME'] ?? homedir();
    // The specification has a relative path be ignored.
    const directory = state?.startsWith('/') === true ? state : join(home, '.local', 'state');
    return new HistoryFile(join(directory, 'meerkat', 'history'));
  }

  /** The latest ones, oldest first. */
  read(): readonly string[] {
    let lines: string[];
    try {
      lines = readFileSync(this.path, 'utf8').split('\n');
    } catch {
      return [];
    }
    const commands = lines.filter((line) => line !== '').map(decode);
    const kept = commands.slice(-KEPT_MAX);
    if (commands.length > 2 * KEPT_MAX) this.#rewrite(kept);
    return kept;
  }

  append(command: string): void {
    if (!isKept(command)) return;
    try {
      makeDirectory(dirname(this.path), 0o700);
      appendFileSync(this.path, `${encode(command)}\n`, { mode: 0o600 });
      // It may be from before, and open to others.
      chmodSync(this.path, 0o600);
    } catch {
      // See above.
    }
  }

  #rewrite(commands: readonly string[]): void {
    const draft = `${this.path}.${process.pid}`;
    try {
      writeFileSync(draft, commands.map((command) => `${encode(command)}\n`).join(''), { mode: 0o600 });
      renameSync(draft, this.path);
    } catch {
      // See above.
    }
  }
}

/** Passwords in commands: addauth, --auth, --sasl, and the ACL entry password:user:…. */
const CREDENTIALS = /\baddauth\b|--(?:auth|sasl)\b|(?:^|[\s,'"])password:|\b[a-z]+:\/\/[^/\s]*@/i;

/** A command with credentials is not kept, nor one that begins with a blank: that is how one asks for it. */
export function isKept(command: string): boolean {
  return !/^\s|^$/.test(command) && !CREDENTIALS.test(command);
}

function encode(command: string): string {
  return command.includes('\n') || command.startsWith('"') ? JSON.stringify(command) : command;
}

function decode(line: string): string {
  if (!line.startsWith('"')) return line;
  try {
    return String(JSON.parse(line));
  } catch {
    return line;
  }
}

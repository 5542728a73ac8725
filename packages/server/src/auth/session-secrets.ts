import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { APACHE_SESSION_PASSWORDS, isSamePassword, type SessionPasswords } from '@meerkat/core';
import { describeUnreadable } from '../unreadable-file.ts';

/** How the passwords of sessions are made: from a secret, or (null) by Apache's public formula. */
type Rule = Uint8Array | null;

/** The rules of a file, the first makes passwords, all are accepted. What prints this object shows no secret. */
export class SessionRules {
  readonly #rules: readonly Rule[];

  constructor(rules: readonly Rule[]) {
    this.#rules = rules;
  }

  get count(): number {
    return this.#rules.length;
  }

  /** Whether passwords that anybody can compute are accepted. */
  get acceptsPublic(): boolean {
    return this.#rules.includes(null);
  }

  make(sessionId: bigint): Uint8Array {
    return compute(this.#rules[0] ?? null, sessionId);
  }

  isValid(sessionId: bigint, password: Uint8Array): boolean {
    return this.#rules.some((rule) => isSamePassword(password, compute(rule, sessionId)));
  }
}

/** Characters of a secret, at least. */
const SECRET_LENGTH_MIN = 32;
const APACHE = 'apache';

/**
 * Reads a file of secrets: one on each line, or the word `apache` for Apache's formula. Empty lines and those that begin with `#`
 * are left out.
 */
export function parseSessionSecrets(
  text: string,
): { readonly rules: SessionRules } | { readonly fault: { readonly line: number | null; readonly found: string } } {
  const rules: Rule[] = [];
  const seen = new Set<string>();
  for (const [i, whole] of text.split(/\r?\n/).entries()) {
    const line = whole.trim();
    if (line === '' || line.startsWith('#')) continue;
    if (line !== APACHE && line.length < SECRET_LENGTH_MIN) {
      return { fault: { line: i + 1, found: `a secret of ${line.length} characters` } };
    }
    if (seen.has(line)) return { fault: { line: i + 1, found: 'a line again' } };
    seen.add(line);
    rules.push(line === APACHE ? null : Buffer.from(line, 'utf8'));
  }
  return rules.length === 0 ? { fault: { line: null, found: 'no secret' } } : { rules: new SessionRules(rules) };
}

/** What a line of such a file may be. */
export const SECRETS_EXPECTED: string = `secrets of ${SECRET_LENGTH_MIN} characters at least, or the word ${APACHE}, each on a line of its own`;

/** The first 16 bytes of HMAC-SHA-256 of the session id, as 8 bytes. */
function compute(rule: Rule, sessionId: bigint): Uint8Array {
  if (rule === null) return APACHE_SESSION_PASSWORDS.make(sessionId);
  const id = Buffer.alloc(8);
  id.writeBigInt64BE(BigInt.asIntN(64, sessionId));
  return createHmac('sha256', rule).update(id).digest().subarray(0, 16);
}

export interface SessionSecretsEvents {
  onNotice(message: string): void;
  onWarning(message: string): void;
}

/** Milliseconds between two looks at the file. */
const POLL_MS = 2000;

/** The passwords of sessions by the secrets of a file, which is read again when it changes. */
export class SessionSecrets implements SessionPasswords {
  readonly #path: string;
  readonly #events: SessionSecretsEvents;
  #rules: SessionRules;
  #text: string | null = null;
  #timer: NodeJS.Timeout | null = null;

  /** @param rules what was read at the start */
  constructor(path: string, rules: SessionRules, events: SessionSecretsEvents) {
    this.#path = path;
    this.#rules = rules;
    this.#events = events;
  }

  make(sessionId: bigint): Uint8Array {
    return this.#rules.make(sessionId);
  }

  isValid(sessionId: bigint, password: Uint8Array): boolean {
    return this.#rules.isValid(sessionId, password);
  }

  start(): void {
    this.#timer = setInterval(() => void this.#look(), POLL_MS);
    this.#timer.unref();
    void this.#look();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  async #look(): Promise<void> {
    const text = await readFile(this.#path, 'utf8').catch((error: NodeJS.ErrnoException) => error);
    const seen = typeof text === 'string' ? text : `${text.code ?? text.message}`;
    if (this.#timer === null || seen === this.#text) return;
    const isFirst = this.#text === null;
    this.#text = seen;
    if (typeof text !== 'string') {
      this.#warn(`${this.#path}: ${describeUnreadable(this.#path, text)}`);
      return;
    }
    const parsed = parseSessionSecrets(text);
    if ('fault' in parsed) {
      const { line, found } = parsed.fault;
      this.#warn(`${this.#path}${line === null ? '' : `, line ${line}`}: found ${found}, expected ${SECRETS_EXPECTED}`);
      return;
    }
    this.#rules = parsed.rules;
    if (!isFirst) this.#events.onNotice(`${this.#path} was read again: ${describe(parsed.rules)}`);
  }

  #warn(what: string): void {
    this.#events.onWarning(`the new secrets of sessions are not used, those read before stay in force: ${what}`);
  }
}

function describe({ count, acceptsPublic }: SessionRules): string {
  const secrets = count - (acceptsPublic ? 1 : 0);
  return `${secrets} secret${secrets === 1 ? '' : 's'} of sessions${acceptsPublic ? ", and Apache's formula" : ''}`;
}

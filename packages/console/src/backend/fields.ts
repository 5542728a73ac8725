import { Refusal } from './refusal.ts';

/** The fields of a request's query or body, which are unvalidated until they are read. */
export class Fields {
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(values: unknown) {
    this.#values = typeof values === 'object' && values !== null ? (values as Record<string, unknown>) : {};
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined;
  }

  isNull(name: string): boolean {
    return this.#values[name] === null;
  }

  text(name: string, fallback?: string): string {
    const value = this.#values[name] ?? fallback;
    if (typeof value === 'string') return value;
    throw wrong(name, 'text', value);
  }

  /** The path of a znode; validated by the client. */
  path(name = 'path'): string {
    const value = this.text(name);
    if (value.startsWith('/')) return value;
    throw wrong(name, 'the path of a znode, which begins with "/"', value);
  }

  /** A whole number from `min` on, also as text. */
  number(name: string, min: number, fallback?: number): number {
    const given = this.#values[name] ?? fallback;
    const value = typeof given === 'string' && given !== '' ? Number(given) : given;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min) return value;
    throw wrong(name, `a whole number from ${min} on`, given);
  }

  flag(name: string): boolean {
    const value = this.#values[name] ?? false;
    if (typeof value === 'boolean') return value;
    throw wrong(name, 'true or false', value);
  }

  choice<T extends string>(name: string, choices: readonly T[], fallback?: T): T {
    const value = this.#values[name] ?? fallback;
    if (choices.includes(value as T)) return value as T;
    throw wrong(name, `one of ${choices.join(', ')}`, value);
  }

  list(name: string): readonly unknown[] {
    const value = this.#values[name];
    if (Array.isArray(value)) return value;
    throw wrong(name, 'a list', value);
  }

  /** base64; null for null. */
  bytes(name: string): Uint8Array | null {
    const value = this.#values[name];
    if (value === null) return null;
    const text = this.text(name);
    const bytes = Buffer.from(text, 'base64');
    // Node ignores characters that are not base64.
    if (bytes.toString('base64') !== text) throw wrong(name, 'base64', text);
    return bytes;
  }
}

function wrong(name: string, expected: string, found: unknown): Refusal {
  const shown = JSON.stringify(found)?.slice(0, 80) ?? 'nothing';
  return new Refusal(400, 'bad-field', `${name}: expected ${expected}, found ${shown}`);
}

/** Passwords by user names. What prints this object, as JSON or for a person, shows none of them. */
export class Passwords {
  readonly #passwords: ReadonlyMap<string, string>;

  constructor(passwords: ReadonlyMap<string, string>) {
    this.#passwords = new Map(passwords);
  }

  /** The password of a user; null when there is no such user. */
  of(name: string): string | null {
    return this.#passwords.get(name) ?? null;
  }

  get size(): number {
    return this.#passwords.size;
  }

  /** The same users, one of them with another password. A user who is not there is not added. */
  with(name: string, password: string): Passwords {
    return this.#passwords.has(name) ? new Passwords(new Map(this.#passwords).set(name, password)) : this;
  }
}

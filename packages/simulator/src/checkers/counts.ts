/** How often something happened, by name. */
export class Counts {
  readonly #counts: Map<string, { count: number }> = new Map();

  add(name: string): void {
    const known = this.#counts.get(name);
    if (known === undefined) this.#counts.set(name, { count: 1 });
    else known.count++;
  }

  /** @param prefix stands before each name */
  list(prefix: string): [name: string, count: number][] {
    return [...this.#counts].map(([name, { count }]) => [prefix + name, count]);
  }
}

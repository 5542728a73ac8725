/**
 * Counts the work that requests cost beyond what each of them costs, in units of some 50 to 100 ns: an entry of a list
 * compared, a znode visited, a watch set.
 *
 * Whoever does the work adds it here; whoever serves a client charges the client for it, request by request. No clock:
 * the same requests cost the same each time.
 */
export class WorkMeter {
  #units = 0;
  #turnUnits = 0;

  add(units: number): void {
    this.#units += units;
  }

  /**
   * A client is charged for what it has asked.
   *
   * @param units what its request costs besides what was added
   * @returns all of it: these, and what was added since the last call
   */
  charge(units: number): number {
    const all = this.#units + units;
    this.#units = 0;
    this.#turnUnits += all;
    return all;
  }

  /** What all clients were charged in this turn. */
  get turnUnits(): number {
    return this.#turnUnits;
  }

  onTurnEnd(): void {
    this.#turnUnits = 0;
  }
}

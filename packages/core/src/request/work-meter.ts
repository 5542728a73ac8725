/**
 * Counts the work of requests beyond their fixed cost, in units of about 50 to 100 ns, such as comparing a list entry,
 * visiting a znode or setting a watch.
 *
 * The code that does the work adds it here; the connection charges its client for it after each request. No clock is
 * used, so equal requests always cost the same.
 */
export class WorkMeter {
  #units = 0;
  #turnUnits = 0;

  add(units: number): void {
    this.#units += units;
  }

  /**
   * Charges a client for a request.
   *
   * @param units cost of the request besides the added units
   * @returns `units` plus everything added since the last call
   */
  charge(units: number): number {
    const all = this.#units + units;
    this.#units = 0;
    this.#turnUnits += all;
    return all;
  }

  /** Units charged in this turn, to all clients together. */
  get turnUnits(): number {
    return this.#turnUnits;
  }

  onTurnEnd(): void {
    this.#turnUnits = 0;
  }
}

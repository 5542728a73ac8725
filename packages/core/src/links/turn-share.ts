/** A connection's usage of a turn, in units of the work meter. When its share is used up it waits for its next turn. */
export class TurnShare {
  #turn = -1;
  #units = 0;
  #isUsed = false;

  get isUsed(): boolean {
    return this.#isUsed;
  }

  /**
   * @param turn number of the current turn
   * @param unitsMax the connection's share of it
   * @returns true when the share has just been used up
   */
  add(units: number, turn: number, unitsMax: number): boolean {
    if (this.#turn !== turn) {
      this.#turn = turn;
      this.#units = 0;
    }
    this.#units += units;
    if (this.#isUsed || this.#units < unitsMax) return false;
    this.#isUsed = true;
    return true;
  }

  /**
   * It needs no more of this turn.
   *
   * @returns false when its share was already used up
   */
  markUsed(): boolean {
    if (this.#isUsed) return false;
    this.#isUsed = true;
    return true;
  }

  /** Its next turn has come. */
  renew(): void {
    this.#isUsed = false;
    this.#units = 0;
  }
}

/** State of the servers at one moment. */
export interface QuorumSigns {
  /** Ids of the participants of the membership in force. */
  readonly voters: readonly number[];
  /** Whether the server is running, not paused, and its disk works. */
  isAble(server: number): boolean;
  /** Whether traffic passes in both directions. */
  areLinked(one: number, other: number): boolean;
}

/**
 * Distinguishes unavailability required by the quorum rule from unavailability although a majority could have worked.
 * Measures for how long no write was acknowledged while one and the same majority was running, undisturbed and
 * connected. Such a period may include an election and the start of a server.
 */
export class QuorumWatch {
  /** For each majority that is undisturbed now, by its members: since when. */
  readonly #since = new Map<string, number>();
  #lastWriteMs = 0;
  #longestMs = 0;
  #longest = '';

  /** Milliseconds. */
  get longestMs(): number {
    return this.#longestMs;
  }

  /** The majority of that period and when the period ended; '' when there was none. */
  get longest(): string {
    return this.#longest;
  }

  onWrite(atMs: number): void {
    this.#lastWriteMs = Math.max(this.#lastWriteMs, atMs);
  }

  look(nowMs: number, { voters, isAble, areLinked }: QuorumSigns): void {
    const undisturbed = new Set<string>();
    for (const majority of majoritiesOf(voters)) {
      const isWhole = majority.every(
        (server, i) => isAble(server) && majority.slice(0, i).every((other) => areLinked(server, other)),
      );
      if (!isWhole) continue;
      const name = majority.join(',');
      undisturbed.add(name);
      const sinceMs = this.#since.get(name) ?? nowMs;
      this.#since.set(name, sinceMs);
      const ms = nowMs - Math.max(sinceMs, this.#lastWriteMs);
      if (ms <= this.#longestMs) continue;
      this.#longestMs = ms;
      this.#longest = `servers ${name} of ${voters.join(',')}, until ${(nowMs / 1000).toFixed(1)} s`;
    }
    for (const name of this.#since.keys()) if (!undisturbed.has(name)) this.#since.delete(name);
  }
}

/** All minimal majorities; every larger one contains one of them. */
function majoritiesOf(voters: readonly number[]): readonly (readonly number[])[] {
  const size = Math.floor(voters.length / 2) + 1;
  const found: number[][] = [];
  const add = (chosen: readonly number[], from: number): void => {
    if (chosen.length === size) found.push([...chosen]);
    else for (let i = from; i < voters.length; i++) add([...chosen, voters[i]!], i + 1);
  };
  if (voters.length > 0) add([], 0);
  return found;
}

/** Clients that ask for something about the same znode at once, so that writes of several of them are under way together. */
export interface Meeting {
  readonly path: string;
  /** Resolves for all of them in one moment. */
  readonly begins: Promise<void>;
}

/** The meetings of the clients of a workload, one after the other. */
export class Meetings {
  #next: Meeting | null = null;

  /** The one that has been called and has not begun. */
  get next(): Meeting | null {
    return this.#next;
  }

  /** A client calls one; the others come when they have nothing else to do. */
  call(path: string, begins: Promise<void>): void {
    if (this.#next !== null) return;
    const meeting = {
      path,
      begins: begins.then(() => {
        this.#next = null;
      }),
    };
    this.#next = meeting;
  }
}

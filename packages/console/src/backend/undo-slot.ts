/** How to undo the last change of a session. */
export interface Undo {
  /** A description of what it would do. */
  readonly text: string;
  /** @throws BadVersionError and others when the tree has changed since */
  run(): Promise<void>;
}

/** The last change, if it can be undone. Only one: earlier changes may depend on later ones. */
export class UndoSlot {
  #undo: Undo | null = null;

  get text(): string | null {
    return this.#undo?.text ?? null;
  }

  put(undo: Undo | null): void {
    this.#undo = undo;
  }

  take(): Undo | null {
    const undo = this.#undo;
    this.#undo = null;
    return undo;
  }
}

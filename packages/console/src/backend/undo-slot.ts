/** How the last change of a session is taken back. */
export interface Undo {
  /** What it would do, in words. */
  readonly text: string;
  /** @throws BadVersionError and others when the tree is no longer as the change has left it */
  run(): Promise<void>;
}

/** The last change, if it can be taken back. One change: what came before may rest on what came after. */
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

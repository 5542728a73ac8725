import type { Client, ClientState, StateChange } from '@meerkat/client';

/** Records the state changes of a client, and waits for more. */
export class StateLog {
  readonly changes: StateChange[] = [];
  /** Index of the first change that was not waited for yet. */
  #seen = 0;
  #wake: () => void = () => {};

  constructor(client: Client) {
    client.onState((change) => {
      this.changes.push(change);
      this.#wake();
    });
  }

  get states(): ClientState[] {
    return this.changes.map(({ state }) => state);
  }

  /** Resolves with the next change to one of these states, and marks all changes before it as seen. */
  async until(...states: readonly ClientState[]): Promise<StateChange> {
    for (;;) {
      const index = this.changes.findIndex((change, i) => i >= this.#seen && states.includes(change.state));
      const change = this.changes[index];
      if (change !== undefined) {
        this.#seen = index + 1;
        return change;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

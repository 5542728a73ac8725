import type { Client, ClientState, StateChange } from '@meerkat/client';

/** Everything that a client has told of its states since the log was made, and the patience to wait for more. */
export class StateLog {
  readonly changes: StateChange[] = [];
  /** Changes before this one have been waited for. */
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

  /** The next change to one of these states that was not waited for yet; those before it count as seen. */
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

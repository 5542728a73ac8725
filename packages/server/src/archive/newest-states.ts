import type { PastState, PastStates } from '@meerkat/console';

/** The last states of a znode, as many as a page shows, and with values of so many bytes; the newest in any case. */
export class NewestStates implements PastStates {
  readonly states: PastState[] = [];
  isCut = false;
  #bytes = 0;

  add(state: PastState): void {
    this.states.push(state);
    this.#bytes += bytesOf(state);
    while (this.states.length > STATES_MAX || (this.#bytes > STATE_BYTES_MAX && this.states.length > 1)) {
      this.#bytes -= bytesOf(this.states.shift()!);
      this.isCut = true;
    }
  }
}

function bytesOf({ state }: PastState): number {
  return state?.data?.length ?? 0;
}

const STATES_MAX = 500;
const STATE_BYTES_MAX = 16 << 20;

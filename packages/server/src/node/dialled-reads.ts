import type { OnReadOpts } from 'node:net';

/**
 * Reads of a socket that this server has dialled: into memory that its owner gives. Node.js offers that for no other socket; it
 * takes new memory for each chunk elsewhere.
 */
export class DialledReads {
  /** Called for each chunk. Set before any can arrive. */
  receiver: ((chunk: Uint8Array) => void) | null = null;
  /** Where the next chunk may go; memory of its own for each until there is an owner. */
  room: () => Uint8Array = () => new Uint8Array(FIRST_BYTES);
  readonly options: OnReadOpts = {
    buffer: () => this.room(),
    callback: (count, memory) => {
      this.receiver?.(memory.subarray(0, count));
      return true;
    },
  };
}

const FIRST_BYTES = 16 * 1024;

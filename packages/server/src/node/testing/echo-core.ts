import type { ByteStream, StreamEvents } from '@meerkat/core';
import { expect } from 'vitest';
import type { Turn } from '../turn.ts';

/** A core that records the events of its streams, and echoes at the end of the turn. */
export class EchoCore {
  readonly events: string[] = [];
  readonly streams: ByteStream[] = [];
  isEchoing = true;
  isAnswering = false;
  waiters: (() => void)[] = [];
  #echoes: (() => void)[] = [];
  readonly #turn: Turn;

  constructor(turn: Turn) {
    this.#turn = turn;
  }

  onStreamOpened(stream: ByteStream): StreamEvents {
    this.streams.push(inTurn(stream, this.#turn));
    const isAnswering = (): boolean => this.isAnswering;
    return {
      get isAnswering() {
        return isAnswering();
      },
      onBytes: (chunk) => {
        expect(Object.getPrototypeOf(chunk)).toBe(Uint8Array.prototype);
        this.note(`bytes ${Buffer.from(chunk).toString()}`);
        if (this.isEchoing) this.#echoes.push(() => stream.write(chunk));
      },
      onDrain: () => this.note('drain'),
      onClosed: (reason) => this.note(`closed ${reason}`),
    };
  }

  note(event: string): void {
    this.events.push(event);
    for (const wake of this.waiters.splice(0)) wake();
  }

  async until(event: string): Promise<void> {
    while (!this.events.includes(event)) await new Promise<void>((resolve) => this.waiters.push(resolve));
  }

  onTurnEnd(): void {
    for (const echo of this.#echoes.splice(0)) echo();
  }

  nextDeadlineMs(): number {
    return Number.POSITIVE_INFINITY;
  }

  onTick(): void {}
}

/** A core calls its streams in a turn, and tests call them between turns. */
function inTurn(stream: ByteStream, turn: Turn): ByteStream {
  const call = (effect: () => void): void => {
    effect();
    turn.mark();
  };
  return {
    remote: stream.remote,
    isCrowding: stream.isCrowding ?? false,
    get queuedBytes() {
      return stream.queuedBytes;
    },
    write: (bytes) => call(() => stream.write(bytes)),
    end: () => call(() => stream.end()),
    destroy: () => call(() => stream.destroy()),
    pause: () => call(() => stream.pause()),
    resume: () => call(() => stream.resume()),
  };
}

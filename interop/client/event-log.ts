import type { WatchStream } from '@meerkat/client';

type StreamEvent = WatchStream extends AsyncIterable<infer Event> ? Event : never;

/** Collects the events of a watch stream, and waits for a matching one. */
export class EventLog {
  readonly events: StreamEvent[] = [];
  /** The error that ended the loop, if any. */
  failure: unknown = null;
  isOver = false;
  #wake: () => void = () => {};

  constructor(stream: WatchStream) {
    void this.#read(stream);
  }

  /** Resolves with the first matching event from index `from` on. */
  async until(fits: (event: StreamEvent) => boolean, from = 0): Promise<StreamEvent> {
    for (;;) {
      const found = this.events.find((event, i) => i >= from && fits(event));
      if (found !== undefined) return found;
      if (this.isOver) throw new Error('the stream ended before', { cause: this.failure });
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async #read(stream: WatchStream): Promise<void> {
    try {
      for await (const event of stream) {
        this.events.push(event);
        this.#wake();
      }
    } catch (error) {
      this.failure = error;
    }
    this.isOver = true;
    this.#wake();
  }
}

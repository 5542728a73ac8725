import type { ByteStream } from '../base/ports.ts';
import type { Turn } from '../base/turn.ts';
import { InputBuffer } from './input-buffer.ts';
import { ThrottledInput, type WaitLimits } from './throttled-input.ts';

/** What has come from a client and was not read yet, whether more is taken from its stream, and how long it waits. */
export class ClientInput {
  readonly buffer: InputBuffer = new InputBuffer();
  readonly #stream: ByteStream;
  #isPaused = false;
  /** Bytes of the frame that is not complete yet, with its length before it; 0 when that is not known. */
  #frameBytes = 0;
  /** Ticks since it has sent anything, of those in which it was read. */
  #silentTicks = 0;
  #throttled: ThrottledInput | null = null;

  constructor(stream: ByteStream) {
    this.#stream = stream;
  }

  /** null until requests have waited for `request_throttle_max_requests`. */
  get throttled(): ThrottledInput | null {
    return this.#throttled;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  append(chunk: Uint8Array): void {
    this.#silentTicks = 0;
    this.buffer.append(chunk, this.#frameBytes);
  }

  /** @param frameBytes of the frame that is not complete yet, with its length; 0: not known */
  expect(frameBytes: number): void {
    this.#frameBytes = frameBytes;
  }

  pause(): void {
    this.#isPaused = true;
    this.#stream.pause();
  }

  /** As `pause`, with requests, because as much is in progress as may be. */
  pauseThrottled(limits: WaitLimits, turn: Turn): void {
    this.pause();
    this.#throttled ??= new ThrottledInput(limits, turn.meters);
    this.#throttled.begin(this.buffer.end - this.buffer.start, turn.nowMs());
  }

  /** What is here is read; `resume` has more come. */
  readOn(): void {
    this.#isPaused = false;
  }

  resume(): void {
    this.#stream.resume();
  }

  /** @returns true when nothing has come for longer than that, beyond two ticks, though it was read */
  onTick(timeoutMs: number, tickMs: number): boolean {
    if (this.#isPaused) this.#silentTicks = 0;
    else this.#silentTicks++;
    return (this.#silentTicks - 2) * tickMs > timeoutMs;
  }
}

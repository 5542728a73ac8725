import type { ByteStream } from '../base/ports.ts';
import type { Turn } from '../base/turn.ts';
import { InputBuffer } from './input-buffer.ts';
import { ThrottledInput, type WaitLimits } from './throttled-input.ts';

/** A client's unread input: whether more is taken from its stream, and how long requests have waited. */
export class ClientInput {
  readonly buffer: InputBuffer = new InputBuffer();
  readonly #stream: ByteStream;
  #isPaused = false;
  /** Length of the incomplete frame, including its length field; 0 when unknown. */
  #frameBytes = 0;
  /** Ticks since it last sent anything, counting only those in which it was read. */
  #silentTicks = 0;
  #throttled: ThrottledInput | null = null;

  constructor(stream: ByteStream) {
    this.#stream = stream;
  }

  /** null until requests have first waited because of `request_throttle_max_requests`. */
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

  /** @param frameBytes length of the incomplete frame, including its length field; 0 when unknown */
  expect(frameBytes: number): void {
    this.#frameBytes = frameBytes;
  }

  pause(): void {
    this.#isPaused = true;
    this.#stream.pause();
  }

  /** Like `pause`, for requests that wait because the maximum is in progress. */
  pauseThrottled(limits: WaitLimits, turn: Turn): void {
    this.pause();
    this.#throttled ??= new ThrottledInput(limits, turn.meters);
    this.#throttled.begin(this.buffer.end - this.buffer.start, turn.nowMs());
  }

  /** Buffered input may be read again; `resume` also resumes the stream. */
  readOn(): void {
    this.#isPaused = false;
  }

  resume(): void {
    this.#stream.resume();
  }

  /** @returns true when nothing has arrived for longer than `timeoutMs` plus two ticks, although the stream was read */
  onTick(timeoutMs: number, tickMs: number): boolean {
    if (this.#isPaused) this.#silentTicks = 0;
    else this.#silentTicks++;
    return (this.#silentTicks - 2) * tickMs > timeoutMs;
  }
}

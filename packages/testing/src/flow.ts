import type { Socket } from 'node:net';

/** What a flow has taken from its source and not passed on yet. */
type Waiting =
  | { readonly kind: 'bytes'; readonly bytes: Buffer; readonly dueMs: number }
  /** The source sends no more (FIN), or broke (RST). */
  | { readonly kind: 'end' | 'reset'; readonly dueMs: number };

/** Ends a flow after a number of further bytes. */
interface Limit {
  bytesLeft: number;
  /** The last byte is being handed to the kernel. */
  readonly onReached: () => void;
  /** The kernel has it. */
  readonly onPassed: () => void;
}

export interface FlowSettings {
  readonly delayMs: number;
  readonly isFrozen: boolean;
  readonly onPassed: (bytes: number) => void;
}

/**
 * One direction of a proxied connection: what comes from the source goes to the target, in order, ends included, after a
 * delay and not while frozen.
 *
 *     source ──data, end, error──► waiting ──due, not frozen, target takes it──► target
 *
 * Little waits here: when the target does not take it, or while it is frozen, the source is not read, and then the
 * kernel lets its peer wait.
 */
export class Flow {
  /** Bytes passed on so far. */
  passedBytes = 0;
  readonly #source: Socket;
  readonly #target: Socket;
  readonly #onPassed: (bytes: number) => void;
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #delayMs: number;
  #isFrozen: boolean;
  /** The target has more than it can take. */
  #isBlocked = false;
  #isStopped = false;
  #lastDueMs = 0;
  #timer: NodeJS.Timeout | null = null;
  readonly #limits: Limit[] = [];

  constructor(source: Socket, target: Socket, settings: FlowSettings) {
    this.#source = source;
    this.#target = target;
    this.#onPassed = settings.onPassed;
    this.#delayMs = settings.delayMs;
    this.#isFrozen = settings.isFrozen;
    source.on('data', (chunk: Buffer) => {
      this.#waitingBytes += chunk.length;
      this.#add({ kind: 'bytes', bytes: chunk, dueMs: this.#dueMs() });
    });
    source.on('end', () => this.#add({ kind: 'end', dueMs: this.#dueMs() }));
    source.on('error', () => this.#add({ kind: 'reset', dueMs: this.#dueMs() }));
    target.on('drain', () => {
      this.#isBlocked = false;
      this.#pass();
    });
    this.#readOrNot();
  }

  /** Delays what arrives from now on; it never overtakes earlier bytes. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  freeze(): void {
    this.#isFrozen = true;
    this.#readOrNot();
  }

  thaw(): void {
    this.#isFrozen = false;
    this.#pass();
  }

  /** Stops forwarding and drops what waits. */
  stop(): void {
    this.#isStopped = true;
    this.#waiting.length = 0;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /**
   * Stops after exactly that many more bytes.
   *
   * @param bytes 0: instead of the next byte
   */
  stopAfter(bytes: number, onReached: () => void, onPassed: () => void): void {
    this.#limits.push({ bytesLeft: bytes, onReached, onPassed });
  }

  #dueMs(): number {
    this.#lastDueMs = Math.max(this.#lastDueMs, performance.now() + this.#delayMs);
    return this.#lastDueMs;
  }

  #add(waiting: Waiting): void {
    if (this.#isStopped) return;
    this.#waiting.push(waiting);
    this.#pass();
  }

  /** Passes on what is due, and arranges for the rest. */
  #pass(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    while (!this.#isFrozen && !this.#isBlocked && !this.#isStopped) {
      const [first] = this.#waiting;
      if (first === undefined) break;
      const delayMs = first.dueMs - performance.now();
      if (delayMs > 0) {
        this.#timer = setTimeout(() => this.#pass(), Math.ceil(delayMs));
        break;
      }
      this.#waiting.shift();
      this.#passOne(first);
    }
    this.#readOrNot();
  }

  #passOne(waiting: Waiting): void {
    switch (waiting.kind) {
      case 'bytes':
        this.#waitingBytes -= waiting.bytes.length;
        this.#passBytes(waiting.bytes);
        return;
      case 'end':
        this.#target.end();
        return;
      case 'reset':
        resetSocket(this.#target);
        return;
    }
  }

  #passBytes(bytes: Buffer): void {
    const limit = this.#nearestLimit();
    const isReached = limit !== null && limit.bytesLeft <= bytes.length;
    const part = isReached ? bytes.subarray(0, limit.bytesLeft) : bytes;
    for (const each of this.#limits) each.bytesLeft -= part.length;
    this.passedBytes += part.length;
    this.#onPassed(part.length);
    if (isReached) {
      this.stop();
      limit.onReached();
      if (part.length === 0) limit.onPassed();
      else this.#target.write(part, () => limit.onPassed());
    } else if (!this.#target.write(bytes)) {
      this.#isBlocked = true;
    }
  }

  #nearestLimit(): Limit | null {
    return this.#limits.reduce<Limit | null>(
      (nearest, limit) => (nearest === null || limit.bytesLeft < nearest.bytesLeft ? limit : nearest),
      null,
    );
  }

  #readOrNot(): void {
    const isFull = this.#waitingBytes >= WAITING_BYTES_MAX;
    if (this.#isFrozen || this.#isBlocked || isFull) this.#source.pause();
    else if (this.#source.isPaused() || this.#source.readableFlowing === null) this.#source.resume();
  }
}

/** Bytes that may wait for their time before the source is no longer read. */
const WAITING_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Breaks a connection so that the other side sees a reset. Not one whose end has been sent already: the other side has
 * been told, and a reset in the middle of a shutdown is refused by libuv (EINVAL), after which 'close' never comes.
 */
export function resetSocket(socket: Socket): void {
  if (socket.destroyed) return;
  if (socket.connecting || socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

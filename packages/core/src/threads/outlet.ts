import { EMPTY_BYTES, Fifo } from '@meerkat/protocol';
import type { RingWriter } from './byte-ring.ts';

/** Has bytes for a ring that was full. */
export interface RoomSeeker {
  /** Offers them again. @returns false when some still wait for room */
  onRoom(): boolean;
}

/** A record without bytes, or with few. */
interface Kept {
  readonly kind: number;
  readonly connection: number;
  readonly bytes: Uint8Array;
  readonly number: number | null;
}

/**
 * Where one side puts its records for the other: into the ring, published once per turn, or into a queue while the ring
 * is full.
 *
 * Bytes of connections stay with their connections meanwhile, whose budgets bound them, and resume in the order in
 * which the connections began to wait; short records wait here, at most a few per connection. Records of one caller's
 * kind keep their order.
 */
export class Outlet {
  readonly #writer: RingWriter;
  readonly #wake: () => void;
  readonly #kept: Fifo<Kept> = new Fifo();
  readonly #seekers = new Set<RoomSeeker>();
  #isFull = false;

  /** @param wake wakes the other side, which sleeps */
  constructor(writer: RingWriter, wake: () => void) {
    this.#writer = writer;
    this.#wake = wake;
  }

  get recordBytesMax(): number {
    return this.#writer.recordBytesMax;
  }

  /** Records that wait for room, without those of connections. */
  get keptCount(): number {
    return this.#kept.length;
  }

  /** Puts bytes into the ring. @returns false when there is no room: call `seekRoom` then */
  offer(kind: number, connection: number, bytes: Uint8Array): boolean {
    if (this.#isFull) return false;
    if (!this.#writer.append(kind, connection, bytes)) {
      this.#isFull = true;
      return false;
    }
    if (this.#writer.unpublishedBytes >= TOGETHER_BYTES) this.#publish();
    return true;
  }

  seekRoom(seeker: RoomSeeker): void {
    this.#seekers.add(seeker);
  }

  /** The seeker no longer has anything to put. */
  forget(seeker: RoomSeeker): void {
    this.#seekers.delete(seeker);
  }

  /** Puts a short record, as soon as there is room. */
  send(kind: number, connection: number, bytes: Uint8Array = EMPTY_BYTES): void {
    if (this.#isFull || !this.#writer.append(kind, connection, bytes)) {
      this.#keep({ kind, connection, bytes, number: null });
    }
  }

  sendNumber(kind: number, connection: number, number: number): void {
    if (this.#isFull || !this.#writer.hasRoom(NUMBER_BYTES)) {
      this.#keep({ kind, connection, bytes: EMPTY_BYTES, number });
    } else this.#writer.putNumber(kind, connection, number);
  }

  /** The end of a turn: publishes its records. */
  flush(): void {
    this.#publish();
    while (this.#isFull) {
      const isAllGone = this.#advance();
      // While something waits for room, the other side must see what there is to take.
      this.#publish();
      if (!isAllGone && this.#writer.awaitRoom()) return;
    }
  }

  #publish(): void {
    if (this.#writer.publish()) this.#wake();
  }

  #keep(record: Kept): void {
    this.#isFull = true;
    this.#kept.push(record);
  }

  /** @returns true when nothing is waiting */
  #advance(): boolean {
    for (let next = this.#kept.peek(); next !== undefined; next = this.#kept.peek()) {
      const { kind, connection, bytes, number } = next;
      if (!this.#writer.hasRoom(number === null ? bytes.length : NUMBER_BYTES)) return false;
      if (number === null) this.#writer.put(kind, connection, bytes);
      else this.#writer.putNumber(kind, connection, number);
      this.#kept.shift();
    }
    this.#isFull = false;
    for (const seeker of this.#seekers) {
      this.#seekers.delete(seeker);
      if (seeker.onRoom()) continue;
      // Behind those that have not had a turn yet.
      this.#seekers.add(seeker);
      if (this.#isFull) return false;
    }
    return !this.#isFull;
  }
}

const NUMBER_BYTES = 4;
/** Bytes that are published before the end of the turn, so that both sides work concurrently. */
const TOGETHER_BYTES = 16 * 1024;

import { ErrorCode, type JuteChunks, REPLY_HEADER_BYTES, type Zxid } from '@meerkat/protocol';
import type { Trace } from '../base/ports.ts';
import type { Client, LongRead } from './client.ts';
import { SLICE_STEPS } from './long-read.ts';
import type { WorkMeter } from './work-meter.ts';

/** Collects the names in slices. */
interface Names {
  readonly chunks: JuteChunks;
  advance(count: number): boolean;
  drop(): void;
}

interface NameListParts {
  readonly work: WorkMeter;
  readonly trace: Trace;
}

/** Executes a getChildren, getChildren2 or getEphemerals with more names than fit into one slice. */
export class NameList implements LongRead {
  readonly holdsEvents = true;
  readonly #names: Names;
  readonly #zxid: Zxid;
  readonly #stat: Uint8Array | null;
  readonly #parts: NameListParts;
  #isTooLong = false;

  /** @param stat the encoded stat that follows the names; null for none */
  constructor(names: Names, zxid: Zxid, stat: Uint8Array | null, parts: NameListParts) {
    this.#names = names;
    this.#zxid = zxid;
    this.#stat = stat;
    this.#parts = parts;
  }

  get heldBytes(): number {
    return this.#names.chunks.bytes;
  }

  advance(): boolean {
    this.#parts.work.add(SLICE_STEPS);
    const isDone = this.#names.advance(SLICE_STEPS);
    this.#isTooLong = this.#names.chunks.bytes > RECORD_BYTES_MAX;
    if (this.#isTooLong) this.#names.drop();
    return isDone || this.#isTooLong;
  }

  answer(client: Client, xid: number, receivedMs: number): void {
    if (this.#isTooLong) {
      const reason = `the names that it asks for are longer than a reply can be, ${RECORD_BYTES_MAX} bytes`;
      const { remote, session } = client;
      this.#parts.trace.emit({ kind: 'request-refused', remote, sessionId: session?.id ?? 0n, reason });
      client.output.beginReply(xid, this.#zxid, ErrorCode.marshallingError);
      client.output.endReply(receivedMs);
      return;
    }
    const { chunks } = this.#names;
    if (this.#stat !== null) chunks.writer.raw(this.#stat);
    client.output.reply(xid, this.#zxid, chunks, receivedMs);
  }

  drop(): void {
    this.#names.drop();
  }
}

/** The length of a frame is an int; leaves room for one more slice of names and a stat. */
const RECORD_BYTES_MAX = 0x7fffffff - REPLY_HEADER_BYTES - 0x1000000;

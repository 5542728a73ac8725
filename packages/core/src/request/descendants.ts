import { ErrorCode, type Zxid } from '@meerkat/protocol';
import type { DescendantCount } from '../tree/descendant-count.ts';
import type { Client, LongRead } from './client.ts';
import { SLICE_STEPS } from './long-read.ts';
import type { WorkMeter } from './work-meter.ts';

/** Executes a getAllChildrenNumber. */
export class Descendants implements LongRead {
  readonly holdsEvents = true;
  readonly heldBytes = 0;
  readonly #count: DescendantCount;
  readonly #zxid: Zxid;
  readonly #work: WorkMeter;

  constructor(count: DescendantCount, zxid: Zxid, work: WorkMeter) {
    this.#count = count;
    this.#zxid = zxid;
    this.#work = work;
  }

  advance(): boolean {
    this.#work.add(SLICE_STEPS);
    return this.#count.advance(SLICE_STEPS);
  }

  answer(client: Client, xid: number, receivedMs: number): void {
    client.output.beginReply(xid, this.#zxid, ErrorCode.ok).int(this.#count.count);
    client.output.endReply(receivedMs);
  }

  drop(): void {
    this.#count.drop();
  }
}

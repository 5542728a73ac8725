import { Histogram } from './histogram.ts';
import { TxnStopwatch } from './txn-stopwatch.ts';

/** What a leader measures of one server of its ensemble, also of itself. */
export class LearnerMeter {
  /** Microseconds from the turn of a proposal to the turn in which the server's acknowledgement arrived. */
  readonly ackLatency: Histogram = new Histogram();
  /** Packets to it that the kernel had not accepted, sampled whenever more are sent. */
  readonly queueLength: Histogram = new Histogram();
  /** Microseconds until the kernel had accepted all of them. */
  readonly queueTime: Histogram = new Histogram();
  readonly acks: TxnStopwatch = new TxnStopwatch(this.ackLatency, 1000);
}

/** By server id; measurements of earlier leaderships are kept. */
export class LearnerMeters {
  readonly #ofServer = new Map<number, LearnerMeter>();

  /** Null when there are too many already: observers that are not members choose their own ids. */
  of(serverId: number): LearnerMeter | null {
    const known = this.#ofServer.get(serverId);
    if (known !== undefined) return known;
    if (this.#ofServer.size >= SERVERS_MAX) return null;
    const meter = new LearnerMeter();
    this.#ofServer.set(serverId, meter);
    return meter;
  }

  entries(): Iterable<readonly [serverId: number, meter: LearnerMeter]> {
    return this.#ofServer;
  }
}

const SERVERS_MAX = 255;

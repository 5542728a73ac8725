import { Histogram } from './histogram.ts';
import { TxnStopwatch } from './txn-stopwatch.ts';

/** What a leader measures of one server of its ensemble, also of itself. */
export class LearnerMeter {
  /** Microseconds from the turn of a proposal to that in which the server's acknowledgement came. */
  readonly ackLatency: Histogram = new Histogram();
  /** Packets to it that the system had not taken, looked at whenever more are handed over. */
  readonly queueLength: Histogram = new Histogram();
  /** Microseconds until the system had taken all of them. */
  readonly queueTime: Histogram = new Histogram();
  readonly acks: TxnStopwatch = new TxnStopwatch(this.ackLatency, 1000);
}

/** By the id of the server; what an earlier leadership has measured stays. */
export class LearnerMeters {
  readonly #ofServer = new Map<number, LearnerMeter>();

  /** Null when there are very many already: observers that are no members come with ids of their own. */
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

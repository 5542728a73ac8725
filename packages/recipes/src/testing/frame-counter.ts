import { type Client, connect } from '@meerkat/client';
import {
  type ClientTap,
  makeClientClock,
  type VirtualEnsemble,
  VirtualTransport,
  type VirtualWorld,
} from '@meerkat/simulator';

/** Op codes and xids of the protocol (ZooDefs.OpCode, ClientCnxn). */
const PING = 11;
const WATCH_EVENT_XID = -1;

/** Counts the frames of all connections; each is a length and a record. */
export class FrameCounter {
  /** Requests, by op code. */
  readonly sent = new Map<number, number>();
  /** Watch events. */
  events = 0;

  /** Connects this many clients whose frames are counted. */
  connectAll(world: VirtualWorld, ensemble: VirtualEnsemble, count: number): Promise<Client[]> {
    return Promise.all(
      Array.from({ length: count }, (_, i) =>
        connect({
          servers: ensemble.connectString,
          sessionTimeoutMs: 4000,
          transport: new VirtualTransport(world.network, world.timeline, `host${i}`, () => this.tap()),
          clock: makeClientClock(world.timeline, world.clockOf(`host${i}`)),
          random: world.random.fork(`client ${i}`),
        }),
      ),
    );
  }

  tap(): ClientTap {
    const sent = new Frames((frame) => {
      const op = frame.getInt32(4);
      this.sent.set(op, (this.sent.get(op) ?? 0) + 1);
    });
    const received = new Frames((frame) => {
      if (frame.getInt32(0) === WATCH_EVENT_XID) this.events++;
    });
    return {
      onSent: (bytes) => sent.add(bytes),
      onReceived: (bytes) => received.add(bytes),
      onClosed: () => {},
    };
  }

  /** All requests but pings. */
  get requests(): number {
    return [...this.sent].reduce((sum, [op, count]) => (op === PING ? sum : sum + count), 0);
  }

  clear(): void {
    this.sent.clear();
    this.events = 0;
  }
}

class Frames {
  readonly #onFrame: (frame: DataView) => void;
  #isFirst = true;
  #rest = new Uint8Array(0);

  constructor(onFrame: (frame: DataView) => void) {
    this.#onFrame = onFrame;
  }

  add(bytes: Uint8Array): void {
    this.#rest = Uint8Array.from([...this.#rest, ...bytes]);
    for (;;) {
      const view = new DataView(this.#rest.buffer);
      if (view.byteLength < 4 || view.byteLength < 4 + view.getInt32(0)) return;
      const endAt = 4 + view.getInt32(0);
      // The first frame is the handshake, which has no xid.
      if (!this.#isFirst) this.#onFrame(new DataView(this.#rest.slice(4, endAt).buffer));
      this.#isFirst = false;
      this.#rest = this.#rest.slice(endAt);
    }
  }
}

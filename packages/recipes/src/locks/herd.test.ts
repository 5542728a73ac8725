/**
 * What one release costs when many wait: nobody is woken but the next one. `CONTENDERS=500` makes the figures of
 * docs/recipes/mutex.md.
 */
import { env } from 'node:process';
import { connect } from '@meerkat/client';
import { makeClientClock, VirtualTransport, type WireTap } from '@meerkat/simulator';
import { expect, test } from 'vitest';
import { makeWorld } from '../testing/line-world.ts';
import { patienceMs } from '../testing/seeds.ts';
import { Mutex } from './mutex.ts';
import { PriorityLock } from './priority-lock.ts';

const { CONTENDERS = '50' } = env;
const COUNT = Number(CONTENDERS);

/** Op codes and xids of the protocol (ZooDefs.OpCode, ClientCnxn). */
const GET_DATA = 4;
const GET_CHILDREN_2 = 12;
const WATCH_EVENT_XID = -1;

/** Counts frames of all connections, each a length and a record. */
class FrameCounter {
  readonly sent = new Map<number, number>();
  events = 0;

  tap(): WireTap {
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

test(
  `a release wakes one of ${COUNT} that wait`,
  async () => {
    const { world, ensemble } = makeWorld();
    await world.run(async () => {
      const counter = new FrameCounter();
      const clients = await Promise.all(
        Array.from({ length: COUNT + 1 }, (_, i) =>
          connect({
            servers: ensemble.connectString,
            sessionTimeoutMs: 4000,
            transport: new VirtualTransport(world.network, world.timeline, `host${i}`, () => counter.tap()),
            clock: makeClientClock(world.timeline, world.clockOf(`host${i}`)),
            random: world.random.fork(`client ${i}`),
          }),
        ),
      );
      const first = await new Mutex(clients[0]!, '/lock').acquire();
      let released = 0;
      const waiting = clients.slice(1).map(async (client) => {
        const lock = await new Mutex(client, '/lock').acquire();
        await lock.release();
        released++;
      });
      while ((await new Mutex(clients[0]!, '/lock').contenders()).length <= COUNT) await world.sleep(50);
      // Each of them has its watch by then.
      await world.sleep(2000);
      counter.clear();
      await first.release();
      await Promise.all(waiting);
      expect(released).toBe(COUNT);
      // Each holder is told twice: that the one before it is gone, and that its own znode is.
      const events = counter.events / (COUNT + 1);
      const lists = (counter.sent.get(GET_CHILDREN_2) ?? 0) / COUNT;
      const reads = (counter.sent.get(GET_DATA) ?? 0) / COUNT;
      if (COUNT !== 50) console.log({ contenders: COUNT, eventsPerRelease: events, lists, reads });
      expect(events).toBeLessThanOrEqual(2);
      expect(lists).toBe(1);
      expect(reads).toBe(1);
      await Promise.all(clients.map((client) => client.close()));
    });
  },
  patienceMs(10),
);

test.each([
  ['each before all others', (i: number) => -i],
  ['each behind all others', (i: number) => i],
  ['here and there', (i: number) => (i * 37) % 11],
])(
  `a release by priority wakes few of ${COUNT} that wait, and so does an arrival (%s)`,
  async (_, priorityOf) => {
    const { world, ensemble } = makeWorld();
    await world.run(async () => {
      const counter = new FrameCounter();
      const clients = await Promise.all(
        Array.from({ length: COUNT + 1 }, (_, i) =>
          connect({
            servers: ensemble.connectString,
            sessionTimeoutMs: 4000,
            transport: new VirtualTransport(world.network, world.timeline, `host${i}`, () => counter.tap()),
            clock: makeClientClock(world.timeline, world.clockOf(`host${i}`)),
            random: world.random.fork(`client ${i}`),
          }),
        ),
      );
      const first = await new PriorityLock(clients[0]!, '/lock').acquire();
      const figures = (): { events: number; lists: number; reads: number } => ({
        events: counter.events / COUNT,
        lists: (counter.sent.get(GET_CHILDREN_2) ?? 0) / COUNT,
        reads: (counter.sent.get(GET_DATA) ?? 0) / COUNT,
      });
      counter.clear();
      const waiting: Promise<void>[] = [];
      for (const [i, client] of clients.slice(1).entries()) {
        const lock = new PriorityLock(client, '/lock');
        waiting.push(lock.acquire({ priority: priorityOf(i) }).then((held) => held.release()));
        await world.sleep(100);
      }
      const arrival = figures();
      counter.clear();
      await first.release();
      await Promise.all(waiting);
      const release = figures();
      if (COUNT !== 50) console.log({ contenders: COUNT, arrival, release });
      // The one who is pushed back is told, and the one behind it, for whom nothing has changed.
      expect(arrival.events).toBeLessThanOrEqual(3);
      expect(arrival.lists).toBeLessThanOrEqual(3);
      expect(arrival.reads).toBeLessThanOrEqual(8);
      // The next one, the holder itself, its own place, and a watch of somebody who was pushed back since.
      expect(release.events).toBeLessThanOrEqual(4.5);
      expect(release.lists).toBeLessThanOrEqual(2);
      expect(release.reads).toBeLessThanOrEqual(4);
      await Promise.all(clients.map((client) => client.close()));
    });
  },
  patienceMs(10),
);

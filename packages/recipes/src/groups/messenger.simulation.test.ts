/**
 * Members send numbered messages to each other while servers and links fail and processes die in the middle of sending,
 * receiving and acknowledging. In every seed:
 *
 * 1. every message whose `send` has resolved is received;
 * 2. those of one sender to one receiver come first in the order in which they were sent;
 * 3. a repetition has the id of the first copy, and nothing is received that was not sent;
 * 4. in the end, every mailbox is empty.
 */
import type { Client } from '@meerkat/client';
import { expect, test } from 'vitest';
import { patienceMs, seeds } from '../testing/seeds.ts';
import { Messenger } from './messenger.ts';
import { neverAborted, untilDone } from './persistence.ts';
import { type GroupWorld, inWorld } from './testing/world.ts';

const MEMBERS = ['ann', 'bob', 'cid'];
const STORM_MS = 30_000;
const SEEDS = seeds(3);

test('no message is lost, and none comes out of order', { timeout: patienceMs(SEEDS.length) }, () =>
  SEEDS.reduce((before, seed) => before.then(() => inWorld(seed, liveThrough)), Promise.resolve()),
);

interface Sent {
  readonly sender: string;
  readonly number: number;
}

async function liveThrough(world: GroupWorld): Promise<void> {
  const random = world.world.random.fork('program');
  /** By receiver: what was confirmed. */
  const confirmed = new Map<string, Sent[]>(MEMBERS.map((member) => [member, []]));
  /** By receiver: ids in the order in which they came first, and what they were. */
  const received = new Map<string, Map<string, Sent>>(MEMBERS.map((member) => [member, new Map()]));
  let isOver = false;
  let isQuiet = false;
  let number = 0;

  const receive = async (messenger: Messenger, isDead: () => boolean): Promise<void> => {
    const inbox = received.get(messenger.member)!;
    for await (const message of messenger.receive()) {
      const sent = { sender: message.sender, number: Number(new TextDecoder().decode(message.data)) };
      // Whoever dies while it works on a message has not handled it, or not acknowledged it.
      await world.world.sleep(random.between(0, 500));
      if (isDead()) return;
      const first = inbox.get(message.id);
      if (first === undefined) inbox.set(message.id, sent);
      else expect(sent).toEqual(first);
      await message.acknowledge();
    }
  };
  const send = async (messenger: Messenger): Promise<void> => {
    const receiver = random.pick(MEMBERS);
    const sent = { sender: messenger.member, number: ++number };
    await messenger.send(receiver, `${sent.number}`);
    confirmed.get(receiver)!.push(sent);
  };
  const clients: Client[] = [];
  const living = MEMBERS.map(async (member) => {
    while (!isQuiet) {
      const client = await world.connect(member);
      const messenger = new Messenger(client, '/mail', member);
      let isDead = false;
      const receiving = receive(messenger, () => isDead).catch((error: unknown) => {
        if (!isDead) throw error;
      });
      await world.world.sleep(200);
      const endMs = world.world.nowMs + random.between(1000, 15_000);
      while (!isOver && world.world.nowMs < endMs) {
        // Not waited for: several may be on the way to one receiver.
        void send(messenger).catch(() => {});
        await world.world.sleep(random.between(20, 1500));
      }
      if (isOver) {
        clients.push(client);
        await world.world.until(() => isQuiet, 600_000);
        return;
      }
      isDead = true;
      await world.kill(client);
      await receiving;
      await world.world.sleep(random.between(0, 3000));
    }
  });
  const opener = await world.connect('opener');
  await Promise.all(MEMBERS.map((member) => new Messenger(opener, '/mail', member).open()));
  await world.storm(MEMBERS, STORM_MS);
  await world.heal();
  isOver = true;

  const backlogs = (): Promise<number[]> =>
    Promise.all(
      MEMBERS.map(async (member) => {
        const messenger = new Messenger(opener, '/mail', 'opener');
        return (await untilDone(opener, neverAborted(), () => messenger.backlog(member))) ?? 0;
      }),
    );
  let left = [1];
  for (let i = 0; i < 120 && left.some((count) => count > 0); i++) {
    await world.world.sleep(1000);
    left = await backlogs();
  }
  expect(left).toEqual([0, 0, 0]);
  isQuiet = true;
  await Promise.all(living);

  let count = 0;
  for (const member of MEMBERS) {
    const came = [...received.get(member)!.values()];
    for (const { sender, number: sentNumber } of confirmed.get(member)!) {
      const copies = came.filter((message) => message.number === sentNumber);
      expect(copies, `message ${sentNumber} of ${sender} to ${member}`).toHaveLength(1);
      count++;
    }
    for (const sender of MEMBERS) {
      const known = new Set(confirmed.get(member)!.map((sent) => sent.number));
      const numbers = came
        .filter((sent) => sent.sender === sender && known.has(sent.number))
        .map((sent) => sent.number);
      expect(numbers, `${sender} to ${member}`).toEqual(numbers.toSorted((a, b) => a - b));
    }
  }
  expect(count).toBeGreaterThan(5);
  await Promise.all([opener, ...clients].map((client) => client.close()));
}

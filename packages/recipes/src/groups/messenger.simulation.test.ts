/**
 * Members send numbered messages to each other under faults of servers and links, while processes cancel, leave their
 * loops and die during sends, receives and acknowledgements. In every seed, checked against the committed history:
 *
 * 1. a sent message exists under the reported id, one of unknown outcome may, one reported as 'not-applied' never did;
 *    copies have one id; messages from one member to another were put in the order of the calls;
 * 2. a received message was sent, arrives in that order, once per loop, and not if it was gone before the loop;
 * 3. no message is deleted before it is acknowledged; an acknowledged one is gone, unless a copy is left, and one
 *    reported as not acknowledged was not;
 * 4. cancelled calls end in time; in the end every mailbox is empty.
 */
import {
  type CallOptions,
  type Client,
  ClosedError,
  isZooKeeperError,
  nameOf,
  parentOf,
  TimeoutError,
} from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect } from 'vitest';
import { Attempt } from '../kernel/attempt.ts';
import type { Fleet } from '../testing/fleet.ts';
import { Ledger } from '../testing/ledger.ts';
import { simulate } from '../testing/simulate.ts';
import { type Message, Messenger } from './messenger.ts';

const MEMBERS = ['ann', 'bob', 'cid'];
const STORM_MS = 30_000;

simulate('no message is lost or reordered', 3, liveThrough);

/** The messages received by one loop, in order. */
interface Loop {
  readonly member: string;
  readonly sinceZxid: number;
  readonly received: { readonly id: string; readonly text: string; readonly zxid: number }[];
}

class Notes {
  /** By the text of each message. */
  readonly sent = new Ledger<string>();
  /** Ids returned by `send`, by text. */
  readonly ids = new Map<string, string>();
  readonly loops: Loop[] = [];
  /** By mailbox path and zxid of the message: how each attempt to acknowledge it ended. */
  readonly acknowledged = new Map<string, ('done' | 'unknown' | 'not-applied')[]>();
  readonly gone: { readonly key: string; readonly zxid: number }[] = [];
}

async function liveThrough(fleet: Fleet): Promise<void> {
  const random = fleet.world.random.fork('program');
  const notes = new Notes();
  let isOver = false;
  let isQuiet = false;
  let number = 0;

  /** Checks that calls with limits end in time. */
  const limited = async <T>(run: (options: CallOptions) => Promise<T>): Promise<T> => {
    const timeoutMs = !isOver && random.chance(0.3) ? random.between(0, 400) : Number.POSITIVE_INFINITY;
    const dueMs = fleet.world.nowMs + timeoutMs;
    try {
      return await run(timeoutMs < Number.POSITIVE_INFINITY ? { timeoutMs } : {});
    } catch (error) {
      if (!(error instanceof ClosedError)) expect(error).toBeInstanceOf(TimeoutError);
      throw error;
    } finally {
      expect(fleet.world.nowMs, 'when a call with a limit has ended').toBeLessThanOrEqual(dueMs + 1);
    }
  };
  const acknowledge = async (member: string, { zxid, acknowledge }: Message): Promise<void> => {
    const key = `/mail/${member} ${zxid}`;
    const ends = notes.acknowledged.get(key) ?? [];
    notes.acknowledged.set(key, ends);
    // Unknown until it has ended.
    const at = ends.push('unknown') - 1;
    try {
      await limited(acknowledge);
      ends[at] = 'done';
      notes.gone.push({ key, zxid: fleet.committedZxid });
    } catch (error) {
      if (!isZooKeeperError(error)) throw error;
      ends[at] = error.outcome;
    }
  };
  const receive = async (messenger: Messenger, isDead: () => boolean): Promise<void> => {
    while (!isDead() && !isQuiet) {
      const leaving = new AbortController();
      const { member } = messenger;
      const loop: Loop = { member, sinceZxid: fleet.committedZxid, received: [] };
      notes.loops.push(loop);
      const stay = isOver ? 600_000 : random.between(0, 10_000);
      void fleet.world.until(() => isQuiet || isDead(), stay).then(() => leaving.abort());
      for await (const message of messenger.receive({ signal: leaving.signal })) {
        const { id, sender, data, zxid } = message;
        const text = new TextDecoder().decode(data);
        expect(text).toMatch(new RegExp(`^${sender} \\d+$`));
        loop.received.push({ id, text, zxid: Number(zxid) });
        // A client that dies while it works on a message has not handled, or not acknowledged, it.
        await fleet.world.sleep(random.between(0, 300));
        if (isDead()) return;
        if (isOver || random.chance(0.9)) await acknowledge(member, message);
        if (!isOver && random.chance(0.1)) break;
      }
      await fleet.world.sleep(10);
    }
  };
  const send = async (messenger: Messenger): Promise<void> => {
    const text = `${messenger.member} ${++number}`;
    const id = await notes.sent.note(
      text,
      limited((options) => messenger.send(random.pick(MEMBERS), text, options)),
    );
    if (typeof id === 'string') notes.ids.set(text, id);
  };
  const live = async (member: string): Promise<Client> => {
    for (;;) {
      const client = await fleet.connectAs(member);
      const messenger = new Messenger(client, '/mail', member);
      let isDead = false;
      const receiving = receive(messenger, () => isDead).catch((error: unknown) => {
        if (!isDead) throw error;
      });
      const endMs = fleet.world.nowMs + random.between(1000, 15_000);
      const sending: Promise<void>[] = [];
      while (!isOver && fleet.world.nowMs < endMs) {
        // Not awaited: several may be in flight to one receiver.
        for (let i = random.between(1, 3); i > 0; i--) sending.push(send(messenger));
        await fleet.world.sleep(random.between(20, 1500));
      }
      if (isOver) {
        await receiving;
        return client;
      }
      isDead = true;
      if (random.chance(0.5)) await fleet.kill(client);
      else await client.close();
      await Promise.all([receiving, ...sending]);
      await fleet.world.sleep(random.between(0, 3000));
    }
  };
  const opener = await fleet.connectAs('opener');
  await Promise.all(MEMBERS.map((member) => new Messenger(opener, '/mail', member).open()));
  const living = MEMBERS.map(live);
  await Promise.race([fleet.storm(MEMBERS, STORM_MS), Promise.all(living)]);
  await fleet.recover();
  isOver = true;

  const messenger = new Messenger(opener, '/mail', 'opener');
  const asking = new Attempt(opener, {}, { operation: 'backlog', path: null }, { awaitsQuorum: true });
  const backlogs = (): Promise<(number | null)[]> =>
    Promise.all(MEMBERS.map((member) => asking.through(() => messenger.backlog(member))));
  let left = await backlogs();
  for (let i = 0; i < 120 && left.some((count) => count !== 0); i++) {
    await fleet.world.sleep(1000);
    left = await backlogs();
  }
  expect(left).toEqual([0, 0, 0]);
  isQuiet = true;
  const clients = await Promise.all(living);
  const tree = await fleet.committedTree();
  if (tree !== null) check(tree, notes);
  await Promise.all([opener, ...clients].map((client) => client.close()));
}

/** Compares the reported results with the committed history. */
function check(tree: CommittedTree, { sent, ids, loops, acknowledged, gone }: Notes): void {
  const changes = tree.changes.filter(({ type, path }) => type !== 'children' && MAILBOX.test(parentOf(path)));
  const copies = changes
    .filter(({ type }) => type === 'created')
    .map(({ path, zxid }) => {
      const text = new TextDecoder().decode(tree.stateAt(path, zxid)!.data ?? undefined);
      const goneAt = changes.find((change) => change.path === path && change.type === 'deleted')?.zxid;
      return { box: parentOf(path), id: nameOf(path).slice(3, 39), text, zxid, goneAt: goneAt ?? Infinity };
    });
  const firsts = [...new Map(copies.toReversed().map((copy) => [copy.id, copy])).values()].reverse();
  sent.check(firsts.map(({ text }) => text));
  for (const { text, id } of firsts) expect(ids.get(text) ?? id, `the id of ${text}`).toBe(id);

  const isDone = ({ text }: { readonly text: string }): boolean => sent.done.has(text);
  const expectInOrder = (texts: readonly string[], where: string): void => {
    for (const sender of MEMBERS) {
      const numbers = texts.filter((text) => text.startsWith(sender)).map((text) => Number(text.slice(sender.length)));
      expect(numbers, `${sender} to ${where}`).toEqual(numbers.toSorted((a, b) => a - b));
    }
  };
  for (const member of MEMBERS) {
    const own = firsts.filter(({ box }) => box === `/mail/${member}`);
    expectInOrder(
      own.filter(isDone).map(({ text }) => text),
      member,
    );
  }
  for (const { member, sinceZxid, received } of loops) {
    expect(new Set(received.map(({ id }) => id)).size, 'messages delivered by a loop').toBe(received.length);
    for (const { id, text, zxid } of received) {
      const copy = copies.find((each) => each.zxid === zxid);
      expect(copy).toMatchObject({ box: `/mail/${member}`, id, text });
      expect(copy!.goneAt, `${text} was there when the loop began`).toBeGreaterThan(sinceZxid);
    }
    // A copy that is created late, when the first one is gone, has lost its place.
    const isFirst = ({ zxid }: { readonly zxid: number }): boolean => firsts.some((first) => first.zxid === zxid);
    expectInOrder(
      received.filter((each) => isDone(each) && isFirst(each)).map(({ text }) => text),
      member,
    );
  }
  for (const { box, id, text, zxid, goneAt } of copies) {
    const ends = acknowledged.get(`${box} ${zxid}`) ?? [];
    const isDelivered = loops.some(({ received }) => received.some((each) => each.id === id && each.zxid !== zxid));
    const mayGo = isDelivered || ends.some((end) => end !== 'not-applied');
    if (goneAt < Infinity && !mayGo)
      expect.fail(`${text} went away although ${ends.join() || 'nobody'} acknowledged it`);
  }
  for (const { key, zxid } of gone) {
    const copy = copies.find((each) => `${each.box} ${each.zxid}` === key)!;
    expect(copy.goneAt, `${copy.text} was acknowledged`).toBeLessThanOrEqual(zxid);
  }
  expect(sent.done.size).toBeGreaterThan(5);
}

const MAILBOX = /^\/mail\/\w+$/;

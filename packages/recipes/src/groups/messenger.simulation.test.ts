/**
 * Members send numbered messages to each other while servers and links fail, and processes give up, leave their loops and die
 * in the middle of sending, receiving and acknowledging. In every seed, by what was committed:
 *
 * 1. what was sent is there under the id that was told, what may be is or not, what is said not to be sent never was; copies
 *    have one id; what one member sends to another was put there in the order of the calls;
 * 2. what is received was sent, comes in that order, once in a loop, and not any more when it was gone before the loop;
 * 3. nothing goes that is not acknowledged yet; what was acknowledged is gone, unless its copy is there, and what is said not
 *    to be was not;
 * 4. who gives up hears so in time; in the end every mailbox is empty.
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

simulate('no message is lost, and none comes out of order', 3, liveThrough);

/** What was received by one loop, in order. */
interface Loop {
  readonly member: string;
  readonly sinceZxid: number;
  readonly received: { readonly id: string; readonly text: string; readonly zxid: number }[];
}

class Notes {
  /** By the text of each message. */
  readonly sent = new Ledger<string>();
  /** Ids that `send` has told, by text. */
  readonly ids = new Map<string, string>();
  readonly loops: Loop[] = [];
  /** By the path of a mailbox and the zxid of a message: how each try to acknowledge it ended. */
  readonly acknowledged = new Map<string, ('done' | 'unknown' | 'not-applied')[]>();
  readonly gone: { readonly key: string; readonly zxid: number }[] = [];
}

async function liveThrough(fleet: Fleet): Promise<void> {
  const random = fleet.world.random.fork('program');
  const notes = new Notes();
  let isOver = false;
  let isQuiet = false;
  let number = 0;

  /** Calls with limits hear in time. */
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
    // Until it is told, anything may be.
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
        // The client that dies while it works on a message has not handled it, or not acknowledged it.
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
        // Not waited for: several may be on the way to one receiver.
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

/** Compares what the members were told with what was committed. */
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
    expect(new Set(received.map(({ id }) => id)).size, 'messages that a loop gives out once').toBe(received.length);
    for (const { id, text, zxid } of received) {
      const copy = copies.find((each) => each.zxid === zxid);
      expect(copy).toMatchObject({ box: `/mail/${member}`, id, text });
      expect(copy!.goneAt, `${text} was there when the loop began`).toBeGreaterThan(sinceZxid);
    }
    // A copy that comes late, when the first one is gone, has lost its place.
    const isFirst = ({ zxid }: { readonly zxid: number }): boolean => firsts.some((first) => first.zxid === zxid);
    expectInOrder(
      received.filter((each) => isDone(each) && isFirst(each)).map(({ text }) => text),
      member,
    );
  }
  for (const { box, id, text, zxid, goneAt } of copies) {
    const ends = acknowledged.get(`${box} ${zxid}`) ?? [];
    const isTold = loops.some(({ received }) => received.some((each) => each.id === id && each.zxid !== zxid));
    const mayGo = isTold || ends.some((end) => end !== 'not-applied');
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

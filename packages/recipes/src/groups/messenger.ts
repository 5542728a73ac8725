import {
  type About,
  type Acl,
  type CallOptions,
  type Client,
  ClosedError,
  type Data,
  joinPath,
  NoNodeError,
  OPEN,
  withoutProtection,
  type Znode,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { checkedName } from '../kernel/child-name.ts';
import { makeUuid } from '../kernel/layout.ts';
import { LossStreak } from '../kernel/loss-streak.ts';
import type { ZnodeOptions } from '../kernel/options.ts';
import { compareBySequence, withoutSequence } from '../kernel/sequence.ts';
import { Roster, type RosterEntries } from './roster.ts';

/**
 * The ACL is also used for the path above the mailboxes if that is missing: other members create theirs below it.
 */
export type MessengerOptions = ZnodeOptions;

/** A received message. */
export interface Message {
  /** The same for every copy of a message: it lets a client recognize a message that it received before a crash. */
  readonly id: string;
  /** The sender's name for itself. */
  readonly sender: string;
  readonly data: Uint8Array;
  /** zxid at which it was put into the mailbox. */
  readonly zxid: bigint;
  /** Deletes it from the mailbox. Until then every new receive loop delivers it again. May be called repeatedly. */
  acknowledge(options?: CallOptions): Promise<void>;
}

/**
 * Messages between the members of a group. Each has a mailbox, a znode, in which others create messages as sequential
 * znodes:
 *
 *     <path>/<member>/_c_<uuid>-<sender>-0000000007
 *
 * 1. A message whose `send` has resolved is delivered, repeatedly until it is acknowledged, also across crashes on both
 *    sides.
 * 2. Messages from one member to another through one Messenger are received in the order of the calls of `send`.
 * 3. A duplicate, which a lost connection of the sender may cause, has the same id. It is not delivered twice in one
 *    loop.
 *
 * @example
 * const messenger = new Messenger(client, '/groups/shop/mail', 'ann');
 * await messenger.send('bob', 'the shelf is empty');
 * for await (const message of messenger.receive()) {
 *   await handle(message);
 *   await message.acknowledge();
 * }
 */
export class Messenger {
  /** Our own name. */
  readonly member: string;
  readonly path: string;
  readonly #client: Client;
  readonly #acl: readonly Acl[];
  /** By receiver: settles when its last queued send is over. */
  readonly #tails: Map<string, Promise<unknown>> = new Map();

  constructor(client: Client, path: string, member: string, options: MessengerOptions = {}) {
    this.path = path;
    this.member = member;
    this.#client = client;
    this.#acl = options.acl ?? OPEN;
  }

  /** Creates our mailbox, so that others can send; `receive` does so, too. */
  async open(options: CallOptions = {}): Promise<void> {
    const path = this.#boxOf(this.member);
    const attempt = this.#attempt(options, { operation: 'Messenger.open', path });
    await attempt.run(() => attempt.apply((call) => this.#client.ensurePath(path, { ...call, acl: this.#acl })));
  }

  /**
   * Puts a message into a member's mailbox, across lost connections and sessions, after messages sent to the same
   * member before.
   *
   * @returns the id of the message
   * @throws NoNodeError when no member of that name has opened a mailbox; RequestTooLargeError also when servers close
   *   the connection because of its size; TimeoutError, AbortedError; their `outcome` says whether it may have been
   *   sent
   */
  send(receiver: string, data: Data, options: CallOptions = {}): Promise<string> {
    const before = this.#tails.get(receiver) ?? Promise.resolve();
    const sent = this.#put(receiver, data, options, before);
    // A call that is cancelled while it waits must not let later ones overtake earlier ones.
    const tail: Promise<void> = before
      .then(() => sent)
      .catch(() => {})
      .then(() => {
        if (this.#tails.get(receiver) === tail) this.#tails.delete(receiver);
      });
    this.#tails.set(receiver, tail);
    return sent;
  }

  /**
   * The messages in our mailbox and new ones, one at a time, in order; the next one is read when it is requested.
   * Messages that were not acknowledged when the loop ends are delivered again in the next one. Use one loop at a time,
   * in one process. It ends with the signal and the client.
   */
  async *receive(options: { readonly signal?: AbortSignal | undefined } = {}): AsyncGenerator<Message, undefined> {
    const { signal } = options;
    const box = this.#boxOf(this.member);
    let roster: Roster | null = null;
    /** The znode in which a message was first seen, by message id. */
    const seen = new Map<string, string>();
    try {
      await this.open({ signal });
      roster = new Roster(this.#client, box, { withData: false, signal });
      for await (const entries of roster.entries) {
        yield* this.#deliver(entries, roster, seen, signal);
      }
    } catch (error) {
      if (signal?.aborted !== true && !(error instanceof ClosedError)) throw error;
    } finally {
      roster?.close();
    }
  }

  /** The existing ones, until the roster ends. */
  async *#deliver(
    entries: RosterEntries,
    roster: Roster,
    seen: Map<string, string>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Message, void> {
    for (const name of [...entries.keys()].sort(compareBySequence)) {
      const message = await this.#take(name, seen, entries, signal);
      if (message !== null) yield message;
      if (roster.entries.failure !== null) throw roster.entries.failure;
      if (roster.entries.isOver) return;
    }
  }

  /** @returns null when it is not delivered: a copy of one that was, or already acknowledged */
  async #take(
    name: string,
    seen: Map<string, string>,
    entries: RosterEntries,
    signal: AbortSignal | undefined,
  ): Promise<Message | null> {
    const path = joinPath(this.#boxOf(this.member), name);
    const { id, sender } = parseName(name);
    const first = seen.get(id);
    if (first === name) return null;
    if (first !== undefined) {
      await this.#remove(path, { signal });
      return null;
    }
    const found = await this.#read(path, signal);
    if (found === null) return null;
    remember(seen, id, name, entries);
    const { data, stat } = found;
    return { id, sender, data, zxid: stat.czxid, acknowledge: (call = {}) => this.#remove(path, call) };
  }

  /** The number of messages waiting for a member; null when it has no mailbox. */
  async backlog(member: string = this.member, options: CallOptions = {}): Promise<number | null> {
    const stat = await this.#client.exists(this.#boxOf(member), { ...options, read: 'linearizable' });
    return stat === null ? null : stat.numChildren;
  }

  /** @param turn settles when the sends before it are over */
  async #put(receiver: string, data: Data, options: CallOptions, turn: Promise<unknown>): Promise<string> {
    const client = this.#client;
    const box = this.#boxOf(receiver);
    const id = makeUuid(client.surroundings.random);
    const mark = `_c_${id}-`;
    const path = joinPath(box, `${mark}${encodeURIComponent(this.member)}-`);
    const about = { operation: 'Messenger.send', path: box };
    const attempt = this.#attempt(options, about);
    const losses = new LossStreak();
    const put = async (call: CallOptions): Promise<void> => {
      if (attempt.isDoubtful) {
        const { children } = await client.children(box, { ...call, read: 'linearizable' });
        if (children.some((name) => name.startsWith(mark))) return;
        losses.check(about);
      }
      try {
        await client.create(path, data, { ...attempt.next(), sequential: true, acl: this.#acl });
      } catch (error) {
        throw losses.noted(error, data?.length ?? 0);
      }
    };
    return attempt.run(async () => {
      await attempt.waitFor(turn);
      await attempt.apply(put);
      return id;
    });
  }

  async #read(path: string, signal: AbortSignal | undefined): Promise<Znode | null> {
    try {
      return await this.#attempt({ signal }, { operation: 'Messenger.receive', path }).through((call) =>
        this.#client.get(path, call),
      );
    } catch (error) {
      // A client has acknowledged it, or the loop is to end.
      if (error instanceof NoNodeError || signal?.aborted === true) return null;
      throw error;
    }
  }

  async #remove(path: string, options: CallOptions): Promise<void> {
    const attempt = this.#attempt(options, { operation: 'Message.acknowledge', path });
    try {
      await attempt.run(() => attempt.apply((call) => this.#client.delete(path, call)));
    } catch (error) {
      // The sequence number is unique: if it is gone, an earlier attempt has deleted it.
      if (!(error instanceof NoNodeError)) throw error;
    }
  }

  #attempt(options: CallOptions, about: About): Attempt {
    return new Attempt(this.#client, options, about, { awaitsQuorum: true });
  }

  #boxOf(member: string): string {
    return joinPath(this.path, checkedName(member, 'the owner of a mailbox'));
  }
}

/** `_c_<uuid>-<sender>-0000000007`; a name in another form is its own id. */
function parseName(name: string): { readonly id: string; readonly sender: string } {
  const plain = withoutProtection(name);
  const sender = withoutSequence(plain).replace(/-$/, '');
  if (plain === name) return { id: name, sender };
  return { id: name.slice(3, 39), sender: decoded(sender) };
}

/** Another program's name need not be a URI component. */
function decoded(sender: string): string {
  try {
    return decodeURIComponent(sender);
  } catch {
    return sender;
  }
}

/** Remembered as long as the znode may exist, and a good while longer for late duplicates. */
function remember(seen: Map<string, string>, id: string, name: string, present: RosterEntries): void {
  seen.set(id, name);
  if (seen.size <= SEEN_MAX + present.size) return;
  for (const [oldId, oldName] of seen) {
    if (seen.size <= SEEN_MAX) return;
    if (!present.has(oldName)) seen.delete(oldId);
  }
}

const SEEN_MAX = 10_000;

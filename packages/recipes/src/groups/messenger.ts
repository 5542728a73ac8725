import {
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
import { checkedName } from '../child-name.ts';
import { Uncertainty } from '../doubt.ts';
import { makeUuid } from '../layout.ts';
import { LossStreak } from '../loss-streak.ts';
import { compareBySequence, withoutSequence } from '../sequence.ts';
import { neverAborted, untilDone, untilDoneWithin, withLimits } from './persistence.ts';
import { Roster, type RosterEntries } from './roster.ts';

export interface MessengerOptions {
  /**
   * Who may do what with mailboxes and messages that are made here, and with the path above them where it is missing: other
   * members make theirs below it. Default: everybody everything.
   */
  readonly acl?: readonly Acl[] | undefined;
}

/** What somebody has sent to us. */
export interface Message {
  /** The same for every copy of a message: by it whoever receives it twice, before and after a crash, can tell. */
  readonly id: string;
  /** As the sender called itself. */
  readonly sender: string;
  readonly data: Uint8Array;
  /** zxid at which it was put into the mailbox. */
  readonly zxid: bigint;
  /** Takes it out of the mailbox. Until then it comes again to whoever receives after us. May be repeated. */
  acknowledge(options?: CallOptions): Promise<void>;
}

/**
 * Messages between the members of a group. Each has a mailbox, a znode, in which others put messages as sequential znodes:
 *
 *     <path>/<member>/_c_<uuid>-<sender>-0000000007
 *
 * 1. A message whose `send` has resolved is received, and again until it is acknowledged, also after crashes on both sides.
 * 2. What one member sends to another through one of these is received in the order of the calls of `send`.
 * 3. A repetition, which a lost connection of the sender may cause, has the same id. In one loop it is not given out twice.
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
  /** By receiver: when the last one that was sent is over. */
  readonly #tails: Map<string, Promise<unknown>> = new Map();

  constructor(client: Client, path: string, member: string, options: MessengerOptions = {}) {
    this.path = path;
    this.member = member;
    this.#client = client;
    this.#acl = options.acl ?? OPEN;
  }

  /** Makes our mailbox, so that others can send; `receive` does, too. */
  async open(options: CallOptions = {}): Promise<void> {
    const path = this.#boxOf(this.member);
    await untilDoneWithin(this.#client, options, { operation: 'Messenger.open', path }, (signal) =>
      this.#client.ensurePath(path, { signal, acl: this.#acl }),
    );
  }

  /**
   * Puts a message into somebody's mailbox, through lost connections and sessions. Behind those that were sent to the same
   * member before.
   *
   * @returns the id of the message
   * @throws NoNodeError when nobody of that name has opened a mailbox; RequestTooLargeError also when servers close the
   * connection because of it; TimeoutError, AbortedError; their `outcome` says whether it may have been put there
   */
  send(receiver: string, data: Data, options: CallOptions = {}): Promise<string> {
    const before = this.#tails.get(receiver) ?? Promise.resolve();
    const sent = this.#put(receiver, data, options, before);
    // Whoever gave up while it waited has not made way for those behind it.
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
   * What is in our mailbox and what comes, one after the other, in order; the next one is read when it is asked for. What
   * is not acknowledged when the loop is left comes again in the next one. One loop at a time, in one process. It ends with
   * the signal and with the client.
   */
  async *receive(options: { readonly signal?: AbortSignal | undefined } = {}): AsyncGenerator<Message, undefined> {
    const { signal = neverAborted() } = options;
    const box = this.#boxOf(this.member);
    let roster: Roster | null = null;
    /** The znode in which a message came first. */
    const seen = new Map<string, string>();
    try {
      await this.open({ signal });
      roster = new Roster(this.#client, box, { withData: false, signal });
      for await (const entries of roster.entries) {
        for (const name of [...entries.keys()].sort(compareBySequence)) {
          const { id, sender } = parseName(name);
          const first = seen.get(id);
          if (first === name) continue;
          if (first !== undefined) {
            await this.#remove(joinPath(box, name), { signal });
            continue;
          }
          const found = await this.#read(joinPath(box, name), signal);
          if (found === null) continue;
          remember(seen, id, name, entries);
          const { data, stat } = found;
          const acknowledge = (call: CallOptions = {}): Promise<void> => this.#remove(joinPath(box, name), call);
          yield { id, sender, data, zxid: stat.czxid, acknowledge };
          const { isOver, failure } = roster.entries;
          if (failure !== null) throw failure;
          if (isOver) return;
        }
      }
    } catch (error) {
      if (!signal.aborted && !(error instanceof ClosedError)) throw error;
    } finally {
      roster?.close();
    }
  }

  /** How many messages wait for a member; null when it has no mailbox. */
  async backlog(member: string = this.member, options: CallOptions = {}): Promise<number | null> {
    const stat = await this.#client.exists(this.#boxOf(member), { ...options, read: 'linearizable' });
    return stat === null ? null : stat.numChildren;
  }

  /** @param turn settles when those before it are over */
  async #put(receiver: string, data: Data, options: CallOptions, turn: Promise<unknown>): Promise<string> {
    const client = this.#client;
    const box = this.#boxOf(receiver);
    const id = makeUuid(client.surroundings.random);
    const mark = `_c_${id}-`;
    const path = joinPath(box, `${mark}${encodeURIComponent(this.member)}-`);
    const about = { operation: 'Messenger.send', path: box };
    const uncertainty = new Uncertainty();
    const losses = new LossStreak();
    await untilDoneWithin(client, options, about, async (signal) => {
      await withLimits(client, { signal }, { ...about, outcome: 'not-applied' }, () => turn);
      if (uncertainty.exists) {
        const { children } = await client.children(box, { read: 'linearizable', signal });
        if (children.some((name) => name.startsWith(mark))) return;
        losses.check(about);
      }
      try {
        await client.create(path, data, { sequential: true, acl: this.#acl, signal });
      } catch (error) {
        throw losses.noted(uncertainty.noted(error), data?.length ?? 0);
      }
    });
    return id;
  }

  async #read(path: string, signal: AbortSignal): Promise<Znode | null> {
    try {
      return await untilDone(this.#client, signal, () => this.#client.get(path, { signal }));
    } catch (error) {
      // Somebody has acknowledged it, or we are to stop.
      if (error instanceof NoNodeError || signal.aborted) return null;
      throw error;
    }
  }

  async #remove(path: string, options: CallOptions): Promise<void> {
    const about = { operation: 'Message.acknowledge', path };
    await untilDoneWithin(this.#client, options, about, async (signal) => {
      try {
        await this.#client.delete(path, { signal });
      } catch (error) {
        // The number in its name is nobody else's: what is gone was deleted by an attempt before this one.
        if (!(error instanceof NoNodeError)) throw error;
      }
    });
  }

  #boxOf(member: string): string {
    return joinPath(this.path, checkedName(member, 'the owner of a mailbox'));
  }
}

/** `_c_<uuid>-<sender>-0000000007`; what somebody else has put there in another form is its own id. */
function parseName(name: string): { readonly id: string; readonly sender: string } {
  const plain = withoutProtection(name);
  const sender = withoutSequence(plain).replace(/-$/, '');
  if (plain === name) return { id: name, sender };
  return { id: name.slice(3, 39), sender: decoded(sender) };
}

/** What another program calls itself may be no URI component. */
function decoded(sender: string): string {
  try {
    return decodeURIComponent(sender);
  } catch {
    return sender;
  }
}

/** As long as the znode may still be there, and a good while longer for repetitions that are late. */
function remember(seen: Map<string, string>, id: string, name: string, present: RosterEntries): void {
  seen.set(id, name);
  if (seen.size <= SEEN_MAX + present.size) return;
  for (const [oldId, oldName] of seen) {
    if (seen.size <= SEEN_MAX) return;
    if (!present.has(oldName)) seen.delete(oldId);
  }
}

const SEEN_MAX = 10_000;

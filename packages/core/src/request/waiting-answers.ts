import { ErrorCode, OpCode, type ReadRequest, ZXID_NONE } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { Meters } from '../base/meters/meters.ts';
import type { Database } from '../tree/database.ts';
import type { ApplyPace } from './apply-pace.ts';
import type { Client, WaitingAnswer, WaitingRead } from './client.ts';
import { LongReadLimiter, NO_ROOM } from './long-read-limiter.ts';
import type { Reads } from './read.ts';

export interface WaitingAnswersParts {
  readonly database: Database;
  readonly reads: Reads;
  readonly meters: Meters;
  readonly pace: ApplyPace;
  /** Tickets of syncs up to this one are answered from the start. */
  readonly lastSynced: number;
}

/**
 * Requests that are answered without a txn of their own, in the order of their session: reads, syncs, errors and
 * closeSessions of local sessions. Most reads are answered at once. The others wait
 *
 * 1. for a write of their own session to be applied,
 * 2. for a partly applied txn that changes what they read,
 * 3. for the ticket of their sync,
 * 4. for their client, which has used its share of the turn or does not read its replies,
 * 5. for room among the reads that take several turns.
 */
export class WaitingAnswers {
  readonly #database: Database;
  readonly #reads: Reads;
  readonly #meters: Meters;
  readonly #pace: ApplyPace;
  /** Clients whose oldest request waits for a txn of another client to be applied. */
  readonly #hidden: Set<Client> = new Set();
  /** Clients with a waiting `sync`, in ticket order. */
  readonly #syncing: { readonly client: Client; readonly ticket: number }[] = [];
  #lastSynced: number;
  #owedCount = 0;
  readonly #room = new LongReadLimiter();

  constructor({ database, reads, meters, pace, lastSynced }: WaitingAnswersParts) {
    this.#database = database;
    this.#reads = reads;
    this.#meters = meters;
    this.#pace = pace;
    this.#lastSynced = lastSynced;
  }

  /** Requests of all clients that wait behind writes; the sum of the counts of `WaitingRequests`. */
  get owedCount(): number {
    return this.#owedCount;
  }

  /** Answers a read at once unless a request of its session waits. A read that takes several turns is queued. */
  read(client: Client, xid: number, request: ReadRequest, bytes: number, nowMs: number): void {
    const reads = this.#reads;
    const meters = this.#meters;
    const isLate = client.isTurnSpent && reads.isCostly(client, request);
    const receivedMs = meters.turnStartedMs;
    if (client.waiting.length > 0 || this.#isHidden(client, request) || isLate) {
      const isLong = reads.isLong(client, request);
      const isFirst = client.waiting.length === 0;
      this.#queue(client, { kind: 'read', xid, receivedMs, bytes, request, isLong, long: null });
      if (!isLate || !isFirst) return;
      // It waits for its own client only, so it does not count as owed.
      this.#clearOwed(client);
      client.yieldTurn();
      return;
    }
    const begun = reads.answer(client, xid, request, nowMs, this.#room);
    if (begun === null) {
      this.#room.leave(client);
      meters.onReadAtOnce(request.op);
    }
    // The client may have been disconnected meanwhile, for too many events.
    if (begun === null || !client.isOpen) return;
    const long = begun === NO_ROOM ? null : begun;
    this.#queue(client, { kind: 'read', xid, receivedMs, bytes, request, isLong: true, long });
    if (long === null) {
      this.#clearOwed(client);
      return;
    }
    this.#room.hold(client, long.heldBytes);
    if (long.holdsEvents) client.output.holdEvents();
    // Beginning it may have used up the client's share of the turn.
    client.charge(0);
    this.answerWaiting(client);
  }

  /** Whether a read must wait for a partly applied txn; if so, the client is called again once that is done. */
  #isHidden(client: Client, request: ReadRequest): boolean {
    if (!this.#pace.isUnfinished || !this.#pace.hides(request)) return false;
    this.#hidden.add(client);
    return true;
  }

  /** A txn that was applied in steps is complete. */
  onTxnCompleted(): void {
    if (this.#hidden.size === 0) return;
    const clients = [...this.#hidden];
    this.#hidden.clear();
    for (const client of clients) client.yieldTurn();
  }

  /** Every sync up to this ticket is answered once everything committed before them is applied. */
  onSynced(ticket: number): void {
    if (this.#pace.isBehind) this.#pace.whenApplied(() => this.#answerSyncs(ticket));
    else this.#answerSyncs(ticket);
  }

  #answerSyncs(ticket: number): void {
    this.#lastSynced = ticket;
    while (this.#syncing.length > 0 && this.#syncing[0]!.ticket <= ticket) {
      this.answerWaiting(this.#syncing.shift()!.client);
    }
  }

  /** The client's connection is gone. */
  leave(client: Client): void {
    const { oldest } = client.waiting;
    if (oldest?.kind === 'read') oldest.long?.drop();
    this.#room.leave(client);
    this.#clearOwed(client);
    client.waiting.clear();
    this.#hidden.delete(client);
  }

  /** The server's role is over. */
  drop(): void {
    this.#syncing.length = 0;
  }

  /** Answers a client's oldest waiting requests, up to the first that must still wait. */
  answerWaiting(client: Client): void {
    while (client.waiting.length > 0 && client.isOpen) {
      const oldest = client.waiting.oldest!;
      if (oldest.kind === 'write') return;
      if (oldest.kind === 'sync' && oldest.ticket > this.#lastSynced) return;
      if (oldest.kind === 'sync' && this.#pace.isBehind && oldest.after > this.#database.lastZxid) {
        this.#hidden.add(client);
        return;
      }
      if (oldest.kind === 'read' && !this.#mayAnswer(client, oldest)) {
        this.#clearOwed(client);
        return;
      }
      this.#answerOldest(client, oldest);
      client.charge(READ_UNITS);
    }
  }

  /** Whether a read may be answered or continued now; if not, `answerWaiting` will be called again. */
  #mayAnswer(client: Client, { request, long }: WaitingRead): boolean {
    if (long === null && this.#isHidden(client, request)) return false;
    if (this.#room.has(client)) {
      // Continues even if the client does not read its replies, because others wait for room.
      if (client.isShareUsed) return false;
      if (this.#room.mayContinue(client)) return true;
      client.yieldTurn();
      return false;
    }
    if (client.mustWait) return false;
    return long !== null || !this.#reads.needsRoom(client, request) || this.#room.enter(client);
  }

  /**
   * The client's oldest write is about to be applied. Earlier requests are answered now, so that they do not see the
   * write: a sync whose ticket is still open, and reads that wait because the client is slow to read its replies. The
   * write cannot wait, so a client with too many bytes of queued replies is disconnected.
   *
   * The answer to the sync is still correct: a quorum has accepted the write, which reached the leader after the sync,
   * so it was still the leader when the sync arrived; and everything committed before the write is applied.
   */
  answerBeforeWrite(client: Client): void {
    while (client.waiting.length > 0 && client.isOpen) {
      const oldest = client.waiting.oldest!;
      if (oldest.kind === 'write') return;
      while (!this.#answerOldest(client, oldest));
      if (client.output.isTooMuch) client.close('it does not read: too many bytes of replies are queued');
    }
  }

  /** Answers the client's oldest request, or executes one slice of it. @returns true when it is done */
  #answerOldest(client: Client, oldest: WaitingAnswer): boolean {
    if (!this.#answer(client, oldest)) return false;
    this.#owedCount -= client.waiting.remove(oldest);
    return true;
  }

  #answer(client: Client, waiting: WaitingAnswer): boolean {
    switch (waiting.kind) {
      case 'sync':
        client.output.beginReply(waiting.xid, this.#database.lastZxid, ErrorCode.ok).ustring(waiting.path);
        client.output.endReply(waiting.receivedMs);
        this.#meters.onAnswered(OpCode.sync, waiting.receivedMs);
        return true;
      case 'read':
        return this.#answerRead(client, waiting);
      case 'error':
        client.output.beginReply(waiting.xid, waiting.isLast ? ZXID_NONE : this.#database.lastZxid, waiting.error);
        client.output.endReply(waiting.receivedMs);
        if (waiting.isLast) client.closeAfterReplies('it sent an operation that clients may not send');
        return true;
      case 'end':
        client.output.beginReply(waiting.xid, this.#database.lastZxid, ErrorCode.ok);
        client.output.endReply(waiting.receivedMs);
        this.#meters.onAnswered(OpCode.closeSession, waiting.receivedMs);
        client.closeAfterReplies('its session is closed');
        return true;
    }
  }

  #answerRead(client: Client, waiting: WaitingRead): boolean {
    const { xid, request, receivedMs, long } = waiting;
    if (long === null) {
      const begun = this.#reads.answer(client, xid, request, receivedMs, null);
      assert(begun !== NO_ROOM, 'a client inside the room needs no room');
      waiting.long = begun;
      if (begun === null) this.#room.leave(client);
      else this.#room.hold(client, begun.heldBytes);
      if (waiting.long?.holdsEvents === true) client.output.holdEvents();
      // It was short when it was queued.
      if (begun !== null) client.waiting.markLong(waiting);
    } else if (long.advance()) {
      waiting.long = null;
      if (client.isOpen) long.answer(client, xid, receivedMs);
      this.#room.leave(client);
    } else {
      this.#room.hold(client, long.heldBytes);
    }
    if (waiting.long !== null) return !client.isOpen;
    this.#meters.onAnswered(request.op, receivedMs);
    return true;
  }

  #queue(client: Client, waiting: WaitingAnswer): void {
    client.waiting.add(waiting);
    this.#owedCount++;
  }

  #clearOwed(client: Client): void {
    this.#owedCount -= client.waiting.clearOwed();
  }

  /** Queues a request, to be answered once everything before it is. */
  add(client: Client, waiting: WaitingAnswer): void {
    this.#queue(client, waiting);
    if (waiting.kind === 'sync' && waiting.ticket > this.#lastSynced) {
      this.#syncing.push({ client, ticket: waiting.ticket });
    }
    if (client.waiting.length === 1) this.answerWaiting(client);
  }
}

/** Cost of a read that had to wait, besides what it adds to the work meter. */
const READ_UNITS = 10;

/**
 * Three servers, a leader and two learners, that communicate over queues, with clients that write, read, sync, move,
 * disconnect and close their sessions. `Conversation.check` verifies the invariants.
 */
import {
  type ForwardedRequestPacket,
  OpCode,
  PacketType,
  type Request,
  type RevalidateRequestPacket,
  type SessionTimeout,
  type TxnEntry,
  type Zxid,
} from '@meerkat/protocol';
import { expect } from 'vitest';
import type { ServingParts } from '../request/leader-serving.ts';
import type { Pipeline } from '../request/pipeline.ts';
import type { Session } from '../session/session.ts';
import { PipelineClient } from './pipeline-client.ts';
import { LeaderParty, LearnerParty } from './serving-parties.ts';

/** Messages from a leader to a learner, in the order of the link. */
type Word =
  | { readonly kind: 'proposal'; readonly entry: TxnEntry }
  | { readonly kind: 'commit'; readonly zxid: Zxid }
  | { readonly kind: 'sync' }
  | { readonly kind: 'revalidate'; readonly sessionId: bigint; readonly isValid: boolean };

/** The link between the leader and one learner; both directions are first in, first out. */
class Link {
  readonly learner: LearnerParty;
  readonly serverId: number;
  readonly toLearner: Word[] = [];
  readonly toLeader: (ForwardedRequestPacket | RevalidateRequestPacket | readonly SessionTimeout[])[] = [];
  /** Tickets of syncs that are not answered, oldest first. */
  readonly tickets: number[] = [];
  /** How many entries of the leader's log have been sent. */
  sent = 0;
  syncCount = 0;

  constructor(serverId: number, parts: Partial<ServingParts>) {
    this.serverId = serverId;
    this.learner = new LearnerParty(serverId, parts);
  }
}

interface Asked {
  readonly xid: number;
  readonly request: Request;
  /** What was committed at that time. */
  readonly committed: number;
}

/** One connection, with the requests of its client and the expected replies. */
interface Visit {
  readonly client: PipelineClient;
  readonly server: number;
  readonly asked: Asked[];
  /** The session that its client wants, or null for a new one. */
  readonly wanted: bigint | null;
  /** Number of replies when the client moved to another server; it does not see later ones. */
  seenReplies: number | null;
}

export class Conversation {
  readonly leader: LeaderParty;
  readonly links: readonly Link[];
  readonly visits: Visit[] = [];
  nowMs = 0;
  #sentCount = 0;

  constructor(parts: Partial<ServingParts>) {
    this.leader = new LeaderParty(parts);
    this.links = [new Link(2, parts), new Link(3, parts)];
  }

  /* ------------------------------------------------------------------------------------------- steps ---- */

  /** A new client of a server: 0 is the leader. */
  arrive(server: number): void {
    const client = new PipelineClient(this.#pipelineOf(server)).create(4000);
    this.visits.push({ client, server, wanted: null, asked: [], seenReplies: null });
  }

  /** The client of a session moves to another server, or reconnects to the same one. */
  move(pick: number, server: number): void {
    const session = this.#sessionAt(pick);
    if (session === null) return;
    for (const visit of this.visits) {
      const id = visit.client.session?.id ?? visit.wanted;
      if (id === session.id) visit.seenReplies ??= visit.client.replies.length;
    }
    const client = new PipelineClient(this.#pipelineOf(server));
    const decision = this.#servingOf(server).sessions.resume(session.id, session.timeoutMs, this.nowMs);
    if (decision.kind === 'revalidate') decision.revalidations.ask(client, session.id, decision.timeoutMs, this.nowMs);
    else if (decision.kind === 'resume') client.onSessionResumed(decision.session);
    else return;
    this.visits.push({ client, server, wanted: session.id, asked: [], seenReplies: null });
  }

  send(pick: number, template: Request): void {
    // A client that has moved sends nothing more on its old connection; what it sent before is still in flight.
    const open = this.visits.filter(
      ({ client, seenReplies }) => client.isOpen && client.session !== null && seenReplies === null,
    );
    // Usually the newest: their requests can be mistaken for those of their session elsewhere.
    const visit = open.at(-1 - (pick % 3)) ?? open[0];
    if (visit === undefined) return;
    // Like some clients, these restart the xids on each connection.
    const xid = visit.asked.length + 1;
    const request = this.#mark(template);
    visit.asked.push({ xid, request, committed: this.leader.serving.database.lastZxid });
    visit.client.send(xid, request, this.nowMs);
  }

  leave(pick: number): void {
    const open = this.visits.filter(({ client }) => client.isOpen);
    open[pick % Math.max(open.length, 1)]?.client.close('gone');
  }

  /** A message of a learner reaches the leader. */
  hearLearner(link: Link): void {
    link.toLeader.push(...link.learner.asked.splice(0));
    const word = link.toLeader.shift();
    if (word === undefined) return;
    const { serving } = this.leader;
    if ('length' in word) {
      serving.touch(word, this.nowMs);
    } else if (word.type === PacketType.revalidate) {
      const { sessionId, timeoutMs } = word;
      const isValid = serving.revalidate(link.serverId, sessionId, timeoutMs, this.nowMs);
      this.#sendProposals(link);
      link.toLearner.push({ kind: 'revalidate', sessionId, isValid });
    } else {
      serving.onForwarded(link.serverId, word, this.nowMs, this.nowMs, (ticket) => link.tickets.push(ticket));
      this.#sendSyncs(link);
    }
  }

  /** A message of the leader reaches a learner. */
  hearLeader(link: Link): void {
    this.#sendProposals(link);
    const word = link.toLearner.shift();
    const { learner } = link;
    if (word === undefined) return;
    switch (word.kind) {
      case 'proposal':
        learner.propose(word.entry);
        return;
      case 'commit':
        learner.commit(word.zxid, this.nowMs);
        return;
      case 'sync':
        learner.serving.onSynced(++link.syncCount);
        return;
      case 'revalidate':
        learner.serving.onRevalidated(word.sessionId, word.isValid);
        return;
    }
  }

  /** A quorum acknowledges the oldest `count` uncommitted proposals. */
  commit(count: number): void {
    const { broadcast, log } = this.leader;
    const zxid = Math.min(broadcast.lastSynced + count, log.length) as Zxid;
    for (const link of this.links) this.#sendProposals(link);
    this.leader.commit(zxid, this.nowMs);
    for (const link of this.links) {
      link.toLearner.push({ kind: 'commit', zxid });
      this.#sendSyncs(link);
    }
  }

  pass(ms: number): void {
    this.nowMs += ms;
    this.leader.serving.onTick(this.nowMs, this.nowMs);
    for (const link of this.links)
      link.toLeader.push(...link.learner.asked.splice(0), link.learner.serving.takeTouched(this.nowMs));
  }

  /** Ends the turn of a server, and answers its clients that wait for the next one. */
  endTurn(server: number): void {
    const pipeline = this.#pipelineOf(server);
    pipeline.onTurnEnd(this.nowMs);
    for (const { client } of this.visits.filter((visit) => visit.server === server && visit.client.awaitsTurn)) {
      client.awaitsTurn = false;
      if (client.isOpen) pipeline.answerWaiting(client);
    }
  }

  /** Delivers everything in flight. */
  settle(): void {
    for (let i = 0; i < 3; i++) {
      this.#endTurns();
      for (const link of this.links)
        while (link.toLeader.length + link.learner.asked.length > 0) this.hearLearner(link);
      this.commit(this.leader.log.length);
      for (const link of this.links) while (link.toLearner.length > 0) this.hearLeader(link);
      this.#endTurns();
    }
  }

  #endTurns(): void {
    for (const server of [0, 1, 2]) {
      do this.endTurn(server);
      while (this.#pipelineOf(server).hasWork);
      this.endTurn(server);
    }
  }

  /* ------------------------------------------------------------------------------------------- checks ---- */

  check(): void {
    this.settle();
    this.#checkTrees();
    this.#checkSessions();
    for (const visit of this.visits) this.#checkReplies(visit);
  }

  /** All servers have the same tree and sessions, and no digest mismatch was ever reported. */
  #checkTrees(): void {
    const { database } = this.leader.serving;
    for (const { learner } of this.links) {
      expect(learner.serving.database.lastZxid).toBe(database.lastZxid);
      expect(learner.serving.database.tree.treeDigest()).toBe(database.tree.treeDigest());
      expect(learner.serving.database.sessions).toEqual(database.sessions);
      expect(learner.trace.filter(({ kind }) => kind === 'digest-mismatch')).toEqual([]);
      expect(learner.serving.pipeline.inFlightCount).toBe(0);
    }
    expect(this.leader.serving.pipeline.inFlightCount).toBe(0);
  }

  /** A session changes nothing before its beginning or after its end, and no ephemeral outlives it. */
  #checkSessions(): void {
    const alive = new Set<bigint>();
    for (const { header, txn } of this.leader.log) {
      const { sessionId } = header;
      if (sessionId === 0n || txn.type === OpCode.error) continue;
      if (txn.type === OpCode.createSession) {
        expect(alive.has(sessionId)).toBe(false);
        alive.add(sessionId);
      } else {
        expect(alive.has(sessionId), `session of txn ${header.zxid}`).toBe(true);
        if (txn.type === OpCode.closeSession) alive.delete(sessionId);
      }
    }
    const { tree, sessions } = this.leader.serving.database;
    expect(new Set(sessions.keys())).toEqual(alive);
    for (const owner of tree.sessionsWithEphemerals()) expect(alive.has(owner)).toBe(true);
  }

  /**
   * Replies are in the order of the requests and of the zxids, and the reply to a write is the result of that write.
   */
  #checkReplies({ client, asked, seenReplies }: Visit): void {
    const replies = client.replies.slice(0, seenReplies ?? undefined);
    expect(replies.map(({ xid }) => xid)).toEqual(asked.slice(0, replies.length).map(({ xid }) => xid));
    if (client.isOpen && seenReplies === null) expect(replies.length).toBe(asked.length);
    let last = 0;
    replies.forEach(({ xid, zxid, error }, i) => {
      expect(zxid).toBeGreaterThanOrEqual(last);
      last = zxid;
      const { request, committed } = asked[i]!;
      if (request.op === OpCode.sync) expect(zxid).toBeGreaterThanOrEqual(committed);
      if (!isWrite(request)) return;
      const { header, txn } = this.leader.log[zxid - 1]!;
      expect(header).toMatchObject({ sessionId: client.session?.id, cxid: xid });
      expect(txn.type === OpCode.error ? txn.error : txn.type).toBe(error === 0 ? request.op : error);
      if ('path' in request && 'path' in txn) expect(txn.path.startsWith(request.path)).toBe(true);
      if ('data' in request && 'data' in txn) expect(txn.data).toEqual(request.data);
    });
  }

  /* ------------------------------------------------------------------------------------------ details ---- */

  /** Makes the data of each write unique, so that a txn identifies its request. */
  #mark(request: Request): Request {
    if (!('data' in request)) return request;
    this.#sentCount++;
    return { ...request, data: Uint8Array.of(this.#sentCount >> 8, this.#sentCount) };
  }

  #sendProposals(link: Link): void {
    for (; link.sent < this.leader.log.length; link.sent++) {
      link.toLearner.push({ kind: 'proposal', entry: this.leader.log[link.sent]! });
    }
  }

  #sendSyncs(link: Link): void {
    while (link.tickets.length > 0 && link.tickets[0]! <= this.leader.broadcast.lastSynced) {
      link.tickets.shift();
      link.toLearner.push({ kind: 'sync' });
    }
  }

  #sessionAt(pick: number): Session | null {
    const known = this.visits.slice(-4).flatMap(({ client }) => (client.session === null ? [] : [client.session]));
    return known[pick % Math.max(known.length, 1)] ?? null;
  }

  #servingOf(server: number): LeaderParty['serving'] | LearnerParty['serving'] {
    return server === 0 ? this.leader.serving : this.links[server - 1]!.learner.serving;
  }

  #pipelineOf(server: number): Pipeline {
    return this.#servingOf(server).pipeline;
  }
}

export function isWrite({ op }: Request): boolean {
  return op !== OpCode.getData && op !== OpCode.sync && op !== OpCode.ping;
}

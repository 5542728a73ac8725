/**
 * The host of a follower that feeds observers: the port that they connect to, their links, and their requests to the
 * leader.
 *
 *     leader ◄── REQUEST, REVALIDATE ── RelayedQuestions ◄── ObserverMaster ◄── LearnerLink ◄── port
 *       └──────► PROPOSAL, COMMIT ────► FollowedHistory ───► ObserverMaster ──► LearnerLink
 */
import {
  type ForwardedRequestPacket,
  type LeaderPacket,
  type LearnerPacket,
  OpCode,
  PacketType,
  type RevalidateRequestPacket,
  type SessionTimeout,
  type TxnEntry,
  type UnknownPacket,
  type Zxid,
} from '@meerkat/protocol';
import type { EnsembleOptions } from '../base/options.ts';
import type { ByteStream, StreamEvents } from '../base/ports.ts';
import type { LearnerView } from '../base/server-view.ts';
import { LearnerLink } from '../links/learner-link.ts';
import { authenticated } from '../links/peer-authentication.ts';
import { PortListener } from '../links/port-listener.ts';
import type { LearnerServing } from '../request/learner-serving.ts';
import { MOVED } from '../request/write-path.ts';
import type { FollowedHistory } from '../zab/followed-history.ts';
import type { History } from '../zab/history.ts';
import type { LinkId } from '../zab/leader-host.ts';
import { PeerState } from '../zab/learner-peer.ts';
import { ObserverMaster, type ObserverMasterEffects } from '../zab/observer-master.ts';
import { findRefusalOfClaim } from './claims.ts';
import { readHistory } from './history-reading.ts';
import { chooseForRoom } from './learner-room.ts';
import type { MembershipKeeper } from './membership-keeper.ts';
import { RelayedRequests } from './relayed-requests.ts';
import type { RoleHost } from './role-host.ts';
import { WaitingRevalidations } from './waiting-revalidations.ts';
import { zabOptionsOf } from './zab-options-of.ts';

const REFUSED: StreamEvents = { onBytes() {}, onDrain() {}, onClosed() {} };
const LISTENING = { who: 'observers', consequence: 'observers connect to other servers' };

export interface ObserverFeedingParts {
  readonly host: RoleHost;
  readonly ensemble: EnsembleOptions;
  readonly memberships: MembershipKeeper;
  readonly history: FollowedHistory;
  readonly serving: LearnerServing;
  /** Sends to the leader. */
  readonly ask: (packet: Exclude<LearnerPacket, UnknownPacket>) => void;
}

export class ObserverFeeding implements ObserverMasterEffects {
  readonly #parts: ObserverFeedingParts;
  readonly #master: ObserverMaster;
  readonly #listeners: readonly PortListener[];
  readonly #links = new Map<LinkId, LearnerLink>();
  readonly #questions = new RelayedRequests();
  readonly #revalidations = new WaitingRevalidations();
  #nextLink: LinkId = 1;
  #isOver = false;

  constructor(parts: ObserverFeedingParts) {
    const { host, ensemble, memberships, history } = parts;
    this.#parts = parts;
    this.#master = new ObserverMaster({
      options: zabOptionsOf(host.options, ensemble),
      clock: host.ports.clock,
      membership: memberships,
      history,
      effects: this,
    });
    const { network, peerAuthentication = null } = host.ports;
    const ports = {
      ...host.ports,
      network: authenticated(network, peerAuthentication, 'quorum', host.trace),
      trace: host.trace,
    };
    const { serverId } = host.options;
    const { observerMasterPort, listensOnAllIps } = ensemble;
    const endpoints = memberships.members.observerListenersOf(serverId, observerMasterPort, listensOnAllIps);
    const events = { onAccepted: (stream: ByteStream) => this.#accept(stream) };
    this.#listeners = endpoints.map((at) => new PortListener(ports, at, LISTENING, events));
  }

  start(): void {
    for (const listener of this.#listeners) listener.start();
  }

  /** The role is over. */
  stop(): void {
    this.#isOver = true;
    for (const listener of this.#listeners) listener.stop();
    for (const link of this.#links.values()) link.close();
    this.#links.clear();
  }

  /** The observers that have identified themselves. */
  learners(): readonly LearnerView[] {
    const identified = [...this.#master.learners].filter(({ state }) => state !== PeerState.connected);
    return identified.map(({ serverId, state }) => ({
      serverId,
      isObserver: true,
      isVoter: false,
      isSynchronized: state === PeerState.serving,
    }));
  }

  nextDeadlineMs(): number {
    return Math.min(this.#master.nextDeadlineMs, ...this.#listeners.map((listener) => listener.nextDeadlineMs));
  }

  onTick(): void {
    for (const listener of this.#listeners) listener.onTick();
    this.#master.onTick();
  }

  onTurnEnd(): void {
    this.#master.onTurnEnd();
    this.#revalidations.answer(this.#hasSentCommit, this.#answerRevalidation);
  }

  readonly #hasSentCommit = (link: LinkId, zxid: Zxid): boolean => this.#master.hasSentCommit(link, zxid);

  readonly #answerRevalidation = (link: LinkId, sessionId: bigint): void => {
    const { serving, host } = this.#parts;
    // The session may have ended while the answer waited; then its end has been sent.
    serving.pipeline.applyAll(host.turn.nowMs());
    const isValid = serving.database.sessions.has(sessionId);
    this.send(link, { type: PacketType.revalidate, sessionId, isValid });
  };

  #accept(stream: ByteStream): StreamEvents {
    if (this.#isOver || !this.#makeRoom(stream.isCrowding ?? false)) {
      stream.destroy();
      return REFUSED;
    }
    const id = this.#nextLink++;
    const link = new LearnerLink(stream, this.#parts.host, {
      onPacket: (packet) => {
        if (this.#isOver) return;
        const refusal = findRefusalOfClaim(stream, packet, this.#parts.memberships.members);
        if (refusal === null) this.#master.onLearnerPacket(id, packet);
        else this.#shed(id, refusal);
      },
      onRoom: () => {
        if (!this.#isOver && this.#links.has(id)) this.#master.onLearnerRoom(id);
      },
      onProgress: () => {
        if (!this.#isOver) this.#master.onLearnerProgress(id);
      },
      onLinkClosed: (reason) => {
        if (!this.#links.delete(id) || this.#isOver) return;
        this.#revalidations.forget(id);
        this.#traceClosed(id, reason);
        this.#master.onLearnerClosed(id);
      },
    });
    this.#links.set(id, link);
    this.#master.onLearnerConnected(id);
    return link;
  }

  /** @returns false when there is no room for another one */
  #makeRoom(isCrowded: boolean): boolean {
    const choice = chooseForRoom(
      {
        learners: this.#master.learners,
        remoteOf: (link) => this.#links.get(link)?.remote ?? null,
        isMember: (serverId) => this.#parts.memberships.members.isMember(serverId),
      },
      isCrowded,
    );
    if (choice === 'none' || choice === 'full') return choice === 'none';
    this.#shed(choice.link, choice.reason);
    return true;
  }

  #shed(link: LinkId, reason: string): void {
    this.closeLearner(link, reason);
    this.#master.onLearnerClosed(link);
  }

  #traceClosed(id: LinkId, reason: string): void {
    const learner = [...this.#master.learners].find(({ link }) => link === id);
    const isKnown = learner !== undefined && learner.state !== PeerState.connected;
    this.#parts.host.trace.emit({ kind: 'learner-closed', serverId: isKnown ? learner.serverId : null, reason });
  }

  /* ------------------------------------------------------------------------------------ from the follower ---- */

  onProposed({ header, txn }: TxnEntry): void {
    if (txn.type === OpCode.closeSession) this.#questions.onSessionClosed(header.sessionId);
  }

  activate(zxid: Zxid, designatedLeader: number): void {
    this.#master.activate(zxid, designatedLeader);
  }

  onCommitted(before: Zxid): void {
    this.#master.onCommitted(before);
  }

  /** A client of this server has requested a sync. */
  onOwnSync(): void {
    this.#questions.onSync(null);
  }

  onOwnRevalidate(sessionId: bigint): void {
    this.#questions.onRevalidate(null, sessionId);
  }

  /**
   * Returns how many of the answered syncs are this server's own.
   *
   * @param count syncs that the leader has answered since the role began
   */
  onSynced(count: number): number {
    this.#master.onSynced(count);
    return this.#questions.onSynced(count);
  }

  /** @returns false when the answer is for a client of this server */
  onRevalidated(sessionId: bigint, isValid: boolean): boolean {
    const link = this.#questions.takeRevalidation(sessionId, isValid);
    if (link === null) return false;
    // The observer must first receive what the session requested elsewhere, which the leader has proposed by now.
    const zxid = this.#parts.history.lastTxn;
    if (isValid && !this.#hasSentCommit(link, zxid)) this.#revalidations.add(link, zxid, sessionId);
    else this.send(link, { type: PacketType.revalidate, sessionId, isValid });
    return true;
  }

  /* -------------------------------------------------------------------------------- what the master asks ---- */

  send(link: LinkId, packet: Exclude<LeaderPacket, UnknownPacket>): void {
    this.#links.get(link)?.send(packet);
  }

  sendProposal(link: LinkId, zxid: Zxid, payload: Uint8Array): void {
    this.#links.get(link)?.sendProposal(zxid, payload);
  }

  sendInform(link: LinkId, zxid: Zxid, payload: Uint8Array): void {
    this.#links.get(link)?.sendInform(zxid, payload);
  }

  sendSnapshot(link: LinkId, zxid: Zxid): void {
    const { serving, host } = this.#parts;
    // What is sent after it continues from what is committed now.
    serving.pipeline.applyAll(host.turn.nowMs());
    this.#links.get(link)?.sendSnapshot(serving.database, zxid);
  }

  readHistory(link: LinkId, from: Zxid, upTo: Zxid): void {
    const { host, ensemble } = this.#parts;
    readHistory(host, ensemble, { from, upTo }, (entries) => this.#onHistoryRead(link, entries));
  }

  #onHistoryRead(link: LinkId, entries: History['tail']): void {
    if (!this.#isOver && this.#links.has(link)) this.#master.onHistoryRead(link, entries);
  }

  closeLearner(link: LinkId, reason: string): void {
    this.#traceClosed(link, reason);
    const closing = this.#links.get(link);
    this.#links.delete(link);
    this.#revalidations.forget(link);
    closing?.close();
  }

  synchronizing(serverId: number, mode: 'diff' | 'trunc' | 'snap', from: Zxid, zxid: Zxid): void {
    this.#parts.host.trace.emit({ kind: 'learner-synchronizing', serverId, mode, from, zxid });
  }

  synchronized(serverId: number, zxid: Zxid): void {
    this.#parts.host.trace.emit({ kind: 'learner-synchronized', serverId, zxid });
  }

  requested(link: LinkId, request: ForwardedRequestPacket): void {
    if (request.op === OpCode.sync) this.#master.awaitSync(link, this.#questions.onSync(link));
    else if (!this.#questions.mayAsk(link, request)) return;
    this.#parts.ask(request);
  }

  revalidated(link: LinkId, request: RevalidateRequestPacket): void {
    // What its client requested at this server has been requested before.
    this.#parts.serving.pipeline.clientOf(request.sessionId)?.closeAfterReplies(MOVED);
    this.#questions.onRevalidate(link, request.sessionId);
    this.#parts.ask({ type: PacketType.revalidate, sessionId: request.sessionId, timeoutMs: request.timeoutMs });
  }

  touched(sessions: readonly SessionTimeout[]): void {
    this.#parts.serving.sessions.relayTouched(sessions);
  }
}

/**
 * The host of a leader: its quorum port, the links to its learners, its log, and the requests of the clients of all.
 *
 *     quorum port ─► LearnerLink ─► Leader ─► established ─► clients are served
 *                        ▲            │ ▲
 *          PROPOSAL …    └────────────┘ └── propose ◄── LeaderServing ◄── REQUEST, clients
 */
import {
  EMPTY_BYTES,
  Fifo,
  type ForwardedRequestPacket,
  type LeaderPacket,
  makeZxid,
  PacketType,
  type RevalidateRequestPacket,
  type SessionTimeout,
  type UnknownPacket,
  ZXID_ZERO,
  type Zxid,
} from '@meerkat/protocol';
import { LearnerLink } from '../links/learner-link.ts';
import type { EnsembleOptions } from '../options.ts';
import type { ByteStream, StreamEvents } from '../ports.ts';
import type { LeaderServing } from '../request/leader-serving.ts';
import type { LearnerView } from '../server-view.ts';
import type { Durable } from '../storage/durable.ts';
import type { EpochFileName } from '../storage/epoch-files.ts';
import type { Database } from '../tree/database.ts';
import type { Committed } from '../zab/committed.ts';
import type { History } from '../zab/history.ts';
import { Leader } from '../zab/leader.ts';
import type { LeaderEffects, LinkId } from '../zab/leader-host.ts';
import { PeerState } from '../zab/learner-peer.ts';
import type { RecoveredState } from './member.ts';
import type { Members } from './members.ts';
import { ProposalSizes } from './proposal-sizes.ts';
import type { Role } from './role.ts';
import type { RoleEvents, RoleHost } from './role-host.ts';
import { zabOptionsOf } from './zab-options-of.ts';

/** Bytes of log that are read for a learner at once. */
const HISTORY_BATCH_BYTES = 1024 * 1024;
/** Reading so much of the log is never dearer than sending a snapshot. */
const HISTORY_BYTES_FREE = 4 * 1024 * 1024;
const LISTEN_AGAIN_MS = 250;

export class Leading implements Role, LeaderEffects {
  readonly proposalSizes: ProposalSizes = new ProposalSizes();
  readonly #host: RoleHost;
  readonly #ensemble: EnsembleOptions;
  readonly #members: Members;
  readonly #events: RoleEvents;
  readonly #leader: Leader;
  readonly #links = new Map<LinkId, LearnerLink>();
  readonly #database: Database;
  /** Syncs of learners that wait, in the order of their tickets. */
  readonly #syncs: Fifo<{ readonly ticket: number; readonly link: LinkId }> = new Fifo();
  /** Sessions that go on at an observer, once it has been told of what was proposed before. */
  readonly #revalidations: Fifo<{ readonly zxid: Zxid; readonly link: LinkId; readonly sessionId: bigint }> =
    new Fifo();
  /** Told to be committed, or where this epoch begins. */
  #committed: Zxid = ZXID_ZERO;
  #serving: LeaderServing | null = null;
  #listener: { close(): void } | null = null;
  #listenAgainMs = Number.POSITIVE_INFINITY;
  #nextLink: LinkId = 1;
  #isOver = false;

  constructor(host: RoleHost, ensemble: EnsembleOptions, members: Members, state: RecoveredState, events: RoleEvents) {
    this.#host = host;
    this.#ensemble = ensemble;
    this.#members = members;
    this.#events = events;
    this.#database = state.database;
    const history: History = state.history;
    this.#leader = new Leader(
      zabOptionsOf(host.options, ensemble),
      host.ports.clock,
      members.electorate,
      members.configText,
      history,
      this,
    );
  }

  get leader(): number {
    return this.#host.options.serverId;
  }

  get isEstablished(): boolean {
    return this.#serving !== null;
  }

  /** Those that have said who they are. */
  learners(): readonly LearnerView[] {
    const identified = [...this.#leader.learners].filter(({ state }) => state !== PeerState.connected);
    return identified.map(({ serverId, isObserver, isVoter, state }) => ({
      serverId,
      isObserver,
      isVoter,
      isSynchronized: state === PeerState.serving,
    }));
  }

  get isLeaving(): boolean {
    return this.#isOver || this.#leader.isHandingOver;
  }

  start(): void {
    this.#leader.start();
    if (!this.#isOver) this.#listen();
  }

  leave(reason: string): void {
    if (this.#serving !== null) this.#leader.handOver();
    else this.stepDown(reason);
  }

  abandon(reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#listener?.close();
    for (const link of this.#links.values()) link.close(reason);
    this.#links.clear();
  }

  /* --------------------------------------------------------------------------------------- events of the core ---- */

  onLogSynced(durable: Durable<Zxid>): void {
    this.#leader.onLogSynced(durable);
  }

  onEpochDurable(name: EpochFileName, epoch: Durable<number>): void {
    this.#leader.onEpochDurable(name, epoch);
  }

  onRecovered(): void {}

  onTruncateRefused(): void {}

  onSnapshotInstalled(): void {}

  onTick(): void {
    if (this.#host.nowMs() >= this.#listenAgainMs) this.#listen();
    if (this.#host.ports.clock.monotonicMs() >= this.#leader.nextDeadlineMs) this.#leader.onTick();
  }

  onTurnEnd(): void {
    if (!this.#isOver) this.#leader.onTurnEnd();
  }

  nextDeadlineMs(): number {
    return Math.min(this.#leader.nextDeadlineMs, this.#listenAgainMs);
  }

  /* -------------------------------------------------------------------------------------------- quorum port ---- */

  #listen(): void {
    this.#listenAgainMs = Number.POSITIVE_INFINITY;
    const at = this.#members.quorumEndpointOf(this.leader);
    this.#listener = this.#host.ports.network.listen(at, {
      onListening: () => {},
      onListenFailed: (reason) => {
        if (this.#isOver) return;
        this.#listenAgainMs = this.#host.nowMs() + LISTEN_AGAIN_MS;
        this.#host.trace.emit({
          kind: 'warning',
          message: `this leader cannot listen for its followers at ${at.host}:${at.port}: ${reason}. It tries again; is the port in use?`,
        });
      },
      onAccepted: (stream) => this.#accept(stream),
    });
  }

  #accept(stream: ByteStream): StreamEvents {
    const id = this.#nextLink++;
    const link = new LearnerLink(stream, this.#host, {
      onPacket: (packet) => {
        if (!this.#isOver) this.#leader.onLearnerPacket(id, packet);
      },
      onRoom: () => this.#onRoom(id),
      onProgress: () => {
        if (!this.#isOver) this.#leader.onLearnerProgress(id);
      },
      onLinkClosed: (reason) => {
        if (!this.#links.delete(id) || this.#isOver) return;
        this.#tellClosed(id, reason);
        this.#leader.onLearnerClosed(id, reason);
      },
    });
    this.#links.set(id, link);
    if (this.#isOver) link.close('this server leads no more');
    else this.#leader.onLearnerConnected(id);
    return link;
  }

  /* ------------------------------------------------------------------------------------- what the leader asks ---- */

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
    this.#links.get(link)?.sendSnapshot(this.#database, zxid);
  }

  readHistory(link: LinkId, from: Zxid, upTo: Zxid): void {
    const { storage } = this.#host;
    const budget = Math.max(HISTORY_BYTES_FREE, storage.newestSnapshotBytes * this.#ensemble.snapshotSizeFactor);
    if (this.#ensemble.snapshotSizeFactor < 0 || storage.logBytesAfter(from) > budget) {
      this.#host.defer(() => this.#onHistoryRead(link, []));
      return;
    }
    storage.readHistory({ after: from, upTo, bytesMax: HISTORY_BATCH_BYTES }, (entries) => {
      // A log that gives what follows a txn has that txn itself.
      const anchor: History['tail'] = from === ZXID_ZERO ? [] : [{ zxid: from, payload: EMPTY_BYTES }];
      this.#onHistoryRead(link, entries === null ? [] : [...anchor, ...entries]);
    });
  }

  #onHistoryRead(link: LinkId, entries: History['tail']): void {
    if (!this.#isOver && this.#links.has(link)) this.#leader.onHistoryRead(link, entries);
  }

  closeLearner(link: LinkId, reason: string): void {
    this.#tellClosed(link, reason);
    const closing = this.#links.get(link);
    this.#links.delete(link);
    closing?.close(reason);
  }

  #tellClosed(id: LinkId, reason: string): void {
    const learner = [...this.#leader.learners].find(({ link }) => link === id);
    const isKnown = learner !== undefined && learner.state !== PeerState.connected;
    this.#host.trace.emit({ kind: 'learner-closed', serverId: isKnown ? learner.serverId : null, reason });
  }

  writeEpoch(name: EpochFileName, epoch: number): void {
    this.#host.storage.writeEpoch(name, epoch);
  }

  append(zxid: Zxid, payload: Uint8Array): void {
    this.proposalSizes.onProposed(payload.length);
    this.#host.trace.emit({ kind: 'proposed', zxid });
    this.#host.storage.appendPayload(zxid, payload);
  }

  established(epoch: number, history: Committed<Zxid>): void {
    this.#host.trace.emit({ kind: 'committed', zxid: history });
    this.#committed = makeZxid(epoch, 0);
    const serving = this.#host.makeLeaderServing(this.#database, this.#leader);
    this.#serving = serving;
    this.#host.storage.allowSnapshots();
    this.#events.onEstablished(epoch, this.#database.lastZxid);
    this.#host.beginServing(serving);
  }

  committed(watermark: Committed<Zxid>): void {
    this.#host.trace.emit({ kind: 'committed', zxid: watermark });
    this.#committed = watermark;
    this.#serving?.onCommitted(watermark, this.#host.nowMs());
    const waiting = this.#revalidations;
    for (let oldest = waiting.peek(); oldest !== undefined && oldest.zxid <= watermark; oldest = waiting.peek()) {
      waiting.shift();
      const { link, sessionId } = oldest;
      const isValid = this.#serving?.sessions.get(sessionId)?.isClosing === false;
      this.send(link, { type: PacketType.revalidate, sessionId, isValid });
    }
  }

  synced(ticket: number): void {
    this.#serving?.onSynced(ticket);
    for (
      let oldest = this.#syncs.peek();
      oldest !== undefined && oldest.ticket <= ticket;
      oldest = this.#syncs.peek()
    ) {
      this.#syncs.shift();
      this.send(oldest.link, { type: PacketType.sync });
    }
  }

  requested(link: LinkId, serverId: number, request: ForwardedRequestPacket): void {
    // The learner hears of the end of this role, and its client asks again.
    if (this.#serving === null || this.isLeaving) return;
    const ticket = this.#serving.onForwarded(serverId, request, this.#host.nowMs(), this.#host.wallMs());
    if (ticket === null) return;
    if (ticket <= this.#leader.lastSynced) this.send(link, { type: PacketType.sync });
    else this.#syncs.push({ ticket, link });
  }

  revalidated(link: LinkId, serverId: number, { sessionId, timeoutMs }: RevalidateRequestPacket): void {
    const isValid = this.#serving?.revalidate(serverId, sessionId, timeoutMs, this.#host.nowMs()) ?? false;
    const { lastProposed } = this.#leader;
    // An observer does not know of what is proposed: it must have heard of all that the session asked for elsewhere,
    // before it takes a txn for the answer to what the session asks there.
    const isToldOfAll = this.#members.isParticipant(serverId) || this.#committed >= lastProposed;
    if (!isValid || isToldOfAll) this.send(link, { type: PacketType.revalidate, sessionId, isValid });
    else this.#revalidations.push({ zxid: lastProposed, link, sessionId });
  }

  touched(sessions: readonly SessionTimeout[]): void {
    this.#serving?.touch(sessions, this.#host.nowMs());
  }

  stepDown(reason: string): void {
    if (this.#isOver) return;
    this.abandon(reason);
    this.#events.onEnded(reason);
  }

  synchronizing(serverId: number, mode: 'diff' | 'trunc' | 'snap', from: Zxid, zxid: Zxid): void {
    this.#host.trace.emit({ kind: 'learner-synchronizing', serverId, mode, from, zxid });
  }

  synchronized(serverId: number, zxid: Zxid): void {
    this.#host.trace.emit({ kind: 'learner-synchronized', serverId, zxid });
  }

  #onRoom(id: LinkId): void {
    if (!this.#isOver && this.#links.has(id)) this.#leader.onLearnerRoom(id);
  }
}

import {
  Announcement,
  counterOf,
  formatZxid,
  type LearnerInfoPacket,
  type LearnerPacket,
  makeZxid,
  OpCode,
  PacketType,
  parseMembership,
  QUORUM_PROTOCOL_VERSION,
  type Txn,
  type TxnHeader,
  ZXID_ZERO,
  type Zxid,
} from '@meerkat/protocol';
import { onDisk } from '../base/durable.ts';
import { Electorate } from '../election/electorate.ts';
import { makeQuorum, type QuorumShape } from '../election/quorum.ts';
import type { HistoryEntry } from '../zab/history.ts';
import { Leader } from '../zab/leader.ts';
import type { LeaderEffects, LinkId } from '../zab/leader-host.ts';
import { formatPacket, formatPair, parseHistory, parsePair } from './history-text.ts';
import { LEADER_SHAPE, type LeaderShape } from './leader-shape.ts';
import { ManualClock } from './test-server.ts';

/** A request of the leader; `to` is a learner, by the name that the test gave it. */
export interface Asked {
  readonly to: number | null;
  readonly text: string;
}

/** A single leader; the test plays its learners and its disk. */
export class TestLeader {
  readonly clock: ManualClock = new ManualClock();
  readonly leader: Leader;
  readonly serverId: number;
  /** Payloads of what was appended, and of what was sent as PROPOSAL or INFORM, in order. */
  readonly appended: HistoryEntry[] = [];
  readonly sentPayloads: Uint8Array[] = [];
  /** Which learners have acknowledged proposals, and up to where. */
  readonly acknowledged: string[] = [];
  /** Zxids of the snapshots that were sent. */
  readonly sentSnapshots: Zxid[] = [];
  /** The membership in each NEWLEADER. */
  readonly namedMemberships: (string | null)[] = [];
  /** Epochs of the histories of candidates in elections. */
  readonly peerVotes: Map<number, number> = new Map([1, 2, 3, 4, 5].map((id) => [id, 1]));
  /** Called during effects in which a host may propose. */
  onServing: () => void = () => {};
  /** Learners whose links accept nothing more for now. */
  readonly narrow = new Set<number>();
  /** Entries of the log that `readHistory` returns at once. */
  readBatch = 3;
  #log: HistoryEntry[];
  readonly #logFrom: Zxid | null;
  #asked: Asked[] = [];
  #disk: (() => void)[] = [];
  #sentOver = new Set<number>();
  #lastAppended: Zxid | null = null;
  readonly #links = new Map<number, LinkId>();
  #newestLink = 0;
  readonly #electorate: Electorate;
  /** The voters once the proposed change is committed. */
  #nextQuorum: QuorumShape | null = null;
  #committedText: string;
  #newestText: string;

  constructor(shape: Partial<LeaderShape> = {}) {
    const {
      serverId,
      quorum,
      history,
      memory,
      logFrom,
      currentEpoch,
      acceptedEpoch,
      configText,
      options,
      needSnapshot,
    } = {
      ...LEADER_SHAPE,
      ...shape,
    };
    this.serverId = serverId;
    const membership = parseMembership(configText);
    this.#committedText = configText;
    this.#newestText = configText;
    const textOf = (): readonly [committed: string, newest: string] => [this.#committedText, this.#newestText];
    const entries = parseHistory(history);
    this.#logFrom = logFrom === null ? null : parsePair(logFrom);
    this.#log = entries.filter(({ zxid }) => this.#logFrom === null || zxid >= this.#logFrom);
    const lastZxid = entries.at(-1)?.zxid ?? makeZxid(0, 0);
    const tail = memory === 0 ? [] : entries.slice(-memory);
    this.#electorate = new Electorate(makeQuorum(quorum));
    this.leader = new Leader({
      options: {
        serverId,
        tickTimeMs: 1000,
        initLimit: 10,
        syncLimit: 5,
        leaseMs: 0,
        epochTxnsMax: 1_000_000,
        commitLogCount: 500,
        txnBytesMax: 1_000_000,
        ...options,
      },
      clock: this.clock,
      electorate: this.#electorate,
      membership: {
        version: 'fault' in membership ? ZXID_ZERO : membership.version,
        get committedText() {
          return textOf()[0];
        },
        get newestText() {
          return textOf()[1];
        },
        keepsLeader: true,
      },
      history: {
        lastZxid: onDisk(lastZxid),
        currentEpoch: onDisk(currentEpoch),
        acceptedEpoch: onDisk(acceptedEpoch),
        tail,
      },
      peerVotes: { historyEpochOf: (id) => this.peerVotes.get(id) ?? null },
      effects: this.#effects(),
      needSnapshot,
    });
  }

  /** Everything requested since the last call. */
  take(): readonly Asked[] {
    const asked = this.#asked;
    this.#asked = [];
    return asked;
  }

  /** The same as text: `→ 2 COMMIT (2,1)`, `committed (2,1)`. */
  said(): readonly string[] {
    return this.take().map(({ to, text }) => (to === null ? text : `→ ${to} ${text}`));
  }

  /* ------------------------------------------------------------------------------------------- events ---- */

  start(): void {
    this.leader.start();
    this.#endTurn();
  }

  /** @param learner its name in this test: the server id that it will send */
  connect(learner: number): void {
    this.#links.set(learner, ++this.#newestLink);
    this.leader.onLearnerConnected(this.#newestLink);
    this.#endTurn();
  }

  isConnected(learner: number): boolean {
    return this.#links.has(learner);
  }

  disconnect(learner: number): void {
    const link = this.#links.get(learner)!;
    this.#links.delete(learner);
    this.leader.onLearnerClosed(link, 'closed by peer');
    this.#endTurn();
  }

  packet(learner: number, packet: LearnerPacket): void {
    const link = this.#links.get(learner);
    if (link === undefined) throw new Error(`learner ${learner} is not connected`);
    this.leader.onLearnerPacket(link, packet);
    this.#endTurn();
  }

  info(learner: number, acceptedEpoch = 1, rest: Partial<LearnerInfoPacket> = {}): void {
    this.packet(learner, {
      type: PacketType.followerInfo,
      zxid: makeZxid(acceptedEpoch, 0),
      serverId: learner,
      protocolVersion: QUORUM_PROTOCOL_VERSION,
      configVersion: makeZxid(0, 0),
      announces: Announcement.keepsLog,
      ...rest,
    });
  }

  ackEpoch(learner: number, lastZxid: string, currentEpoch = 1): void {
    const zxid = lastZxid === '−1' ? (-1 as Zxid) : parsePair(lastZxid);
    this.packet(learner, { type: PacketType.ackEpoch, zxid, currentEpoch });
  }

  ack(learner: number, zxid: string): void {
    this.packet(learner, { type: PacketType.ack, zxid: parsePair(zxid) });
  }

  pong(learner: number): void {
    this.packet(learner, { type: PacketType.ping, zxid: this.leader.lastProposed, sessions: [] });
  }

  /** All steps of a learner up to its ACK of NEWLEADER; the epoch must have been chosen. */
  join(learner: number, lastZxid = '(1,5)', rest: Partial<LearnerInfoPacket> = {}): void {
    this.connect(learner);
    this.info(learner, 1, rest);
    this.ackEpoch(learner, lastZxid);
    this.disk();
    this.ack(learner, `(${this.leader.epoch},0)`);
  }

  /** A leader with these followers in a new epoch, all of it durable; the output so far is discarded. */
  establish(followers: readonly number[], rest: Partial<LearnerInfoPacket> = {}, lastZxid = '(1,5)'): this {
    this.start();
    for (const id of followers) this.connect(id);
    for (const id of followers) this.info(id, 1, rest);
    this.disk();
    for (const id of followers) this.ackEpoch(id, lastZxid);
    this.disk();
    for (const id of followers) this.ack(id, `(${this.leader.epoch},0)`);
    this.take();
    return this;
  }

  propose(count = 1): void {
    for (let i = 0; i < count; i++) this.#propose();
    this.#endTurn();
  }

  sync(): number {
    const ticket = this.leader.sync();
    this.#endTurn();
    return ticket;
  }

  /** A learner's client asks for a sync. */
  syncOf(learner: number): void {
    const body = new Uint8Array(0);
    this.packet(learner, { type: PacketType.request, sessionId: 7n, cxid: 1, op: OpCode.sync, body, authInfo: [] });
  }

  /** The disk completes all requests, including those that result from them. */
  disk(): void {
    while (this.#disk.length > 0 || this.#lastAppended !== null) {
      const done = this.#disk;
      this.#disk = [];
      for (const callback of done) callback();
      const durable = this.#lastAppended;
      this.#lastAppended = null;
      if (durable !== null) this.leader.onLogSynced(onDisk(durable));
      this.#endTurn();
    }
  }

  room(learner: number): void {
    this.narrow.delete(learner);
    this.leader.onLearnerRoom(this.#links.get(learner)!);
    this.#endTurn();
  }

  /** Some of the bytes in flight to a learner have been sent. */
  progress(learner: number): void {
    this.leader.onLearnerProgress(this.#links.get(learner)!);
  }

  /** Time passes; these learners answer every ping. */
  advance(ms: number, alive: readonly number[] = []): void {
    const untilMs = this.clock.nowMs + ms;
    while (this.leader.nextDeadlineMs <= untilMs) {
      this.clock.nowMs = this.leader.nextDeadlineMs;
      this.leader.onTick();
      this.#endTurn();
      for (const learner of alive) if (this.#links.has(learner)) this.pong(learner);
    }
    this.clock.nowMs = untilMs;
  }

  handOver(): void {
    this.leader.handOver('asked to');
    this.#endTurn();
  }

  /** A change of the membership: the voters from its commit on. */
  proposeChange(next: QuorumShape): void {
    this.#nextQuorum = next;
    const zxid = this.leader.nextZxid();
    const header: TxnHeader = { sessionId: 7n, cxid: counterOf(zxid), zxid, time: 1 };
    this.leader.propose(header, { type: OpCode.reconfig, path: '/zookeeper/config', data: null, version: -1 }, null);
    this.#endTurn();
  }

  /** Proposes a txn as a host does, from an effect or from outside. @param data null: an error txn, which has none */
  proposeNow(data: Uint8Array | null = null): void {
    this.#propose(data);
  }

  #propose(data: Uint8Array | null = null): void {
    const zxid = this.leader.nextZxid();
    const header: TxnHeader = { sessionId: 7n, cxid: counterOf(zxid), zxid, time: 1 };
    const error: Txn = { type: OpCode.error, error: -101 };
    const txn: Txn = data === null ? error : { type: OpCode.setData, path: '/large', data, version: 1 };
    this.leader.propose(header, txn, null);
  }

  /** Links that have room report it, as often as something was sent. */
  #endTurn(): void {
    this.leader.onTurnEnd();
    while (this.#sentOver.size > 0) {
      const links = [...this.#sentOver];
      this.#sentOver = new Set();
      for (const learner of links) {
        const link = this.#links.get(learner);
        if (link !== undefined && !this.narrow.has(learner)) this.leader.onLearnerRoom(link);
      }
    }
  }

  #say(text: string): void {
    this.#asked.push({ to: null, text });
  }

  #send(link: LinkId, text: string): void {
    const learner = this.#nameOf(link);
    this.#asked.push({ to: learner, text });
    this.#sentOver.add(learner);
  }

  #nameOf(link: LinkId): number {
    for (const [learner, other] of this.#links) if (other === link) return learner;
    throw new Error(`link ${link} is closed, but used`);
  }

  #effects(): LeaderEffects {
    return {
      send: (link, packet) => {
        if (packet.type === PacketType.newLeader) this.namedMemberships.push(packet.configText);
        this.#send(link, formatPacket(packet));
      },
      sendProposal: (link, zxid, payload) => {
        this.sentPayloads.push(payload);
        this.#send(link, `PROPOSAL ${formatPair(zxid)}`);
      },
      sendInform: (link, zxid, payload) => {
        this.sentPayloads.push(payload);
        this.#send(link, `INFORM ${formatPair(zxid)}`);
      },
      sendSnapshot: (link, zxid) => {
        this.sentSnapshots.push(zxid);
        this.#send(link, 'SNAP');
      },
      readHistory: (link, from, upTo) => {
        this.#say(`reads its log from ${formatPair(from)} to ${formatPair(upTo)}`);
        this.#disk.push(() => this.leader.onHistoryRead(link, this.#readLog(from, upTo)));
      },
      closeLearner: (link, reason) => {
        const learner = this.#nameOf(link);
        // A learner that has reconnected has the same name.
        this.#links.delete(learner);
        this.#say(`closes ${learner}: ${reason}`);
      },
      acceptEpoch: (epoch) => {
        this.#say(`writes acceptedEpoch ${epoch}`);
        this.#disk.push(() => this.leader.onEpochDurable('acceptedEpoch', onDisk(epoch)));
      },
      adoptEpoch: (epoch) => {
        this.#say(`writes currentEpoch ${epoch}`);
        this.#disk.push(() => this.leader.onEpochDurable('currentEpoch', onDisk(epoch)));
      },
      append: (zxid, payload) => {
        this.appended.push({ zxid, payload });
        this.#log.push({ zxid, payload });
        this.#lastAppended = zxid;
        this.#say(`appends ${formatPair(zxid)}`);
      },
      acknowledged: (link, zxid) => {
        this.acknowledged.push(`${link === null ? 'itself' : this.#nameOf(link)} ${formatPair(zxid)}`);
      },
      membershipProposed: (zxid) => {
        this.#newestText = `version=${formatZxid(zxid)}`;
        this.#electorate.change(this.#electorate.current, makeQuorum(this.#nextQuorum!));
      },
      membershipCommitted: () => {
        this.#committedText = this.#newestText;
        this.#electorate.change(makeQuorum(this.#nextQuorum!), null);
      },
      membershipEstablished: () => {},
      staysOut: (reason) => this.#say(`warns: ${reason}`),
      synchronizing: () => {},
      synchronized: () => {},
      established: (epoch, history) => {
        this.#say(`established epoch ${epoch} with ${formatPair(history)}`);
        this.onServing();
      },
      committed: (watermark) => {
        this.#say(`committed ${formatPair(watermark)}`);
        this.onServing();
      },
      synced: (ticket) => {
        this.#say(`answers sync ${ticket}`);
        this.onServing();
      },
      requested: (link, serverId, { sessionId, cxid, op }) => {
        if (op === OpCode.sync) {
          this.leader.sendSync(link, this.leader.sync());
          return;
        }
        this.#say(`is asked by ${serverId}: session ${sessionId} cxid ${cxid}`);
        this.onServing();
      },
      revalidated: (_link, serverId, { sessionId }) => this.#say(`is asked by ${serverId} about session ${sessionId}`),
      touched: (sessions) => this.#say(`hears of sessions ${sessions.map((s) => s.sessionId).join(' ')}`),
      answered: () => {},
      stepDown: (reason) => this.#say(`steps down: ${reason}`),
    };
  }

  #readLog(from: Zxid, upTo: Zxid): readonly HistoryEntry[] {
    const index = this.#log.findLastIndex(({ zxid }) => zxid <= from);
    if (index < 0 && (this.#logFrom !== null || from > 0)) return [];
    return this.#log.slice(Math.max(0, index), Math.max(0, index) + this.readBatch).filter(({ zxid }) => zxid <= upTo);
  }

  /** Removes entries from the log, as if a snapshot had been installed there. */
  punch(zxid: string): void {
    this.#log = this.#log.filter((entry) => entry.zxid !== parsePair(zxid));
  }
}

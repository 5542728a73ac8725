/**
 * Scripts, event by event, what an ensemble of three voters and an observer could have done. The script's defaults
 * violate no invariant; a test leaves out, doubles or changes the one step that it is about.
 */
import type { TraceEvent } from '@meerkat/core';
import {
  type ElectionNotification,
  JuteWriter,
  type LeaderPacket,
  type LearnerPacket,
  makeProposal,
  makeZxid,
  OPEN_ACL,
  OpCode,
  PacketType,
  QUORUM_PROTOCOL_VERSION,
  ServerState,
  type Txn,
  type TxnEntry,
  writeTxn,
  type Zxid,
} from '@meerkat/protocol';
import { bodyHash } from '../body-hash.ts';
import type { Members } from '../cluster.ts';
import type { Limits } from '../contact-rules.ts';
import { LiveChecker } from '../live-checker.ts';
import type { WireEvent } from '../wire.ts';

export const SESSION = 0x1000n;
/** A tick is 100 ms: learners join within 2 s, and may be silent for half a second. */
export const LIMITS: Limits = { tickTimeMs: 100, initLimit: 20, syncLimit: 5 };

export interface ScriptTxn {
  readonly zxid: Zxid;
  readonly entry: TxnEntry;
  readonly payload: Uint8Array;
}

export function createTxn(path: string, parentCversion = 1): Txn {
  return { type: OpCode.create, path, data: null, acl: OPEN_ACL, isEphemeral: false, parentCversion };
}

/** A txn with its bytes. */
export function txnOf(zxid: Zxid, txn: Txn, sessionId: bigint = SESSION): ScriptTxn {
  const writer = new JuteWriter();
  const header = { sessionId, cxid: 1, zxid, time: 1000 };
  writeTxn(writer, header, txn);
  return { zxid, entry: { header, txn, digest: null }, payload: writer.toBytes() };
}

/** How a leader begins and how a learner joins; everything not given is done correctly. */
export interface JoinChanges {
  /** What the learner sends in FOLLOWERINFO; nothing is announced when it is left out. */
  readonly acceptedEpoch?: number;
  readonly announces?: number;
  /** What the learner sends in ACKEPOCH. */
  readonly ackCurrentEpoch?: number;
  readonly ackZxid?: Zxid;
  /** The learner does not write the epoch that it promises. */
  readonly forgetsPromise?: boolean;
  /** The learner does not write the epoch that it adopts. */
  readonly forgetsEpoch?: boolean;
  /** The learner acknowledges before its disk has the history. */
  readonly acksEarly?: boolean;
}

/** Longer than any txn of a script. */
export const TXN_BYTES_MAX = 1000;

export class EnsembleScript {
  nowMs = 0;
  /** Learners connect to a follower that has observers. */
  isRelayed = false;
  readonly checker: LiveChecker;
  /** Log of each server, as the script has written it. */
  readonly logs: Map<number, ScriptTxn[]> = new Map();
  readonly #accepted: Map<number, number> = new Map();
  readonly #current: Map<number, number> = new Map();
  readonly #connections: Map<string, number> = new Map();
  readonly #terms: Map<number, { readonly epoch: number; readonly history: readonly ScriptTxn[] }> = new Map();
  #nextConnection = 1;
  #nextPath = 1;

  constructor(members: Members = { voters: [1, 2, 3], observers: [4] }) {
    this.checker = new LiveChecker({
      members,
      nowMs: () => this.nowMs,
      limits: LIMITS,
      txnBytesMax: TXN_BYTES_MAX,
    });
    for (const server of [1, 2, 3, 4]) {
      this.logs.set(server, []);
      this.checker.onStarted(server);
      this.recover(server);
    }
  }

  /** Numbers of the violated invariants, each once, sorted. */
  get broken(): string[] {
    return [...new Set(this.checker.violations.map(({ invariant }) => invariant))].sort();
  }

  /* -------------------------------------------------------------------------------------------- single events ---- */

  trace(server: number, event: TraceEvent): void {
    this.checker.onTrace(server, event);
  }

  role(server: number, role: 'looking' | 'leading' | 'following' | 'observing', leader: number | null = null): void {
    this.trace(server, { kind: 'role-changed', role, leader, reason: 'the script says so' });
  }

  epoch(server: number, name: 'acceptedEpoch' | 'currentEpoch', epoch: number): void {
    (name === 'acceptedEpoch' ? this.#accepted : this.#current).set(server, epoch);
    this.checker.onEpochDurable(server, name, epoch);
  }

  log(server: number, txn: ScriptTxn): void {
    this.logs.get(server)!.push(txn);
    this.checker.onLogged(server, txn.zxid, txn.payload);
  }

  durable(server: number): void {
    this.checker.onLogDurable(server, this.logs.get(server)!.at(-1)?.zxid ?? 0);
  }

  /** Logs a txn and syncs it. */
  store(server: number, txn: ScriptTxn): void {
    this.log(server, txn);
    this.durable(server);
  }

  truncate(server: number, zxid: number): void {
    this.logs.set(
      server,
      this.logs.get(server)!.filter((txn) => txn.zxid <= zxid),
    );
    this.checker.onTruncated(server, zxid);
  }

  apply(server: number, txn: ScriptTxn, digest: bigint | null = null): void {
    this.checker.onApplied(server, txn.zxid, txn.payload, digest);
  }

  committed(server: number, zxid: number): void {
    this.trace(server, { kind: 'committed', zxid });
  }

  vote(from: number, to: number, vote: Partial<ElectionNotification> & { readonly leader: number }): void {
    const base = { kind: 'notification', connection: this.connection(from, to), from, to } as const;
    const notification: ElectionNotification = {
      state: ServerState.looking,
      zxid: makeZxid(0, 0),
      electionEpoch: 1,
      peerEpoch: 0,
      version: 2,
      configText: '',
      announces: 0,
      ...vote,
    };
    this.checker.onWire({ ...base, stage: 'sent', notification });
    this.checker.onWire({ ...base, stage: 'received', notification });
  }

  /** A packet of a leader, sent and received. */
  down(leader: number, learner: number, packet: LeaderPacket, hash = 0): void {
    const connection = this.connection(learner, leader);
    const event = { kind: 'leader-packet', connection, from: leader, to: learner, packet, hash } as const;
    this.#pass(event);
  }

  /** A packet of a learner, sent and received. */
  up(learner: number, leader: number, packet: LearnerPacket): void {
    const connection = this.connection(learner, leader);
    const relayed = this.isRelayed ? { isRelayed: true as const } : {};
    this.#pass({ kind: 'learner-packet', connection, from: learner, to: leader, packet, ...relayed });
  }

  propose(leader: number, learner: number, txn: ScriptTxn): void {
    const packet = makeProposal(PacketType.proposal, txn.entry);
    this.down(leader, learner, packet, bodyHash(txn.payload));
  }

  commit(leader: number, learner: number, zxid: Zxid): void {
    this.down(leader, learner, { type: PacketType.commit, zxid });
  }

  ack(learner: number, leader: number, zxid: Zxid): void {
    this.up(learner, leader, { type: PacketType.ack, zxid });
  }

  /** A ping of a leader, and the reply with the learner's active sessions. */
  ping(leader: number, learner: number, sessions: readonly bigint[] = []): void {
    this.down(leader, learner, { type: PacketType.ping, zxid: makeZxid(0, 0) });
    this.pong(learner, leader, sessions);
  }

  pong(learner: number, leader: number, sessions: readonly bigint[] = []): void {
    const touched = sessions.map((sessionId) => ({ sessionId, timeoutMs: 1000 }));
    this.up(learner, leader, { type: PacketType.ping, zxid: makeZxid(0, 0), sessions: touched });
  }

  connection(one: number, other: number): number {
    const key = `${one}-${other}`;
    let connection = this.#connections.get(key);
    if (connection === undefined) {
      connection = this.#nextConnection++;
      this.#connections.set(key, connection);
    }
    return connection;
  }

  disconnect(learner: number, leader: number): void {
    const connection = this.connection(learner, leader);
    this.#connections.delete(`${learner}-${leader}`);
    this.checker.onWire({ kind: 'closed', stage: 'received', connection, from: learner, to: leader });
  }

  /* ------------------------------------------------------------------------------------------- whole passages ---- */

  /** The others vote for a server, which wins, and they follow it. */
  elect(leader: number, voters: readonly number[] = [1, 2, 3], electionEpoch = 1): void {
    for (const from of voters) {
      for (const to of voters) if (from !== to) this.vote(from, to, { leader, electionEpoch });
    }
    this.role(leader, 'leading', leader);
    for (const voter of voters) if (voter !== leader) this.role(voter, 'following', leader);
  }

  /** FOLLOWERINFO. */
  greet(learner: number, leader: number, changes: JoinChanges = {}): void {
    const type = learner === 4 ? PacketType.observerInfo : PacketType.followerInfo;
    const { announces = 0 } = changes;
    const zxid = makeZxid(changes.acceptedEpoch ?? this.#accepted.get(learner) ?? 0, 0);
    const protocolVersion = QUORUM_PROTOCOL_VERSION;
    this.up(learner, leader, { type, zxid, serverId: learner, protocolVersion, configVersion: null, announces });
  }

  /** LEADERINFO and ACKEPOCH. */
  promise(learner: number, leader: number, epoch: number, changes: JoinChanges = {}): void {
    const zxid = makeZxid(epoch, 0);
    const protocolVersion = QUORUM_PROTOCOL_VERSION;
    this.down(leader, learner, { type: PacketType.leaderInfo, zxid, protocolVersion, announces: 0 });
    if (changes.forgetsPromise !== true) this.epoch(learner, 'acceptedEpoch', epoch);
    this.up(learner, leader, {
      type: PacketType.ackEpoch,
      zxid: changes.ackZxid ?? this.lastZxid(learner),
      currentEpoch: changes.ackCurrentEpoch ?? this.#current.get(learner) ?? 0,
    });
  }

  /** The history, up to the ACK of NEWLEADER. */
  synchronize(learner: number, leader: number, epoch: number, changes: JoinChanges = {}): void {
    const own = this.logs.get(learner)!;
    const history = this.#terms.get(leader)!.history;
    const common = own.filter(({ zxid }) => history.some((txn) => txn.zxid === zxid));
    const from = common.at(-1)?.zxid ?? makeZxid(0, 0);
    const isShorter = common.length < own.length;
    const type = isShorter ? PacketType.trunc : PacketType.diff;
    this.down(leader, learner, { type, zxid: isShorter ? from : (history.at(-1)?.zxid ?? from) });
    if (isShorter) this.truncate(learner, from);
    for (const txn of history.filter(({ zxid }) => zxid > from)) {
      this.propose(leader, learner, txn);
      this.commit(leader, learner, txn.zxid);
      this.log(learner, txn);
    }
    this.down(leader, learner, { type: PacketType.newLeader, zxid: makeZxid(epoch, 0), configText: '' });
    if (changes.acksEarly !== true) this.durable(learner);
    if (changes.forgetsEpoch !== true) this.epoch(learner, 'currentEpoch', epoch);
    this.ack(learner, leader, makeZxid(epoch, 0));
  }

  upToDate(learner: number, leader: number): void {
    this.down(leader, learner, { type: PacketType.upToDate });
    const { epoch } = this.#terms.get(leader)!;
    this.ack(learner, leader, makeZxid(epoch, 0));
    this.establish(learner, epoch);
  }

  /** Joins as an observer and is synchronized; `upToDate` lets it serve. */
  observe(observer: number, leader: number, epoch: number): void {
    this.role(observer, 'observing', leader);
    this.greet(observer, leader);
    this.promise(observer, leader, epoch);
    this.synchronize(observer, leader, epoch);
  }

  /** The leader has been elected: it and the followers go through all of discovery and synchronization. */
  begin(leader: number, epoch: number, followers: readonly number[]): void {
    this.discover(leader, epoch, followers);
    for (const follower of followers) this.synchronize(follower, leader, epoch);
    this.establish(leader, epoch);
    for (const follower of followers) this.upToDate(follower, leader);
  }

  /** Up to the leader's own epoch. */
  discover(leader: number, epoch: number, followers: readonly number[]): void {
    this.#terms.set(leader, { epoch, history: [...this.logs.get(leader)!] });
    for (const follower of followers) this.greet(follower, leader);
    this.epoch(leader, 'acceptedEpoch', epoch);
    for (const follower of followers) this.promise(follower, leader, epoch);
    this.epoch(leader, 'currentEpoch', epoch);
  }

  establish(leader: number, epoch: number): void {
    this.trace(leader, { kind: 'epoch-established', epoch, zxid: this.lastZxid(leader) });
  }

  /** Elections and all, with server 3 as the leader of epoch 1. */
  serve(followers: readonly number[] = [1, 2]): this {
    this.elect(3);
    this.begin(3, 1, followers);
    return this;
  }

  lastZxid(server: number): Zxid {
    return this.logs.get(server)!.at(-1)?.zxid ?? makeZxid(0, 0);
  }

  /** The next txn of a leader, which no server has yet. */
  nextTxn(leader: number, txn: Txn | null = null): ScriptTxn {
    const { epoch } = this.#terms.get(leader)!;
    const last = this.lastZxid(leader);
    const zxid = last < makeZxid(epoch, 1) ? makeZxid(epoch, 1) : ((last + 1) as Zxid);
    const number = this.#nextPath++;
    return txnOf(zxid, txn ?? createTxn(`/n${number}`, number));
  }

  /** Proposes a txn, and lets the leader and these followers log and acknowledge it. */
  spread(leader: number, followers: readonly number[], txn: ScriptTxn): void {
    for (const follower of followers) this.propose(leader, follower, txn);
    this.store(leader, txn);
    for (const follower of followers) {
      this.store(follower, txn);
      this.ack(follower, leader, txn.zxid);
    }
  }

  /** A write from its proposal to its application. */
  write(leader = 3, followers: readonly number[] = [1, 2], txn: ScriptTxn = this.nextTxn(leader)): ScriptTxn {
    this.spread(leader, followers, txn);
    this.committed(leader, txn.zxid);
    this.apply(leader, txn);
    for (const follower of followers) {
      this.commit(leader, follower, txn.zxid);
      this.committed(follower, txn.zxid);
      this.apply(follower, txn);
    }
    return txn;
  }

  /** A server loses its power; `kept` of its log is found afterwards. */
  crash(server: number, kept: readonly ScriptTxn[] = this.logs.get(server)!): void {
    this.checker.onStopped(server);
    for (const other of [1, 2, 3, 4]) {
      if (this.#connections.has(`${server}-${other}`)) this.disconnect(server, other);
      if (this.#connections.has(`${other}-${server}`)) this.disconnect(other, server);
    }
    this.logs.set(server, [...kept]);
    this.checker.onStarted(server);
    this.recover(server);
  }

  recover(server: number, changes: { acceptedEpoch?: number; currentEpoch?: number } = {}): void {
    this.checker.onRecovered(server, {
      acceptedEpoch: changes.acceptedEpoch ?? this.#accepted.get(server) ?? 0,
      currentEpoch: changes.currentEpoch ?? this.#current.get(server) ?? 0,
      base: 0,
      txns: this.logs.get(server)!,
    });
  }

  #pass(event: PassedEvent): void {
    this.checker.onWire({ ...event, stage: 'sent' });
    this.checker.onWire({ ...event, stage: 'received' });
  }
}

type Without<T, K extends string> = T extends unknown ? Omit<T, K> : never;
type PassedEvent = Without<Extract<WireEvent, { kind: 'leader-packet' | 'learner-packet' }>, 'stage'>;

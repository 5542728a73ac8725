import {
  type AuthId,
  CreateMode,
  epochOf,
  formatMembership,
  hexZxid,
  JuteReader,
  JuteWriter,
  type Membership,
  OPEN_ACL,
  OpCode,
  PacketType,
  readLearnerPacket,
  ServerState,
  type Txn,
  type TxnEntry,
  writeQuorumPacket,
  writeRequest,
  ZXID_NONE,
  type Zxid,
} from '@meerkat/protocol';
import type { SeededRandom } from '../seeded-random.ts';
import type { Timeline } from '../timeline.ts';
import type { VirtualNetwork } from '../virtual-network.ts';
import { ApacheDatabase } from './apache-database.ts';
import { ApacheDisk } from './apache-disk.ts';
import { ApacheElection } from './apache-election.ts';
import { APACHE_TIMINGS, type ApacheHost, ApacheTimers, type ApacheTimings, memberOf } from './apache-host.ts';
import { ApacheLeader } from './apache-leader.ts';
import { ApacheLearner } from './apache-learner.ts';
import { ApacheQuorum } from './apache-quorum.ts';

export interface ApachePeerOptions {
  readonly serverId: number;
  /** Its hosts are hosts of the virtual network; this server runs on the first of its own addresses. */
  readonly membership: Membership;
  readonly timeline: Timeline;
  readonly network: VirtualNetwork;
  readonly random: SeededRandom;
  readonly timings?: Partial<ApacheTimings> | undefined;
  /** Number of txns kept in memory for learners; at least 500 in a real server. */
  readonly commitLogCount?: number | undefined;
  /**
   * Lets learners catch up from the log on disk. A real server does so if the log is at most a third as long as the
   * snapshot, including preallocated files of 64 MiB: hardly ever.
   */
  readonly isLogSyncEnabled?: boolean | undefined;
  /** Called for every event with a line: time, host, event. */
  readonly onLine?: ((line: string) => void) | undefined;
}

/** A request to this server, and its outcome. */
export interface ApacheRequest {
  readonly sessionId: bigint;
  readonly cxid: number;
  readonly op: number;
  /** null while it waits; `lost` when the role ended first. `txn` is null for an answered sync. */
  outcome: null | 'lost' | { readonly zxid: Zxid; readonly txn: Txn | null };
}

/**
 * A model of an Apache ZooKeeper 3.8.0 server on the quorum and election ports, including its defects. It is written
 * from a description of that behaviour and shares no code with the servers that it tests. It has its own sessions, tree
 * and log, and only the clients that a test plays.
 *
 * `complaints` lists what other servers did that 3.8.0 does not tolerate, and how 3.8.0 reacts: a mixed ensemble works
 * correctly if there are none. `warnings` lists what 3.8.0 would log and the network may have caused.
 *
 * Not supported: dynamic reconfiguration (`reconfigEnabled` is false), authentication of servers, throttling,
 * hand-over, multi. Its threads end when its role ends.
 */
export class ApachePeer {
  readonly serverId: number;
  readonly host: string;
  readonly complaints: string[] = [];
  readonly warnings: string[] = [];
  readonly disk: ApacheDisk = new ApacheDisk();
  readonly database: ApacheDatabase;
  /** All requests of clients of this server, oldest first. */
  readonly requests: ApacheRequest[] = [];
  /** Answers to `revalidate`, in the order in which they arrived. */
  readonly revalidations: { readonly sessionId: bigint; readonly isValid: boolean }[] = [];
  /** All txns applied by this process, in order, starting with the recovered ones. */
  readonly applied: Zxid[] = [];
  readonly #options: ApachePeerOptions;
  readonly #host: ApacheHost;
  readonly #timers: ApacheTimers;
  #election: ApacheElection | null = null;
  #role: ApacheLeader | ApacheLearner | null = null;
  #state: ServerState = ServerState.looking;
  #isServing = false;
  #epoch = 0;
  #exitCode: number | null = null;
  #nextSession: bigint;
  #nextCxid = 1;
  #touched = new Map<bigint, number>();
  #sessions = new Map<bigint, number>();

  constructor(options: ApachePeerOptions) {
    const { serverId, membership, timeline, network, random } = options;
    this.#options = options;
    this.serverId = serverId;
    this.host = memberOf(membership, serverId)?.addresses[0]?.host ?? '';
    if (this.host === '') throw new Error(`server ${serverId} is no member`);
    const configText = formatMembership(membership);
    this.database = new ApacheDatabase(options.commitLogCount ?? 500, configText);
    this.#timers = new ApacheTimers(timeline);
    this.#nextSession = (BigInt(serverId) << 56n) | 1n;
    this.#host = {
      serverId,
      hostName: this.host,
      timeline,
      network,
      random,
      timings: { ...APACHE_TIMINGS, ...options.timings },
      membership,
      configText,
      quorum: new ApacheQuorum(membership),
      disk: this.disk,
      database: this.database,
      isLogSyncEnabled: options.isLogSyncEnabled ?? false,
      complain: (what) => {
        this.complaints.push(what);
        this.#record(`COMPLAINS of ${what}`);
      },
      warn: (what) => {
        this.warnings.push(what);
        this.#record(`warns: ${what}`);
      },
      exit: (code, why) => this.#exit(code, why),
      onServing: (epoch) => this.#onServing(epoch),
      onRoleEnded: (reason) => this.#onRoleEnded(reason),
      onApplied: (zxid, entry) => this.#onApplied(zxid, entry),
      onSynced: () => this.#onSynced(),
      onRevalidated: (sessionId, isValid) => void this.revalidations.push({ sessionId, isValid }),
      takeTouched: () => this.#takeTouched(),
    };
  }

  /** The state in its notifications. */
  get state(): ServerState {
    return this.#state;
  }

  /** Whether it serves clients: it is synchronized with a leader, or leads a quorum. */
  get isServing(): boolean {
    return this.#isServing;
  }

  /** Epoch in which it serves or served. */
  get epoch(): number {
    return this.#epoch;
  }

  /** The code of `System.exit`, if the process has called it. */
  get exited(): number | null {
    return this.#exitCode;
  }

  get isRunning(): boolean {
    return this.#election !== null;
  }

  get leader(): ApacheLeader | null {
    return this.#role instanceof ApacheLeader ? this.#role : null;
  }

  get learner(): ApacheLearner | null {
    return this.#role instanceof ApacheLearner ? this.#role : null;
  }

  /** Complaints about these servers only: 3.8.0 servers cause some to each other, too. */
  complaintsAbout(...serverIds: readonly number[]): readonly string[] {
    return this.complaints.filter((what) => serverIds.some((id) => new RegExp(`\\bserver ${id}\\b`).test(what)));
  }

  /** Starts the process with what is on the disk. */
  start(): void {
    if (this.#election !== null) throw new Error(`${this.host} runs already`);
    this.#exitCode = null;
    this.#host.network.restoreHost(this.host);
    this.database.load(this.disk);
    this.applied.length = 0;
    this.applied.push(...this.disk.log.map((record) => record.zxid));
    const { acceptedEpoch, currentEpoch } = this.disk;
    if (epochOf(this.database.lastProcessedZxid) > currentEpoch || acceptedEpoch < currentEpoch) {
      this.#host.complain(`the epochs ${acceptedEpoch} and ${currentEpoch} do not fit the log: 3.8.0 does not start`);
      this.#exitCode = 1;
      return;
    }
    this.#election = new ApacheElection(this.#host, ({ state, leader }) => this.#onDecided(state, leader));
    this.#election.open();
    this.#look();
  }

  /** kill -9: written txns survive, queued ones do not; the kernel closes the connections. */
  kill(): void {
    this.#role?.kill();
    this.#role = null;
    this.#election?.close();
    this.#election = null;
    this.#timers.cancelAll();
    this.#state = ServerState.looking;
    this.#isServing = false;
    this.#loseRequests();
    this.#record('is killed');
  }

  /** The machine loses power: unsynced data is lost, and connections are not closed. */
  powerOff(): void {
    this.#host.network.dropHost(this.host);
    this.kill();
    this.disk.losePower();
  }

  /** As the leader, proposes a txn. @returns its zxid; null when this server does not lead */
  propose(txn: Txn, sessionId = 0n, cxid = 0): Zxid | null {
    return this.#isServing ? (this.leader?.propose(sessionId, cxid, txn) ?? null) : null;
  }

  /** A client of this server opens a session, which this server keeps alive until `forgetSession`. */
  createSession(timeoutMs = 30_000): ApacheRequest {
    const sessionId = this.#nextSession++;
    this.#sessions.set(sessionId, timeoutMs);
    const writer = new JuteWriter();
    writer.int(timeoutMs);
    return this.request(OpCode.createSession, writer.toBytes(), { sessionId, cxid: 0, authInfo: null });
  }

  /** A client stops sending pings. */
  forgetSession(sessionId: bigint): void {
    this.#sessions.delete(sessionId);
  }

  create(sessionId: bigint, path: string, data: Uint8Array, flags: CreateMode = CreateMode.persistent): ApacheRequest {
    const writer = new JuteWriter();
    writeRequest(writer, { op: OpCode.create, path, data, acl: OPEN_ACL, flags, ttl: -1 });
    return this.request(OpCode.create, writer.toBytes(), { sessionId });
  }

  sync(sessionId: bigint, path = '/'): ApacheRequest {
    const writer = new JuteWriter();
    writeRequest(writer, { op: OpCode.sync, path });
    return this.request(OpCode.sync, writer.toBytes(), { sessionId });
  }

  /**
   * A client of this server requests a write or a sync: a learner forwards any request (even a `check`, as 3.8.0 does),
   * a leader prepares it.
   *
   * @param body the record of the request as the client sent it
   * @param client `authInfo` null is a null vector, which createSession has
   */
  request(
    op: number,
    body: Uint8Array,
    client: { readonly sessionId: bigint; readonly cxid?: number; readonly authInfo?: readonly AuthId[] | null },
  ): ApacheRequest {
    const { sessionId, cxid = this.#nextCxid++, authInfo = [{ scheme: 'ip', id: '127.0.0.1' }] } = client;
    const request: ApacheRequest = { sessionId, cxid, op, outcome: null };
    this.requests.push(request);
    const timeoutMs = this.#sessions.get(sessionId);
    if (timeoutMs !== undefined) this.#touched.set(sessionId, timeoutMs);
    if (!this.#isServing || this.#role === null) {
      request.outcome = 'lost';
      return request;
    }
    const bytes = requestBytes({ sessionId, cxid, op, body, authInfo });
    if (this.#role instanceof ApacheLearner) this.#role.forward(bytes, op === OpCode.sync);
    else {
      const packet = readLearnerPacket(new JuteReader(bytes));
      if (packet?.type === PacketType.request) this.#role.onRequest(null, packet);
    }
    return request;
  }

  /** A client connects with a session that another server opened; `revalidations` receives the answer. */
  revalidate(sessionId: bigint, timeoutMs: number): void {
    this.learner?.send({ type: PacketType.revalidate, sessionId, timeoutMs });
    this.#sessions.set(sessionId, timeoutMs);
  }

  #look(): void {
    this.#state = ServerState.looking;
    this.#record(`is looking, zxid 0x${this.database.lastProcessedZxid.toString(16)}`);
    this.#election?.look();
  }

  #onDecided(state: ServerState, leader: number): void {
    this.#state = state;
    this.#record(state === ServerState.leading ? 'leads' : `follows ${leader}`);
    const isObserver = state === ServerState.observing;
    const role =
      state === ServerState.leading ? new ApacheLeader(this.#host) : new ApacheLearner(this.#host, leader, isObserver);
    this.#role = role;
    // The role begins in a separate event, like its thread.
    this.#timers.after(0, () => {
      if (this.#role === role) role.start();
    });
  }

  #onServing(epoch: number): void {
    this.#isServing = true;
    this.#epoch = epoch;
    this.#election?.onServing(epoch);
    this.#record(`serves in the epoch ${epoch}`);
  }

  #onRoleEnded(reason: string): void {
    const wasObserving = this.#state === ServerState.observing;
    this.#record(`ends its role: ${reason}`);
    this.#role = null;
    this.#isServing = false;
    this.#loseRequests();
    this.database.fastForward(this.disk);
    const delayMs = wasObserving ? this.#host.random.fraction() * OBSERVER_DELAY_MAX_MS : 0;
    this.#timers.after(delayMs, () => this.#look());
  }

  #exit(code: number, why: string): void {
    this.#record(`exits with ${code}: ${why}`);
    this.kill();
    this.#exitCode = code;
  }

  /**
   * CommitProcessor: a committed txn answers the oldest waiting request if it is the txn of that request. Otherwise it
   * is taken for another server's; if it belongs to a later request of this server, that request waits forever, and so
   * do all behind it.
   */
  #onApplied(zxid: Zxid, entry: TxnEntry): void {
    this.applied.push(zxid);
    const { sessionId, cxid } = entry.header;
    const queue = this.requests.filter((request) => request.outcome === null && this.#isQueued(request));
    const index = queue.findIndex((request) => request.sessionId === sessionId && request.cxid === cxid);
    if (index === 0) queue[0]!.outcome = { zxid, txn: entry.txn };
    else if (index > 0) this.#complainOfOrder(`COMMIT ${hexZxid(zxid)} of a request of this server's`, queue[0]!);
    else if (queue.some((request) => request.sessionId === sessionId)) {
      this.#host.warn(`a txn of cxid ${cxid}, which its session does not wait for: it counts as another server's`);
    }
  }

  /** `commitProcessor.commit` with the request itself: it is answered in any case, but an older one never is. */
  #onSynced(): void {
    const waiting = this.requests.filter(({ outcome }) => outcome === null);
    const oldest = waiting.find(({ op }) => op === OpCode.sync);
    if (oldest === undefined) return;
    oldest.outcome = { zxid: this.database.lastProcessedZxid, txn: null };
    if (waiting[0] !== oldest && this.#isQueued(oldest)) this.#complainOfOrder('SYNC', waiting[0]!);
  }

  /** `matchSyncs`: a leader handles a sync of its own clients like a read. */
  #isQueued({ op }: ApacheRequest): boolean {
    return op !== OpCode.sync || this.leader === null;
  }

  #complainOfOrder(what: string, head: ApacheRequest): void {
    const name = head.op === OpCode.sync ? 'sync' : `request of op ${head.op}`;
    const leaderId = this.learner?.leaderId ?? this.serverId;
    this.#host.complain(
      `server ${leaderId}, the leader: ${what} before the answer to an older ${name}: 3.8.0 no longer answers writes`,
    );
  }

  #loseRequests(): void {
    for (const request of this.requests) request.outcome ??= 'lost';
  }

  /** Sessions of live clients are always active, because clients ping. */
  #takeTouched(): readonly { sessionId: bigint; timeoutMs: number }[] {
    for (const [sessionId, timeoutMs] of this.#sessions) this.#touched.set(sessionId, timeoutMs);
    const touched = [...this.#touched].map(([sessionId, timeoutMs]) => ({ sessionId, timeoutMs }));
    this.#touched.clear();
    return touched;
  }

  #record(what: string): void {
    this.#options.onLine?.(`${this.#options.timeline.nowMs.toFixed(3)} ${this.host} ${what}`);
  }
}

const OBSERVER_DELAY_MAX_MS = 200;

interface ClientRequest {
  readonly sessionId: bigint;
  readonly cxid: number;
  readonly op: number;
  readonly body: Uint8Array;
  readonly authInfo: readonly AuthId[] | null;
}

function requestBytes({ sessionId, cxid, op, body, authInfo }: ClientRequest): Uint8Array {
  const data = new JuteWriter();
  data.longBig(sessionId);
  data.int(cxid);
  data.int(op);
  data.raw(body);
  const writer = new JuteWriter();
  writeQuorumPacket(writer, PacketType.request, ZXID_NONE, data.toBytes(), authInfo);
  return writer.toBytes();
}

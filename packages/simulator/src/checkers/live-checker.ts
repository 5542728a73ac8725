/**
 * Checks a simulated ensemble while it runs: after every event, with a view of all servers at once.
 *
 *     network ──WireTap──► onWire       disks ──► onLogged, onLogDurable, onEpochDurable, onTruncated, …
 *     cores ──► onTrace, onApplied      world ──► onStarted, onStopped, onRecovered
 *                                  │
 *                                  └─► rules ──► violations
 *
 * Events are reported when they happen and in that order; what a server's handler does comes before its consequences.
 * The checker never acts on the servers.
 */
import type { TraceEvent } from '@meerkat/core';
import { epochOf, hexZxid, JuteReader, PacketType, readTxnEntry, type TxnEntry, type Zxid } from '@meerkat/protocol';
import { AgreementRules } from './agreement-rules.ts';
import { AnsweredRules, type Asked } from './answered-rules.ts';
import { bodyHash } from './body-hash.ts';
import { BroadcastRules } from './broadcast-rules.ts';
import { Cluster, type Members } from './cluster.ts';
import { ContactRules, type Limits } from './contact-rules.ts';
import { Counts } from './counts.ts';
import { DurabilityRules } from './durability-rules.ts';
import { ElectionRules } from './election-rules.ts';
import { EpochRules } from './epoch-rules.ts';
import { ExpiryRules } from './expiry-rules.ts';
import { MembershipRules } from './membership-rules.ts';
import { OverdueRules } from './overdue-rules.ts';
import type { Role, ServerGhost } from './server-ghost.ts';
import { StreamRules } from './stream-rules.ts';
import { SyncRules } from './sync-rules.ts';
import { type Violation, Violations } from './violation.ts';
import type { WireEvent } from './wire.ts';

/** A txn as bytes: header, record and digest, as in the log and in PROPOSAL. */
export interface LoggedTxn {
  readonly zxid: number;
  readonly payload: Uint8Array;
}

/** What is found on a server's disk, after recovery has made its repairs. */
export interface FoundState {
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
  /** Zxid of the snapshot that recovery starts from; 0 without one. */
  readonly base: number;
  /** The log after the base, oldest first. */
  readonly txns: readonly LoggedTxn[];
}

export interface LiveCheckerOptions {
  readonly members: Members;
  /** Virtual milliseconds. */
  nowMs(): number;
  /** Monotonic milliseconds of a server's own clock. Default: `nowMs`. */
  clockMs?(server: number): number;
  /** The largest txn that the servers may propose, header and digest included. Default: not checked. */
  readonly txnBytesMax?: number;
  /** As the servers are configured. Default: how long they serve without a quorum is not checked. */
  readonly limits?: Limits;
  /** Violations that are kept. Default 100. */
  readonly violationsMax?: number;
  /** Invariants that are not checked. Default: none. */
  readonly without?: readonly string[] | undefined;
}

export class LiveChecker {
  readonly #collected: Violations;
  readonly #cluster: Cluster;
  readonly #epochs: EpochRules;
  readonly #election: ElectionRules;
  readonly #memberships: MembershipRules;
  readonly #broadcast: BroadcastRules;
  readonly #streams: StreamRules;
  readonly #durability: DurabilityRules;
  readonly #agreement: AgreementRules;
  readonly #expiry: ExpiryRules;
  readonly #answered: AnsweredRules;
  readonly #syncs: SyncRules;
  readonly #contact: ContactRules | null;
  readonly #overdue: OverdueRules | null;
  readonly #txnBytesMax: number;
  readonly #reader = new JuteReader(undefined, 0x10000000);
  readonly #fed = new Counts();
  readonly #fedByTrace = new Counts();
  readonly #fedByWire = new Counts();

  constructor(options: LiveCheckerOptions) {
    const nowMs = () => options.nowMs();
    this.#collected = new Violations(nowMs, options.violationsMax, options.without);
    const cluster = new Cluster(options.members, this.#collected, nowMs);
    this.#cluster = cluster;
    this.#epochs = new EpochRules(cluster);
    this.#election = new ElectionRules(cluster);
    this.#memberships = new MembershipRules(cluster);
    this.#broadcast = new BroadcastRules(cluster, this.#memberships);
    this.#streams = new StreamRules(cluster);
    this.#durability = new DurabilityRules(cluster);
    this.#agreement = new AgreementRules(cluster);
    const clockMs = (server: number): number => options.clockMs?.(server) ?? options.nowMs();
    this.#expiry = new ExpiryRules(cluster, clockMs);
    this.#answered = new AnsweredRules(cluster, clockMs);
    this.#syncs = new SyncRules(cluster);
    this.#txnBytesMax = options.txnBytesMax ?? Number.POSITIVE_INFINITY;
    const { limits } = options;
    this.#contact = limits === undefined ? null : new ContactRules(cluster, limits, clockMs);
    this.#overdue = limits === undefined ? null : new OverdueRules(cluster, limits, clockMs);
  }

  get violations(): readonly Violation[] {
    return this.#collected.list;
  }

  /** How often the checker was fed with each input. */
  get fed(): ReadonlyMap<string, number> {
    return new Map([...this.#fed.list(''), ...this.#fedByTrace.list('trace '), ...this.#fedByWire.list('wire ')]);
  }

  /** Everything that was committed, in order; for `checkHistory`. */
  get committed(): readonly TxnEntry[] {
    return this.#cluster.committed.entries.filter((entry) => entry !== null);
  }

  /** Zxid of the last committed txn; 0 before the first. */
  get lastCommitted(): number {
    return this.#cluster.committed.last;
  }

  /* ----------------------------------------------------------------------------------------------- the world ---- */

  /** A process has been started. */
  onStarted(server: number): void {
    this.#fed.add('started');
    const ghost = this.#cluster.server(server);
    ghost.isUp = true;
    ghost.isRecovering = true;
    ghost.hasDiskFailed = false;
    this.#memberships.onStarted(ghost);
    this.#enterRole(ghost, 'looking', null);
  }

  /** A process is gone, in whatever way. */
  onStopped(server: number): void {
    this.#fed.add('stopped');
    const ghost = this.#cluster.server(server);
    ghost.isUp = false;
    this.#enterRole(ghost, 'looking', null);
  }

  /** A paused process resumes. */
  onResumed(server: number): void {
    this.#contact?.onResumed(server);
    this.#overdue?.onResumed(server);
  }

  /**
   * The disk of a server was read as a whole: by the recovery of a start, or by the world after a power loss.
   *
   * What is found before the first leader leads counts as a history that was always there.
   */
  onRecovered(server: number, found: FoundState): void {
    this.#fed.add('recovered');
    const ghost = this.#cluster.server(server);
    ghost.isRecovering = false;
    // A new process: recovery has read, and rewritten, what the last one was not sure of.
    ghost.hasDiskFailed = false;
    const zxids: number[] = [];
    const hashes: number[] = [];
    const isBeginning = this.#cluster.leaders.size === 0;
    for (const { zxid, payload } of found.txns) {
      const hash = bodyHash(payload);
      zxids.push(zxid);
      hashes.push(hash);
      if (isBeginning) this.#broadcast.adopt(zxid, hash, this.#decode(payload));
      this.#broadcast.onTxn(ghost, zxid, hash, null);
    }
    const lastZxid = zxids[zxids.length - 1] ?? found.base;
    this.#epochs.onRecovered(ghost, { ...found, lastZxid });
    this.#durability.onRecovered(ghost, { base: found.base, zxids, hashes });
    this.#broadcast.onLogChanged(ghost);
  }

  /** The purge has removed files of a server that logs: zxids of the remaining snapshots, and the first one of the logs. */
  onPurged(server: number, snapshots: readonly number[], logBegin: number | null): void {
    this.#fed.add('purged');
    this.#durability.onPurged(this.#cluster.server(server), snapshots, logBegin);
  }

  /**
   * A server was given an empty disk: what it held and promised is gone, which is no violation. Reported while it is
   * down. The caller must make sure that a quorum of disks still holds all of C (Z9).
   */
  onWiped(server: number): void {
    const ghost = this.#cluster.server(server);
    ghost.acceptedEpoch = 0;
    ghost.currentEpoch = 0;
    ghost.truncated.clear();
    ghost.log.replace(0, [], []);
    this.#broadcast.onLogChanged(ghost);
  }

  /** A disk operation has failed. */
  onDiskFailed(server: number): void {
    this.#cluster.server(server).hasDiskFailed = true;
  }

  /* ----------------------------------------------------------------------------------------------- the disks ---- */

  /** A txn was appended to the log; not durable yet. */
  onLogged(server: number, zxid: number, payload: Uint8Array): void {
    this.#fed.add('logged');
    const ghost = this.#cluster.server(server);
    const hash = bodyHash(payload);
    const entry = this.#cluster.proposals.has(zxid) ? null : this.#decode(payload.slice());
    this.#broadcast.onTxn(ghost, zxid, hash, entry);
    this.#durability.onLogged(ghost, zxid, hash);
  }

  /** Everything in the log up to here has been synced. No effect during recovery, which reports all at its end. */
  onLogDurable(server: number, zxid: number): void {
    this.#fed.add('log durable');
    const ghost = this.#cluster.server(server);
    if (!ghost.isRecovering) ghost.log.onDurable(zxid);
  }

  /** An epoch file is under its name, and its directory synced. */
  onEpochDurable(server: number, name: 'acceptedEpoch' | 'currentEpoch', epoch: number): void {
    this.#fed.add('epoch durable');
    this.#epochs.onEpochDurable(this.#cluster.server(server), name, epoch);
  }

  /** The disk durably holds nothing after `zxid`. */
  onTruncated(server: number, zxid: number): void {
    this.#fed.add('truncated');
    const ghost = this.#cluster.server(server);
    this.#durability.onTruncated(ghost, zxid);
    this.#broadcast.onLogChanged(ghost);
  }

  /** A log file has lost its name, while a later one of these keeps its own. */
  onLogSetAside(server: number, zxid: number, others: readonly number[]): void {
    this.#durability.onLogSetAside(this.#cluster.server(server), zxid, others);
  }

  /** A snapshot has durably been renamed to its name, and its znodes are inconsistent. */
  onSnapshotFaulty(server: number, zxid: number, fault: string): void {
    this.#durability.onSnapshotFaulty(this.#cluster.server(server), zxid, fault);
  }

  /** The snapshot that a leader has sent is durable, and is the whole history. */
  onSnapshotInstalled(server: number, zxid: number): void {
    this.#fed.add('snapshot installed');
    const ghost = this.#cluster.server(server);
    this.#durability.onSnapshotInstalled(ghost, zxid);
    this.#broadcast.onLogChanged(ghost);
  }

  /* ------------------------------------------------------------------------------------------------ the cores ---- */

  /**
   * A txn was applied because it is committed; not while a log is replayed in recovery.
   *
   * @param payload its bytes; null when they are unknown
   * @param treeDigest digest of the tree afterwards; null where digests are off
   */
  onApplied(server: number, zxid: number, payload: Uint8Array | null, treeDigest: bigint | null): void {
    this.#fed.add('applied');
    const ghost = this.#cluster.server(server);
    const hash = payload === null ? null : bodyHash(payload);
    if (ghost.role === 'leading') this.#commit(ghost, zxid);
    this.#agreement.checkDurable(ghost, zxid);
    if (ghost.established === null) ghost.appliedEarly.push({ zxid, hash, digest: treeDigest });
    else this.#agreement.onApplied(ghost, zxid, hash, treeDigest);
  }

  /** A server has seen activity of its own client. Without this, S4 relies on what servers report to each other. */
  onTouched(server: number, sessionId: bigint): void {
    this.#expiry.onTouched(server, sessionId);
  }

  /** A turn of a server has ended, and it serves clients. */
  onServing(server: number): void {
    this.#fed.add('serving');
    this.#contact?.onServing(server);
    this.#overdue?.onServing(server);
  }

  onTrace(server: number, event: TraceEvent): void {
    this.#fedByTrace.add(event.kind);
    const ghost = this.#cluster.server(server);
    switch (event.kind) {
      case 'role-changed':
        this.#enterRole(ghost, event.role, event.leader);
        return;
      case 'epoch-established':
        this.#onEstablished(ghost, event.epoch);
        return;
      case 'committed':
        if (ghost.role === 'leading') this.#commit(ghost, event.zxid);
        if (event.zxid % 0x100000000 !== 0) this.#durability.onKnownCommitted(ghost, event.zxid);
        return;
      case 'membership-changed':
        // A leader that puts it in force shows the first sign of its commit.
        if (ghost.role === 'leading' && ghost.established !== null) this.#commit(ghost, event.committed.version);
        this.#memberships.onChanged(ghost, event.committed);
        return;
      case 'learner-closed':
        if (event.serverId !== null) this.#overdue?.onLearnerClosed(event.serverId);
        return;
      case 'session-created':
      case 'session-resumed':
        this.#expiry.onTouched(server, event.sessionId);
        this.#overdue?.onConnected(event.sessionId, server, event.timeoutMs);
        return;
      case 'session-expired':
        this.#overdue?.onEnding(server, event.sessionId);
        if (event.isLocal) this.#answered.onLocalExpired(ghost, event.sessionId, event.timeoutMs);
        else {
          this.#expiry.onExpired(ghost, event.sessionId, event.timeoutMs);
          this.#answered.onExpired(ghost, event.sessionId, event.timeoutMs);
        }
        return;
      case 'digest-mismatch':
        this.#agreement.onDigestMismatch(ghost, event.zxid, event.expected, event.actual);
        return;
      case 'failed':
        ghost.hasDiskFailed = true;
        return;
      default:
        return;
    }
  }

  /* ---------------------------------------------------------------------------------------------- the clients ---- */

  /** A client sends a request to a server. @returns the argument for `onAnswered` */
  onAsked(server: number, sessionId: bigint): Asked {
    this.#overdue?.onSign(sessionId, server);
    return this.#answered.onAsked(server);
  }

  /** The answer to a request has arrived. */
  onAnswered(sessionId: bigint, asked: Asked): void {
    this.#fed.add('answered');
    this.#answered.onAnswered(sessionId, asked);
  }

  /* ---------------------------------------------------------------------------------------------- the network ---- */

  onWire(event: WireEvent): void {
    this.#fedByWire.add(event.kind);
    if (event.kind === 'garbage') {
      const message = `server ${event.from} sends to ${event.to} what is no packet: ${event.why}`;
      this.#cluster.report('Z14', [event.from, event.to], message);
      return;
    }
    if (event.isRelayed === true) {
      // A follower with observers passes on what its leader decided: the stream and its ping replies are checked.
      this.#streams.onWire(event);
      this.#answered.onWire(event);
      this.#overdue?.onWire(event);
      return;
    }
    if (event.kind === 'leader-packet' && event.stage === 'sent') this.#onLeaderSends(event);
    this.#durability.onWire(event);
    this.#streams.onWire(event);
    this.#epochs.onWire(event);
    this.#election.onWire(event);
    this.#expiry.onWire(event);
    this.#answered.onWire(event);
    this.#syncs.onWire(event);
    this.#contact?.onWire(event);
    this.#overdue?.onWire(event);
  }

  #onEstablished(server: ServerGhost, epoch: number): void {
    if (server.role === 'leading') {
      this.#epochs.onEstablished(server, epoch);
      this.#broadcast.onEstablished(server, epoch);
      this.#memberships.onEstablished(server);
      this.#expiry.onEstablished(server);
      this.#overdue?.onEstablished(server);
    } else server.established = epoch;
    this.#durability.onEstablished(server);
    // A fuzzy snapshot is ahead of its zxid until what was committed while it was written has been applied over it: only
    // now the tree is that of one moment.
    const last = server.appliedEarly.at(-1);
    for (const early of server.appliedEarly) {
      this.#agreement.onApplied(server, early.zxid, early.hash, early === last ? early.digest : null);
    }
    server.appliedEarly.length = 0;
  }

  #onLeaderSends(event: WireEvent & { readonly kind: 'leader-packet' }): void {
    const { packet } = event;
    const leader = this.#cluster.server(event.from);
    switch (packet.type) {
      case PacketType.proposal:
      case PacketType.inform:
      case PacketType.informAndActivate:
        if (packet.payload.length > this.#txnBytesMax) {
          const message = `leader ${event.from} sends ${hexZxid(packet.entry.header.zxid)}, a txn of ${packet.payload.length} bytes`;
          this.#cluster.report('D11', [event.from], message);
        }
        this.#broadcast.onTxn(leader, packet.entry.header.zxid, event.hash, packet.entry);
        // Observers may be the only ones that are told: those that acknowledged it have to catch up first.
        if (packet.type !== PacketType.proposal) this.#onCommitSent(leader, packet.entry.header.zxid);
        return;
      case PacketType.revalidate:
        if (packet.isValid) this.#broadcast.onRevalidated(leader, packet.sessionId);
        return;
      case PacketType.commit:
      case PacketType.commitAndActivate:
        this.#onCommitSent(leader, packet.zxid);
        return;
      default:
        return;
    }
  }

  #onCommitSent(leader: ServerGhost, zxid: number): void {
    // Before the epoch is established, and to late learners, it belongs to the history that a learner is sent.
    if (leader.role !== 'leading' || leader.established === null) return;
    if (zxid > this.#cluster.committed.last) this.#commit(leader, zxid);
  }

  /** A leader commits, as shown by the first sign of it. */
  #commit(leader: ServerGhost, zxid: number): void {
    // (epoch, 0) names the epoch, not a txn.
    if (zxid % 0x100000000 === 0 || this.#cluster.committed.has(zxid)) return;
    // Its history, which it may name just before it reports its epoch as established.
    if (leader.established === null && zxid <= leader.log.last && epochOf(zxid as Zxid) < leader.currentEpoch) return;
    this.#broadcast.onCommitted(leader, zxid);
    this.#streams.onCommitted(leader, zxid);
  }

  #enterRole(server: ServerGhost, role: Role, leader: number | null): void {
    const before = server.role;
    server.role = role;
    server.leader = leader;
    server.term++;
    server.established = null;
    server.applied = null;
    server.appliedEarly.length = 0;
    server.committedByMessage = 0;
    server.checkedCommitted = 0;
    this.#epochs.onRole(server);
    this.#election.onRole(server, before);
    this.#expiry.onRole(server);
    this.#answered.onRole(server);
    this.#contact?.onRole(server);
    this.#overdue?.onRole(server);
  }

  #decode(payload: Uint8Array): TxnEntry | null {
    this.#reader.reset(payload, 0, payload.length);
    return readTxnEntry(this.#reader);
  }
}

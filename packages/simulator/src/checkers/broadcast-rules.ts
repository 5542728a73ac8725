/** Proposals and C: Z1, Z2, Z3, Z6, Z7, Z8, Z9, Z11, Z12, Z15, Z16, S1 and S2. */
import {
  counterOf,
  epochOf,
  hexZxid,
  MAX_COUNTER,
  OpCode,
  parseMembership,
  type TxnEntry,
  type Zxid,
} from '@meerkat/protocol';
import type { Cluster } from './cluster.ts';
import type { MembershipRules } from './membership-rules.ts';
import type { ServerGhost } from './server-ghost.ts';

export class BroadcastRules {
  readonly #cluster: Cluster;
  readonly #openSessions: Set<bigint> = new Set();
  readonly #closedSessions: Set<bigint> = new Set();

  readonly #memberships: MembershipRules;

  constructor(cluster: Cluster, memberships: MembershipRules) {
    this.#cluster = cluster;
    this.#memberships = memberships;
  }

  /**
   * A txn is seen: on the wire, in a log, in a tree.
   *
   * @param server the one that holds or sends it
   */
  onTxn(server: ServerGhost, zxid: number, hash: number, entry: TxnEntry | null): void {
    const known = this.#cluster.proposals.get(zxid);
    if (known === undefined) {
      this.#onNewTxn(server, zxid, hash, entry);
      return;
    }
    if (known.hash === hash) return;
    const message = `txn ${hexZxid(zxid)} at server ${server.id} is another one than was proposed under this zxid`;
    this.#cluster.report('Z2', [server.id], message);
  }

  /** A history that was there before the first leader. */
  adopt(zxid: number, hash: number, entry: TxnEntry | null): void {
    if (!this.#cluster.proposals.has(zxid)) this.#cluster.proposals.set(zxid, { hash, entry });
  }

  /** The leader's quorum has synchronized: its whole history is committed. */
  onEstablished(server: ServerGhost, epoch: number): void {
    const { committed } = this.#cluster;
    server.established = epoch;
    this.#cluster.establishedEpochs.add(epoch);
    if (server.log.heldCount(committed) < committed.length) {
      const missing = hexZxid(committed.zxids[server.log.heldCount(committed)] ?? 0);
      const message = `leader ${server.id} begins epoch ${epoch} without ${missing}, which is committed`;
      this.#cluster.report('Z8', [server.id], message);
      return;
    }
    this.#commit(server, server.log.last);
  }

  /** A leader says that everything up to here is committed. */
  onCommitted(server: ServerGhost, zxid: number): void {
    const { committed } = this.#cluster;
    if (zxid <= committed.last) {
      if (committed.has(zxid)) return;
      const isOlder = epochOf(zxid as Zxid) < epochOf(committed.last as Zxid);
      const message = `leader ${server.id} commits ${hexZxid(zxid)} after ${hexZxid(committed.last)}`;
      this.#cluster.report(isOlder ? 'Z7' : 'Z3', [server.id], message);
      return;
    }
    if (server.established === null) {
      const message = `leader ${server.id} commits ${hexZxid(zxid)} before a quorum has synchronized with it`;
      this.#cluster.report('Z15', [server.id], message);
    }
    this.#commit(server, zxid);
  }

  #onNewTxn(server: ServerGhost, zxid: number, hash: number, entry: TxnEntry | null): void {
    const { lastProposed, leaders, proposals } = this.#cluster;
    const epoch = epochOf(zxid as Zxid);
    const counter = counterOf(zxid as Zxid);
    const leader = leaders.get(epoch);
    if (leader === undefined || leader.server !== server.id || leader.term !== server.term) {
      const by = leader === undefined ? 'no server leads' : `server ${leader.server} leads`;
      const message = `server ${server.id} has ${hexZxid(zxid)}, which ${by} in epoch ${epoch} has never proposed`;
      this.#cluster.report('Z1', [server.id], message);
      return;
    }
    const last = lastProposed.get(epoch) ?? 0;
    const expected = last === 0 ? epoch * 0x100000000 + 1 : last + 1;
    if (counter === 0 || counter === MAX_COUNTER || zxid !== expected) {
      const message = `leader ${server.id} proposes ${hexZxid(zxid)} in epoch ${epoch}, where ${hexZxid(expected)} comes next`;
      this.#cluster.report('Z12', [server.id], message);
    }
    if (server.established === null) {
      const message = `leader ${server.id} proposes ${hexZxid(zxid)} before epoch ${epoch} is established`;
      this.#cluster.report('Z8', [server.id], message);
    }
    proposals.set(zxid, { hash, entry });
    if (entry?.txn.type === OpCode.reconfig) this.#onMembershipProposed(server, zxid, entry.txn.data);
    lastProposed.set(epoch, Math.max(last, zxid));
  }

  #onMembershipProposed(leader: ServerGhost, zxid: number, data: Uint8Array | null): void {
    const membership = parseMembership(new TextDecoder().decode(data ?? new Uint8Array(0)));
    if ('fault' in membership) {
      this.#cluster.report(
        'R1',
        [leader.id],
        `${hexZxid(zxid)} names a membership that cannot be parsed: ${membership.fault}`,
      );
    } else if (this.#cluster.onMembershipProposed(zxid, membership)) {
      this.#memberships.onProposed(leader, zxid);
    }
  }

  #commit(leader: ServerGhost, upTo: number): void {
    const { committed } = this.#cluster;
    const { log } = leader;
    if (upTo <= committed.last) return;
    if (log.base > committed.last) this.#fillUpTo(leader, Math.min(log.base, upTo));
    for (let at = log.after(committed.last); at < log.zxids.length && log.zxids[at]! <= upTo; at++) {
      this.#push(leader, log.zxids[at]!, log.hashes[at]!);
    }
    if (committed.last < upTo) this.#commitAhead(leader, upTo);
    this.#checkHolders(leader, `${hexZxid(committed.last)} is committed by leader ${leader.id}`);
  }

  /** A quorum of followers has acknowledged what the leader has proposed and not logged itself. */
  #commitAhead(leader: ServerGhost, upTo: number): void {
    const { committed, proposals } = this.#cluster;
    const epoch = epochOf(upTo as Zxid);
    const first = epochOf(committed.last as Zxid) === epoch ? committed.last + 1 : epoch * 0x100000000 + 1;
    for (let zxid = first; zxid <= upTo; zxid++) {
      const proposal = proposals.get(zxid);
      if (proposal === undefined) {
        const message = `leader ${leader.id} commits ${hexZxid(upTo)}, and ${hexZxid(zxid)} is neither in its log nor proposed`;
        this.#cluster.report('Z1', [leader.id], message);
        return;
      }
      this.#push(leader, zxid, proposal.hash);
    }
  }

  /** What is committed stays on the disks of a quorum; checked again whenever a disk loses something. */
  #checkHolders(server: ServerGhost, what: string): void {
    const { committed, voters, servers } = this.#cluster;
    const holders: number[] = [];
    const all: string[] = [];
    for (const voter of voters) {
      const count = servers.get(voter)?.log.heldCount(committed) ?? 0;
      if (count === committed.length) holders.push(voter);
      all.push(`${voter} up to ${hexZxid(committed.zxids[count - 1] ?? 0)}`);
    }
    if (this.#cluster.isQuorum(holders)) return;
    this.#cluster.report('Z9', [server.id], `${what}, and no quorum of disks holds it: ${all.join(', ')}`);
  }

  /** A server's log has become shorter, or was read again from disk. */
  onLogChanged(server: ServerGhost): void {
    if (this.#cluster.committed.length > 0) {
      this.#checkHolders(
        server,
        `${hexZxid(this.#cluster.committed.last)} was committed, server ${server.id} has lost or replaced txns`,
      );
    }
  }

  /** The leader's log begins with a snapshot ahead of C: what it covers is in another log, or was proposed. */
  #fillUpTo(leader: ServerGhost, upTo: number): void {
    const { committed, proposals, servers } = this.#cluster;
    for (const { log } of servers.values()) {
      if (log.base > committed.last || log.hashAt(upTo) === null) continue;
      for (let at = log.after(committed.last); log.zxids[at]! <= upTo; at++) {
        this.#push(leader, log.zxids[at]!, log.hashes[at]!);
      }
      return;
    }
    const between = [...proposals.keys()].filter((zxid) => zxid > committed.last && zxid <= upTo);
    for (const zxid of between.sort((a, b) => a - b)) this.#push(leader, zxid, proposals.get(zxid)!.hash);
  }

  #push(leader: ServerGhost, zxid: number, hash: number): void {
    const { committed, proposals } = this.#cluster;
    const proposal = proposals.get(zxid);
    const { last } = committed;
    const servers = [leader.id];
    const epoch = epochOf(zxid as Zxid);
    if (proposal === undefined || proposal.hash !== hash) {
      this.#cluster.report(
        'Z1',
        servers,
        `${hexZxid(zxid)} is committed by leader ${leader.id} and was never proposed so`,
      );
    }
    const isFirst = last === 0 || epoch !== epochOf(last as Zxid);
    const before = isFirst ? counterOf(zxid as Zxid) - 1 : zxid - last - 1;
    if (before > 0 && committed.length > 0) {
      const message = `${hexZxid(zxid)} is committed, and ${before} txns that its leader proposed before it are not`;
      this.#cluster.report(isFirst ? 'Z6' : 'Z16', servers, message);
    }
    this.#checkSession(leader, zxid, proposal?.entry ?? null);
    committed.push(zxid, hash, proposal?.entry ?? null);
    if (proposal?.entry?.txn.type !== OpCode.reconfig) return;
    // R2: the change itself is decided by a quorum of both.
    this.#checkHolders(leader, `change ${hexZxid(zxid)} of the membership is committed by leader ${leader.id}`);
    this.#cluster.onMembershipCommitted(zxid);
    this.#checkHolders(leader, `change ${hexZxid(zxid)} to the membership is committed by leader ${leader.id}`);
  }

  /** S2: a leader tells a learner that a session is still alive. */
  onRevalidated(leader: ServerGhost, sessionId: bigint): void {
    if (!this.#closedSessions.has(sessionId)) return;
    const message = `leader ${leader.id} says that session 0x${sessionId.toString(16)} lives, whose end is committed`;
    this.#cluster.report('S2', [leader.id], message);
  }

  #checkSession(leader: ServerGhost, zxid: number, entry: TxnEntry | null): void {
    if (entry === null) return;
    const { sessionId } = entry.header;
    const { type } = entry.txn;
    const name = `session 0x${sessionId.toString(16)}`;
    if (type === OpCode.createSession) {
      if (this.#openSessions.has(sessionId) || this.#closedSessions.has(sessionId)) {
        this.#cluster.report('S1', [leader.id], `${name} is created a second time by ${hexZxid(zxid)}`);
      }
      this.#openSessions.add(sessionId);
      return;
    }
    // A refused request of a closed session, and a second close, change nothing: both may have been in flight.
    if (type === OpCode.closeSession) {
      this.#openSessions.delete(sessionId);
      this.#closedSessions.add(sessionId);
    } else if (type !== OpCode.error && this.#closedSessions.has(sessionId)) {
      this.#cluster.report('S2', [leader.id], `${hexZxid(zxid)} is a change by ${name} after its end`);
    }
  }
}

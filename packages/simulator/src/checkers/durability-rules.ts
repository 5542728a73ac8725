/** Logs and disks: Z4, Z10, Z11, D8, D9 and D10. */
import { epochOf, hexZxid, PacketType, type Zxid } from '@meerkat/protocol';
import type { Cluster } from './cluster.ts';
import { gapBetween } from './committed-sequence.ts';
import type { ServerGhost } from './server-ghost.ts';
import type { WireEvent } from './wire.ts';

/** What is found on a disk. */
export interface FoundLog {
  /** Zxid of the snapshot that the log continues from; 0 without one. */
  readonly base: number;
  /** Ascending, behind the base. */
  readonly zxids: readonly number[];
  readonly hashes: readonly number[];
}

export class DurabilityRules {
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  onLogged(server: ServerGhost, zxid: number, hash: number): void {
    const { log } = server;
    const gap = this.#gapBetween(log.last, zxid);
    if (gap !== null) this.#cluster.report('Z11', [server.id], `the log of server ${server.id} has a gap: ${gap}`);
    this.#checkResurrection(server, zxid, hash);
    if (zxid > log.last) log.append(zxid, hash);
    this.#checkCommitted(server, log.last);
  }

  onEstablished(server: ServerGhost): void {
    this.#checkCommitted(server, server.log.last);
  }

  /** A server knows that everything up to here is committed. */
  onKnownCommitted(server: ServerGhost, zxid: number): void {
    server.committedByMessage = Math.max(server.committedByMessage, zxid);
    this.#checkCommitted(server, server.log.last);
  }

  onTruncated(server: ServerGhost, zxid: number): void {
    const { log } = server;
    for (let at = log.after(zxid); at < log.zxids.length; at++) {
      server.truncated.set(log.zxids[at]!, { hash: log.hashes[at]!, epoch: server.acceptedEpoch });
    }
    if (log.base > zxid) {
      const message = `server ${server.id} truncates its log to ${hexZxid(zxid)}, and its snapshot holds txns up to ${hexZxid(log.base)}`;
      this.#cluster.report('D10', [server.id], message);
    }
    log.truncate(zxid);
  }

  /**
   * D5: the purge has removed files. It must keep a few snapshots, and the log from the oldest of them on.
   *
   * @param snapshots zxids of the remaining ones, ascending
   * @param logBegin first zxid of the remaining log files; null without any
   */
  onPurged(server: ServerGhost, snapshots: readonly number[], logBegin: number | null): void {
    const { committed } = this.#cluster;
    if (snapshots.length < SNAPSHOTS_MIN) {
      this.#cluster.report('D5', [server.id], `the purge leaves server ${server.id} ${snapshots.length} snapshots`);
    }
    const oldest = snapshots[0] ?? 0;
    const next = committed.zxids[committed.countUpTo(oldest)];
    if (next === undefined || next > server.log.last || (logBegin !== null && logBegin <= next)) return;
    const rest = logBegin === null ? 'there is no log' : `the log begins at ${hexZxid(logBegin)}`;
    const message = `the purge leaves server ${server.id} a snapshot of ${hexZxid(oldest)}, and ${rest}: ${hexZxid(next)} is missing`;
    this.#cluster.report('D5', [server.id], message);
  }

  /** D6: log files are removed newest first, so that a power cut at any point costs the log its end and nothing else. */
  onLogSetAside(server: ServerGhost, zxid: number, others: readonly number[]): void {
    const later = others.find((other) => other > zxid);
    if (later === undefined) return;
    const message = `server ${server.id} sets its log of ${hexZxid(zxid)} aside before that of ${hexZxid(later)}`;
    this.#cluster.report('D6', [server.id], message);
  }

  /** D6: any reader of a snapshot, also another server, finds each znode once and after its parent. */
  onSnapshotFaulty(server: ServerGhost, zxid: number, fault: string): void {
    this.#cluster.report('D6', [server.id], `server ${server.id} has written a snapshot of ${hexZxid(zxid)}: ${fault}`);
  }

  /** Its history is a snapshot that its leader has sent. */
  onSnapshotInstalled(server: ServerGhost, zxid: number): void {
    const { log } = server;
    for (let at = log.after(zxid); at < log.zxids.length; at++) {
      server.truncated.set(log.zxids[at]!, { hash: log.hashes[at]!, epoch: server.acceptedEpoch });
    }
    log.replace(zxid, [], []);
  }

  /**
   * The whole disk has been read, after a power loss or at a start.
   *
   * @returns whether the ghost's log has been replaced
   */
  onRecovered(server: ServerGhost, found: FoundLog): void {
    const { log } = server;
    const foundLast = found.zxids[found.zxids.length - 1] ?? found.base;
    if (foundLast < log.durableLast) {
      const message = `server ${server.id} finds txns up to ${hexZxid(foundLast)}, ${hexZxid(log.durableLast)} was durable`;
      this.#cluster.report('D8', [server.id], message);
    }
    let previous = found.base;
    for (let i = 0; i < found.zxids.length; i++) {
      const zxid = found.zxids[i]!;
      const hash = found.hashes[i]!;
      const gap = this.#gapBetween(previous, zxid);
      if (gap !== null)
        this.#cluster.report('Z11', [server.id], `the log that server ${server.id} finds has a gap: ${gap}`);
      previous = zxid;
      if (log.hashAt(zxid) === hash || zxid <= log.base) continue;
      const truncated = server.truncated.get(zxid);
      if (truncated?.hash === hash) {
        this.#cluster.report('D10', [server.id], `server ${server.id} finds ${hexZxid(zxid)}, which it had truncated`);
      } else if (log.last > 0 || log.zxids.length > 0) {
        this.#cluster.report(
          'D8',
          [server.id],
          `server ${server.id} finds ${hexZxid(zxid)}, which it had never written so`,
        );
      }
    }
    log.replace(found.base, found.zxids, found.hashes);
  }

  onWire(event: WireEvent): void {
    if (event.kind !== 'learner-packet' || event.stage !== 'sent' || event.packet.type !== PacketType.ack) return;
    if (!this.#cluster.server(event.from).hasDiskFailed) return;
    const what = `ACK ${hexZxid(event.packet.zxid)}`;
    this.#cluster.report('D9', [event.from], `server ${event.from} sends ${what} after its disk has failed`);
  }

  /** At an epoch boundary the end of the older one may be missing, unless it is committed. */
  #gapBetween(previous: number, zxid: number): string | null {
    const gap = gapBetween(previous, zxid);
    const { committed } = this.#cluster;
    // A snapshot can end at any zxid.
    if (gap !== null || previous === 0 || zxid === previous + 1) return gap;
    const at = committed.indexOf(previous);
    const next = at < 0 ? undefined : committed.zxids[at + 1];
    if (next === undefined || next >= zxid) return null;
    return `${hexZxid(zxid)} follows ${hexZxid(previous)}: ${hexZxid(next)}, which is committed, is missing`;
  }

  #checkResurrection(server: ServerGhost, zxid: number, hash: number): void {
    const truncated = server.truncated.get(zxid);
    if (truncated === undefined || truncated.hash !== hash || this.#cluster.committed.has(zxid)) return;
    // If the leader that requested the truncation failed before it had a quorum, another leader may bring the txn back.
    if (!this.#cluster.establishedEpochs.has(truncated.epoch)) return;
    const message = `server ${server.id} logs ${hexZxid(zxid)} again, which it had truncated in epoch ${truncated.epoch}`;
    this.#cluster.report('Z10', [server.id], message);
  }

  /** Z4: what a server knows to be committed is the same in its log as in C. */
  #checkCommitted(server: ServerGhost, logged: number): void {
    const { committed } = this.#cluster;
    const { log } = server;
    // The history that a learner is sent is committed once a quorum has it; no client is served before that.
    if (server.established === null) return;
    const upTo = Math.min(server.committedByMessage, logged);
    let at = log.after(Math.max(server.checkedCommitted, log.base));
    let count = committed.countUpTo(Math.max(server.checkedCommitted, log.base));
    while (at < log.zxids.length && log.zxids[at]! <= upTo) {
      const zxid = log.zxids[at]!;
      if (committed.zxids[count] !== zxid || committed.hashes[count] !== log.hashes[at]) {
        const theirs = committed.zxids[count] === undefined ? 'nothing' : hexZxid(committed.zxids[count]!);
        const message = `server ${server.id} takes ${hexZxid(zxid)} for committed, where ${theirs} is (epoch ${epochOf(zxid as Zxid)})`;
        this.#cluster.report('Z4', [server.id], message);
        break;
      }
      at++;
      count++;
    }
    server.checkedCommitted = Math.max(server.checkedCommitted, upTo);
  }
}

/** Servers accept no smaller setting. */
const SNAPSHOTS_MIN = 3;

/** The voters, while they change: R1, R3, R4 and R6. R2 is part of every quorum check, see `Cluster`. */
import { counterOf, epochOf, formatMembership, hexZxid, type Membership, type Zxid } from '@meerkat/protocol';
import type { Cluster } from './cluster.ts';
import type { ServerGhost } from './server-ghost.ts';

export class MembershipRules {
  readonly #cluster: Cluster;
  /** By version: the membership, and the server that reported it first. */
  readonly #texts: Map<number, { readonly text: string; readonly server: number }> = new Map();
  /** The version that each server last had in force in this life. */
  readonly #versions: Map<number, number> = new Map();
  readonly #unchecked: Map<number, number> = new Map();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** A process that ends may lose what its files do not say yet. */
  onStarted(server: ServerGhost): void {
    this.#versions.delete(server.id);
    this.#unchecked.delete(server.id);
  }

  onChanged(server: ServerGhost, committed: Membership): void {
    const { version } = committed;
    const text = formatMembership(committed);
    const known = this.#texts.get(version);
    if (known === undefined) this.#texts.set(version, { text, server: server.id });
    else if (known.text !== text && version !== 0) {
      const message = `membership ${hexZxid(version)} of server ${server.id} is another one than that of server ${known.server}`;
      this.#cluster.report('R1', [server.id, known.server], message);
    }
    const before = this.#versions.get(server.id) ?? 0;
    if (version < before) {
      const message = `server ${server.id} goes back from membership ${hexZxid(before)} to ${hexZxid(version)}`;
      this.#cluster.report('R1', [server.id], message);
    }
    this.#versions.set(server.id, version);
    // The history that its version is in is committed in the moment in which the epoch is established.
    if (server.role === 'leading' && server.established === null) this.#unchecked.set(server.id, version);
    else this.#checkCommitted(server, version);
  }

  /** A leader proposes a change. */
  onProposed(leader: ServerGhost, version: number): void {
    const pending = this.#cluster.pendingMembership(version);
    if (pending === null) return;
    const message = `leader ${leader.id} proposes membership ${hexZxid(version)} while ${hexZxid(pending)} is not committed`;
    this.#cluster.report('R3', [leader.id], message);
  }

  onEstablished(leader: ServerGhost): void {
    const version = this.#unchecked.get(leader.id);
    this.#unchecked.delete(leader.id);
    if (version !== undefined) this.#checkCommitted(leader, version);
    if (this.#cluster.mayLead(leader.id)) return;
    this.#cluster.report('R6', [leader.id], `server ${leader.id} leads, and no membership has it as a participant`);
  }

  #checkCommitted(server: ServerGhost, version: number): void {
    // Version (e, 0) is that of the first leader, which a quorum takes over with its epoch.
    const isFirst = counterOf(version as Zxid) === 0;
    const isThere = isFirst
      ? version === 0 || this.#cluster.leaders.has(epochOf(version as Zxid))
      : this.#cluster.committed.has(version) || version <= server.committedByMessage;
    if (isThere) return;
    const message = `server ${server.id} has membership ${hexZxid(version)} in force, which is not committed`;
    this.#cluster.report('R4', [server.id], message);
  }
}

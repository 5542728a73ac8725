/** Elections: E9, E10, E12, E13 and E14. */
import { type ElectionNotification, hexZxid, ServerState, VOTE_NONE } from '@meerkat/protocol';
import type { Cluster } from './cluster.ts';
import type { Role, ServerGhost } from './server-ghost.ts';
import type { WireEvent } from './wire.ts';

/** What a server has sent and received since it began to look for a leader. */
interface Looking {
  /** Its own vote, as last sent; null before. */
  own: ElectionNotification | null;
  /** Notifications received from each server, every vote once. */
  readonly received: Map<number, ElectionNotification[]>;
  /** The last notifications of each server: several if they came in one chunk, as any of them may have decided. */
  readonly last: Map<number, { readonly atMs: number; readonly words: readonly ElectionNotification[] }>;
}

/** A vote on a connection beside another one of the same two servers, which it may have to wait for. */
interface Waiting {
  readonly from: number;
  readonly to: number;
  readonly connection: number;
  readonly vote: ElectionNotification;
}

export class ElectionRules {
  readonly #cluster: Cluster;
  /** Connections over which two servers have exchanged votes, by the smaller and the larger id. */
  readonly #connections: Map<string, Set<number>> = new Map();
  /** Received while the receiver was not looking for a leader. */
  #waiting: Waiting[] = [];
  readonly #looking: Map<number, Looking> = new Map();
  /** The last vote of a looking server on each connection. */
  readonly #lastSent: Map<string, ElectionNotification> = new Map();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  onRole(server: ServerGhost, before: Role): void {
    const { id, role } = server;
    if (role === 'looking') {
      this.#looking.set(id, { own: null, received: new Map(), last: new Map() });
      return;
    }
    if (role === 'leading' && !server.isVoter && !this.#cluster.mayLead(id)) {
      this.#cluster.report('E13', [id], `server ${id} leads although it has no vote`);
    }
    if (before !== 'looking') {
      const message = `server ${id} goes from ${before} to ${role} without an election`;
      this.#cluster.report('E14', [id], message);
      return;
    }
    this.#checkDecision(server);
    this.#looking.delete(id);
  }

  onWire(event: WireEvent): void {
    if (event.kind === 'closed') {
      for (const [one, other] of [
        [event.from, event.to],
        [event.to, event.from],
      ]) {
        this.#lastSent.delete(`${event.connection} ${one} ${other}`);
      }
      this.#onClosed(event.connection, event.from, event.to);
      return;
    }
    if (event.kind !== 'notification') return;
    this.#connectionsOf(event.from, event.to).add(event.connection);
    if (event.stage === 'sent') this.#onSent(event.connection, event.from, event.to, event.notification);
    else this.#onReceived(event.connection, event.from, event.to, event.notification);
  }

  /** Votes on the other connection are read now. */
  #onClosed(connection: number, one: number, other: number): void {
    if (!this.#connectionsOf(one, other).delete(connection)) return;
    const waiting = this.#waiting.filter(
      ({ from, to }) => (from === one && to === other) || (from === other && to === one),
    );
    this.#waiting = this.#waiting.filter((vote) => !waiting.includes(vote));
    for (const { connection: its, from, to, vote } of waiting) {
      if (its !== connection && this.#looking.has(to)) this.#onReceived(its, from, to, vote);
    }
  }

  #connectionsOf(one: number, other: number): Set<number> {
    const key = one < other ? `${one} ${other}` : `${other} ${one}`;
    let connections = this.#connections.get(key);
    if (connections === undefined) {
      connections = new Set();
      this.#connections.set(key, connections);
    }
    return connections;
  }

  #onSent(connection: number, from: number, to: number, vote: ElectionNotification): void {
    if (vote.state !== ServerState.looking) return;
    const looking = this.#looking.get(from);
    if (looking !== undefined) looking.own = vote;
    if (!this.#cluster.server(from).isVoter) return;
    const key = `${connection} ${from} ${to}`;
    const last = this.#lastSent.get(key);
    // A server without weight starts with a vote for itself, which any other vote beats.
    const wasForLeader = last !== undefined && this.#cluster.canLead(last.leader);
    if (wasForLeader && last.electionEpoch === vote.electionEpoch && compareVotes(vote, last) < 0) {
      const change = `from ${describeVote(last)} to ${describeVote(vote)}`;
      this.#cluster.report(
        'E9',
        [from],
        `server ${from} changes its vote of round ${vote.electionEpoch} for the worse, ${change}`,
      );
    }
    this.#lastSent.set(key, vote);
  }

  #onReceived(connection: number, from: number, to: number, vote: ElectionNotification): void {
    const looking = this.#looking.get(to);
    if (looking === undefined) {
      if (this.#connectionsOf(from, to).size > 1) this.#waiting.push({ from, to, connection, vote });
      return;
    }
    const votes = looking.received.get(from) ?? [];
    const isKnown = votes.some(
      (known) =>
        known.state === vote.state && known.electionEpoch === vote.electionEpoch && compareVotes(known, vote) === 0,
    );
    if (!isKnown) votes.push(vote);
    looking.received.set(from, votes);
    const atMs = this.#cluster.nowMs();
    const last = looking.last.get(from);
    looking.last.set(from, { atMs, words: last?.atMs === atMs ? [...last.words, vote] : [vote] });
  }

  #checkDecision(server: ServerGhost): void {
    const { id, leader } = server;
    const looking = this.#looking.get(id);
    if (looking === undefined || leader === null) return;
    const { own } = looking;
    const received = [...looking.received].flatMap(([from, votes]) => votes.map((vote) => ({ from, vote })));
    const electing = received.filter(({ vote }) => vote.state === ServerState.looking && vote.leader === leader);
    const elected = electing.find(({ vote }) => vote.electionEpoch === own?.electionEpoch)?.vote ?? null;
    if (own?.zxid === -1 && own.leader === leader) {
      this.#cluster.report(
        'E12',
        [id, leader],
        `server ${id} chooses ${leader}, whose data cannot be trusted (zxid −1)`,
      );
    } else if (elected?.zxid === -1) {
      this.#cluster.report('E12', [id, leader], `server ${id} counts votes for ${leader} with a zxid of −1`);
    }
    // A server that is no participant votes for none.
    if (leader === id || !server.isVoter || own?.leader === VOTE_NONE) return;
    const lastWords = looking.last.get(leader)?.words ?? [];
    if (lastWords.some((word) => word.state === ServerState.leading && word.leader === leader)) return;
    // A later round than that of its last notification: it joined the round while the others were unreachable.
    const ownRound = own?.electionEpoch ?? -1n;
    for (const round of new Set(electing.map(({ vote }) => vote.electionEpoch))) {
      if (round < ownRound || (round === ownRound && own?.leader !== leader)) continue;
      const voters = electing.filter(({ vote }) => vote.electionEpoch === round).map(({ from }) => from);
      const backers = [id, ...voters];
      if (this.#cluster.isQuorumOfAny(backers) || this.#cluster.isQuorumOfOwnList(id, backers)) return;
    }
    const sameRound = electing.filter(({ vote }) => vote.electionEpoch === own?.electionEpoch);
    const voters = sameRound.map(({ from }) => from).join(', ') || 'none';
    const message = `server ${id} follows ${leader}, which does not say that it leads, and of its own round voted for it: ${voters}`;
    this.#cluster.report('E10', [id, leader], message);
  }
}

/** The order of FastLeaderElection: epoch, then zxid, then server id. */
function compareVotes(one: ElectionNotification, other: ElectionNotification): number {
  return one.peerEpoch - other.peerEpoch || one.zxid - other.zxid || one.leader - other.leader;
}

function describeVote({ leader, zxid, peerEpoch }: ElectionNotification): string {
  return `${leader} (epoch ${peerEpoch}, ${hexZxid(zxid)})`;
}

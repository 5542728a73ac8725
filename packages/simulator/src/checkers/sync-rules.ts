/** C8: a leader answers a learner's sync once a quorum has answered a ping that was sent after it had come. */
import { OpCode, PacketType } from '@meerkat/protocol';
import type { Cluster } from './cluster.ts';
import type { WireEvent } from './wire.ts';

/** A connection of a voter that follows: its answers come in the order of the pings. */
interface Link {
  readonly leader: number;
  readonly learner: number;
  pinged: number;
  answered: number;
  /** Syncs that wait, oldest first: how many pings had been sent to whom when each came. */
  readonly syncs: ReadonlyMap<number, number>[];
}

export class SyncRules {
  readonly #cluster: Cluster;
  readonly #links: Map<number, Link> = new Map();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  onWire(event: WireEvent): void {
    if (event.kind === 'leader-packet' && event.stage === 'sent') {
      const link = this.#link(event.connection, event.from, event.to);
      if (event.packet.type === PacketType.ping) link.pinged++;
      else if (event.packet.type === PacketType.sync) this.#onSynced(link);
    } else if (event.kind === 'learner-packet' && event.stage === 'received') {
      const link = this.#link(event.connection, event.to, event.from);
      const { packet } = event;
      if (packet.type === PacketType.ping) link.answered++;
      else if (packet.type === PacketType.request && packet.op === OpCode.sync) link.syncs.push(this.#pinged(event.to));
    }
  }

  #pinged(leader: number): ReadonlyMap<number, number> {
    const links = [...this.#links].filter(([, link]) => link.leader === leader);
    return new Map(links.map(([connection, { pinged }]) => [connection, pinged]));
  }

  /** Closed connections may have been counted before; new ones have only later pings. */
  #onSynced({ leader, learner, syncs }: Link): void {
    const pinged = syncs.shift();
    if (pinged === undefined) return;
    const confirmed = [leader];
    for (const [connection, link] of this.#links) {
      if (link.leader === leader && link.answered > (pinged.get(connection) ?? 0)) confirmed.push(link.learner);
    }
    if (this.#cluster.isQuorumOfAny(confirmed)) return;
    const message = `leader ${leader} answers a sync of server ${learner}; since it came, ${confirmed.slice(1).join(', ') || 'no server'}`;
    this.#cluster.report('C8', [leader, learner], `${message} answered a ping that was sent since`);
  }

  #link(connection: number, leader: number, learner: number): Link {
    let link = this.#links.get(connection);
    if (link === undefined) {
      link = { leader, learner, pinged: 0, answered: 0, syncs: [] };
      this.#links.set(connection, link);
    }
    return link;
  }
}

/**
 * The descriptors, of open files and sockets, that the system allows this process, and how they are shared out.
 *
 *     ├─ in use at the start ─┼─ threads ─┼─ clients ─┼─ each port between servers ─┼─ files, and what this server dials ─┤ limit
 *
 * A process without descriptors cannot open its next log file, which would end the server.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import type { CoreOptions } from '@meerkat/core';
import type { ServerOptions } from '../config/options.ts';

export interface DescriptorPlan {
  /** Infinity where the limit of the system is unknown. */
  readonly clientsMax: number;
  /** Of each port that listens for other servers. */
  readonly peersMax: number;
}

/** Of the limit, the part that is kept for ports between servers, and for files; the second one is bounded. */
const PEERS_PART = 1 / 4;
const FILES_PART = 1 / 8;
const FILES_MIN = 12;
const FILES_MAX = 64;
/** Minimum share of a port, so that it stays usable. */
const PORT_MIN = 4;
/** What Node.js opens for one: an epoll, an eventfd, a pipe of two, and /dev/null. */
const PER_THREAD = 5;

/**
 * @param limit of this process
 * @param inUse by this process before it takes its first connection
 * @param threads that it starts later
 * @param peerPorts ports that listen for other servers
 */
export function planDescriptors(limit: number, inUse: number, threads: number, peerPorts: number): DescriptorPlan {
  if (limit === Number.POSITIVE_INFINITY) return { clientsMax: limit, peersMax: limit };
  const files = Math.min(Math.max(Math.floor(limit * FILES_PART), FILES_MIN), FILES_MAX);
  const peersMax = peerPorts === 0 ? 0 : Math.max(Math.floor((limit * PEERS_PART) / peerPorts), PORT_MIN);
  const taken = inUse + threads * PER_THREAD;
  const clientsMax = Math.max(limit - taken - files - peersMax * peerPorts, PORT_MIN);
  return { clientsMax, peersMax };
}

/** Null on systems other than Linux. */
export function countOpenFiles(): number | null {
  try {
    // Available since Linux 6.2; reading the list takes milliseconds with thousands of them.
    const { size } = statSync('/proc/self/fd');
    if (size > 0) return size;
    // One of them is the descriptor that this very reading needs.
    return readdirSync('/proc/self/fd').length - 1;
  } catch {
    return null;
  }
}

/** Null on systems other than Linux. Node.js raises the soft limit to the hard one when it starts. */
export function readOpenFilesMax(): number | null {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return soft === undefined ? null : Number(soft);
  } catch {
    return null;
  }
}

/** How a server divides the descriptors of its process among its ports. */
export class Descriptors {
  readonly #limit: number;
  readonly #plan: DescriptorPlan;
  readonly #onWarning: (message: string) => void;

  /**
   * @param threads that will be started
   * @param onWarning called for each connection beyond a share
   */
  constructor(threads: number, peerPorts: number, onWarning: (message: string) => void) {
    this.#limit = readOpenFilesMax() ?? Number.POSITIVE_INFINITY;
    this.#plan = planDescriptors(this.#limit, countOpenFiles() ?? 0, threads, peerPorts);
    this.#onWarning = onWarning;
  }

  /** Maximum of client connections; Infinity where the limit of the system is unknown. */
  get clientsMax(): number {
    return this.#plan.clientsMax;
  }

  shareOfClients(): ConnectionShare {
    return new ConnectionShare(this.clientsMax, () => this.onClientsCrowd());
  }

  /** A client has connected beyond the share. */
  onClientsCrowd(): void {
    const who = `clients have ${this.clientsMax} connections`;
    const what =
      'those without a session are closed, first of the address that has most; if there is none, new ones are refused';
    this.#warn(who, what);
  }

  /** Of one port. */
  shareOfPeers(): ConnectionShare {
    const { peersMax } = this.#plan;
    const who = `${peersMax} connections have come to a port for other servers`;
    const what = 'those that have not said who they are are closed, first of the address that has most';
    return new ConnectionShare(peersMax, () => this.#warn(who, what));
  }

  #warn(who: string, what: string): void {
    const advice = 'Raise the limit of the process (ulimit -n), or keep strangers from the port';
    this.#onWarning(`${who}, as many as its share of ${this.#limit} descriptors allows: ${what}. ${advice}`);
  }
}

/** The number of connections of a kind; threads may share it. */
export interface ConnectionCount {
  readonly value: number;
  add(change: 1 | -1): void;
}

class OwnCount implements ConnectionCount {
  value = 0;

  add(change: 1 | -1): void {
    this.value += change;
  }
}

/** A connection that is counted. */
export interface CountedConnection {
  destroy(): void;
}

/** How many connections of one kind there may be. */
export class ConnectionShare {
  readonly max: number;
  readonly #onCrowded: () => void;
  readonly #count: ConnectionCount;
  /** Only wait for their peers to close; oldest first. */
  readonly #lingering = new Set<CountedConnection>();
  /** Were destroyed here, and are no longer counted. */
  readonly #evicted = new Set<CountedConnection>();

  /**
   * @param onCrowded called for each connection beyond the share
   * @param count left out: of this share alone
   */
  constructor(max: number, onCrowded: () => void = () => {}, count: ConnectionCount = new OwnCount()) {
    this.max = max;
    this.#onCrowded = onCrowded;
    this.#count = count;
  }

  get count(): number {
    return this.#count.value;
  }

  /**
   * Counts one more connection. Lingering connections beyond the maximum are destroyed to make room: a connection that
   * is closed in favour of another one lingers first.
   *
   * @returns true when it is one too many
   */
  open(): boolean {
    this.#count.add(1);
    for (const oldest of this.#lingering) {
      if (this.count <= this.max) break;
      this.#lingering.delete(oldest);
      this.#evicted.add(oldest);
      this.#count.add(-1);
      oldest.destroy();
    }
    if (this.count <= this.max) return false;
    this.#onCrowded();
    return true;
  }

  /** Everything has been said to the peer. */
  linger(connection: CountedConnection): void {
    this.#lingering.add(connection);
  }

  close(connection: CountedConnection): void {
    if (this.#evicted.delete(connection)) return;
    this.#count.add(-1);
    this.#lingering.delete(connection);
  }
}

export const UNLIMITED_SHARE: ConnectionShare = new ConnectionShare(Number.POSITIVE_INFINITY);

/** Threads that a server starts: for sockets of clients, for its HTTP ports, and to read files ahead. */
export function countThreads({ clientThreads, admin, metricsPort }: ServerOptions): number {
  return clientThreads + (admin === null && metricsPort === null ? 0 : 1) + 1;
}

/** Ports on which this server may listen for others. */
export function countPeerPorts({ serverId, ensemble }: CoreOptions): number {
  const self = ensemble?.membership.members.find((member) => member.serverId === serverId);
  return 2 * (self?.addresses.length ?? 0);
}

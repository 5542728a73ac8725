import { type CoreOptions, DEFAULT_ENSEMBLE_OPTIONS, type EnsembleOptions } from '@meerkat/core';
import { type Hierarchy, type Member, type Membership, ZXID_ZERO } from '@meerkat/protocol';
import type { PortKind } from './checkers/wire.ts';
import type { DiskQuality, VirtualServer, VirtualServerOptions } from './virtual-server.ts';

export interface EnsembleShape {
  /** Participants. One that is alone is a server of its own, without an ensemble. */
  readonly servers: number;
  readonly observers?: number | undefined;
  /** Servers that are no members at first, and may become some (`reconfigEnabled`). */
  readonly spares?: number | undefined;
  readonly hierarchy?: Hierarchy | undefined;
  /** Addresses of each server between servers: as every host has one, they differ by their ports. Default 1. */
  readonly addresses?: number | undefined;
  /** Milliseconds. Default 100: what takes a real service seconds is over in tenths of one. */
  readonly tickTimeMs?: number | undefined;
  readonly ensemble?: Partial<Omit<EnsembleOptions, 'membership'>> | undefined;
  readonly core?: Partial<CoreOptions> | undefined;
  /** Of each server, between clients and core. Default 0. */
  readonly clientThreads?: number | undefined;
  /** As in `VirtualServerOptions`. */
  readonly isSlow?: boolean | undefined;
  readonly disk?: DiskQuality | undefined;
  readonly restartDelayMs?: number | null | undefined;
}

export const CLIENT_PORT = 2181;
export const QUORUM_PORT = 2888;
export const ELECTION_PORT = 3888;
/** Where a follower feeds observers, if it does. */
export const OBSERVER_MASTER_PORT = 2191;
/** Of further addresses, the ports are higher by 1, 2, …. */
const ADDRESSES_MAX = 10;

export interface MembershipShape {
  readonly observers?: number | undefined;
  readonly hierarchy?: Hierarchy | null | undefined;
  readonly addresses?: number | undefined;
}

/** What a port of a server is for, between servers; null when it is another one. */
export function portKindOf(port: number): PortKind | null {
  if (port === OBSERVER_MASTER_PORT) return 'observers';
  if (port >= QUORUM_PORT && port < QUORUM_PORT + ADDRESSES_MAX) return 'quorum';
  return port >= ELECTION_PORT && port < ELECTION_PORT + ADDRESSES_MAX ? 'election' : null;
}

/** The membership of servers 1, 2, … on hosts zk1, zk2, …; the last ones observe. */
export function makeMembership(servers: number, shape: MembershipShape = {}): Membership {
  const { observers = 0, hierarchy = null, addresses = 1 } = shape;
  const members = Array.from({ length: servers + observers }, (_, i): Member => {
    const host = hostOf(i + 1);
    return {
      serverId: i + 1,
      role: i < servers ? 'participant' : 'observer',
      addresses: Array.from({ length: addresses }, (_, n) => ({
        host,
        quorumPort: QUORUM_PORT + n,
        electionPort: ELECTION_PORT + n,
      })),
      client: { host, port: CLIENT_PORT },
      secureClient: null,
    };
  });
  return { version: ZXID_ZERO, members, hierarchy };
}

/** One participant may be left, and a server may have several addresses. */
const RULES = { isStandaloneEnabled: false, isMultiAddressEnabled: true };

/** Where its servers come from. */
interface ServerMaker {
  addServer(options: VirtualServerOptions): VirtualServer;
}

/** Servers that know each other. */
export class VirtualEnsemble {
  readonly membership: Membership;
  /** Participants first; server n is the one of index n − 1. */
  readonly servers: readonly VirtualServer[];
  readonly participants: readonly VirtualServer[];
  readonly observers: readonly VirtualServer[];
  readonly spares: readonly VirtualServer[];
  /** `zk1:2181,zk2:2181,…`, observers included. */
  readonly connectString: string;

  constructor(world: ServerMaker, shape: EnsembleShape) {
    const { servers, observers = 0, spares = 0, tickTimeMs = 100 } = shape;
    this.membership = makeMembership(servers, shape);
    const all = makeMembership(servers + observers + spares, { ...shape, observers: 0 }).members;
    this.servers = all.map((own) => {
      const isSpare = own.serverId > servers + observers;
      const members = isSpare ? [...this.membership.members, own] : this.membership.members;
      const membership = { ...this.membership, members };
      const ensemble: EnsembleOptions | null =
        all.length === 1
          ? null
          : {
              ...DEFAULT_ENSEMBLE_OPTIONS,
              membershipRules: RULES,
              initLimit: 20,
              syncLimit: 5,
              ...shape.ensemble,
              membership,
            };
      return world.addServer({
        host: hostOf(own.serverId),
        port: CLIENT_PORT,
        clientThreads: shape.clientThreads,
        isSlow: shape.isSlow,
        disk: shape.disk,
        restartDelayMs: shape.restartDelayMs,
        core: {
          tickTimeMs,
          sessionTimeoutMinMs: 2 * tickTimeMs,
          reconfigEnabled: spares > 0,
          ...shape.core,
          serverId: own.serverId,
          ensemble,
        },
      });
    });
    this.participants = this.servers.slice(0, servers);
    this.observers = this.servers.slice(servers, servers + observers);
    this.spares = this.servers.slice(servers + observers);
    this.connectString = this.servers.map(({ host, port }) => `${host}:${port}`).join(',');
  }

  /** The membership that is in force, as the leader has it. */
  get membershipNow(): Membership {
    return this.leader?.core?.view.ensemble?.membership ?? this.membership;
  }

  get hosts(): readonly string[] {
    return this.servers.map(({ host }) => host);
  }

  /** Who leads and serves; of two who think so, the one of the later epoch. A server of its own leads itself. */
  get leader(): VirtualServer | null {
    const leaders = this.servers.filter(({ role, isServing }) => isServing && (role === 'leading' || role === 'solo'));
    return leaders.toSorted((a, b) => b.epoch - a.epoch)[0] ?? null;
  }

  server(host: string): VirtualServer | null {
    return this.servers.find((server) => server.host === host) ?? null;
  }

  /** Everybody serves, in the leader's epoch, and has what the leader has. */
  get isWhole(): boolean {
    const { leader } = this;
    if (leader === null) return false;
    return this.servers.every(
      (server) =>
        server.isServing &&
        !server.isPaused &&
        server.epoch === leader.epoch &&
        server.core?.view.lastZxid === leader.core?.view.lastZxid,
    );
  }

  /** `isWhole`, and no txn is on its way: what is proposed is applied everywhere. */
  get isAtRest(): boolean {
    return this.isWhole && this.leader?.core?.view.outstandingRequests === 0;
  }
}

function hostOf(serverId: number): string {
  return `zk${serverId}`;
}

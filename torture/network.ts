import type { Client, ConnectOptions } from '@meerkat/client';
import type { ClientTap } from '@meerkat/simulator';

/** What a port of a server is for. */
export const PORT_KINDS = ['client', 'quorum', 'election'] as const;
export type PortKind = (typeof PORT_KINDS)[number];

/**
 * What does not get through: bytes from one host to another, in one direction. Hosts are `zk1`, `zk2`, … and the clients
 * `c1`, `c2`, ….
 */
export interface Cut {
  readonly from: string;
  readonly to: string;
  /** Only on connections to this port, which is of `from` or of `to`; null: everything. */
  readonly port: { readonly host: string; readonly kind: PortKind } | null;
}

/** Where a server listens, as its configuration says it. */
export interface ServerPlace {
  readonly id: number;
  readonly clientHost: string;
  /** By which the other servers find it. */
  readonly peerHost: string;
  readonly ports: Readonly<Record<PortKind, number>>;
}

/** The network of an ensemble and its clients, in which everything can be cut. */
export interface TortureNetwork {
  /** For people: "network namespaces". */
  readonly name: string;
  readonly places: readonly ServerPlace[];
  /** The program and the arguments with which a server's process begins. */
  commandOf(id: number): readonly string[];
  /** Ports that this server dials in place of those of others. */
  redirectionsOf(id: number): readonly (readonly [number, number])[];
  /** What the client `c<n>` connects to; `ids` names the servers. */
  connectString(client: number, ids: readonly number[]): string;
  /** The server that a client's connection leads to. */
  serverAt(host: string, port: number): number;
  /** From now on exactly these. */
  setCuts(cuts: readonly Cut[]): void;
  /** What arrives at these servers, or leaves them, is that much later; null: `slow` cannot be had here. */
  readonly delay: ((hosts: readonly string[], ms: number) => void) | null;
  /** Breaks about half of the connections of these hosts; null as above. */
  readonly breakStreams: ((hosts: readonly string[], chance: () => boolean) => void) | null;
  close(): Promise<void>;
}

export type MakeTap = (server: string) => ClientTap;
export type ConnectTo = (client: string, options: ConnectOptions, makeTap: MakeTap) => Promise<Client>;

export function hostOf(id: number): string {
  return `zk${id}`;
}

/** The number behind `zk` or `c`. */
export function numberOfHost(host: string): number {
  return Number(host.replace(/^\D+/, ''));
}

export function isServer(host: string): boolean {
  return host.startsWith('zk');
}

export function formatCut({ from, to, port }: Cut): string {
  return port === null ? `${from}>${to}` : `${from}>${to} ${port.host}:${port.kind}`;
}

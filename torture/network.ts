import type { Client, ConnectOptions } from '@meerkat/client';
import type { ClientTap } from '@meerkat/simulator';

/** Purpose of a server's port. */
export const PORT_KINDS = ['client', 'quorum', 'election'] as const;
export type PortKind = (typeof PORT_KINDS)[number];

/**
 * Blocked traffic from one host to another, in one direction. Hosts are `zk1`, `zk2`, … and the clients `c1`, `c2`, ….
 */
export interface Cut {
  readonly from: string;
  readonly to: string;
  /** Only connections to this port of `from` or `to`; null: all traffic. */
  readonly port: { readonly host: string; readonly kind: PortKind } | null;
}

/** Where a server listens, as configured. */
export interface ServerPlace {
  readonly id: number;
  readonly clientHost: string;
  /** Host name that the other servers dial. */
  readonly peerHost: string;
  readonly ports: Readonly<Record<PortKind, number>>;
}

/** The network of an ensemble and its clients, in which every link can be cut. */
export interface TortureNetwork {
  /** For people: "network namespaces". */
  readonly name: string;
  readonly places: readonly ServerPlace[];
  /** Command prefix (program and arguments) of a server's process. */
  commandOf(id: number): readonly string[];
  /** Ports that this server dials in place of those of others. */
  redirectionsOf(id: number): readonly (readonly [number, number])[];
  /** What the client `c<n>` connects to; `ids` names the servers. */
  connectString(client: number, ids: readonly number[]): string;
  /** The server behind an address that a client connects to. */
  serverAt(host: string, port: number): number;
  /** Replaces all cuts. */
  setCuts(cuts: readonly Cut[]): void;
  /** Delays traffic from and to these servers; null where the fault `slow` is not supported. */
  readonly delay: ((hosts: readonly string[], ms: number) => void) | null;
  /** Breaks about half of these hosts' connections; null where the fault `break` is not supported. */
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

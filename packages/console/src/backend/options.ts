import type { Acl, Client, ConnectOptions, TlsConnectionOptions } from '@meerkat/client';

/** A ZooKeeper service of the console. */
export interface ClusterOptions {
  /** Used in URLs: letters, digits, `_`, `.` and `-`. */
  readonly name: string;
  /** How to connect; its credentials are used for sessions that log in as `own`. */
  readonly connection: ConnectOptions;
  /** The servers, each to be sent four-letter words individually. */
  readonly servers: readonly MonitoredServer[];
  /** Whether `connection` contains the console's own credentials. */
  readonly hasOwnLogin: boolean;
  /** The history of a znode, from the files of a server. Omitted: not available. */
  readonly history?: (path: string) => Promise<PastStates>;
  /** Past trees, from the same files. */
  readonly past?: PastTrees;
  /** The admin ports at which sessions of other clients are ended. Omitted: none. */
  readonly admin?: AdminPorts;
}

export interface PastTrees {
  /** The time range of the retained log; null: it has none. */
  span(): Promise<{ readonly fromMs: number; readonly toMs: number } | null>;
  /**
   * Needs the memory of a whole tree until it is closed.
   *
   * @param moment a zxid or a time, as for `--at` of commands
   * @returns null when it is neither
   */
  open(moment: string): Promise<PastTree | null>;
}

export interface PastTree {
  readonly zxid: string;
  /** The time of its last txn; null: it is that of a snapshot. */
  readonly atMs: number | null;
  /** Reads everything, regardless of ACLs. */
  readonly client: Client;
  close(): Promise<void>;
}

export interface PastStates {
  /** The newest ones, up to a limit; oldest first. */
  readonly states: readonly PastState[];
  /** Older ones were left out. */
  readonly isCut: boolean;
}

/** The state of a znode after a txn. */
export interface PastState {
  readonly zxid: string;
  readonly atMs: number;
  /** 0x0: the server itself. */
  readonly session: string;
  readonly client: string | null;
  readonly change: 'created' | 'changed' | 'deleted' | 'acl';
  readonly version: number | null;
  /** null: it did not exist. An ACL that is older than the log is null. */
  readonly state: { readonly data: Uint8Array | null; readonly acl: readonly Acl[] | null } | null;
}

/** One server, and how to contact it. */
export interface MonitoredServer {
  readonly host: string;
  readonly port: number;
  /** `host:port`, for display. */
  readonly name: string;
  /** null: without TLS. */
  readonly tls: TlsConnectionOptions | null;
}

/** The admin ports of Meerkat's servers, which use HTTP. */
export interface AdminPorts {
  /** With TLS. */
  readonly isSecure: boolean;
  /** @throws NoAnswerError when there is no complete answer */
  ask(server: MonitoredServer, question: AdminQuestion): Promise<AdminAnswer>;
}

export interface AdminQuestion {
  readonly method: 'GET' | 'POST';
  /** The path after /commands/, with its query. */
  readonly command: string;
  /** The header of that name; null: none. */
  readonly authorization: string | null;
  /** The client certificate; null: none, or that of the port's own settings. */
  readonly tls: TlsConnectionOptions | null;
}

export interface AdminAnswer {
  readonly status: number;
  /** {} when it is not a JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface ConsoleOptions {
  readonly clusters: readonly ClusterOptions[];
  readonly version: string;
  /** Whether znodes may be changed. Default false. */
  readonly isWritable?: boolean;
  /** The key that a browser must first send, from its URL. null: none. */
  readonly key?: string | null;
  /** The path prefix of the console, such as `/zk`; '' at the root. */
  readonly prefix?: string;
  /** Allowed host names, besides addresses, localhost and this machine's name. */
  readonly hostNames?: readonly string[];
  /** Maximum number of znodes in the index of one session and cluster. Default 1,500,000. */
  readonly indexMax?: number;
}

export const INDEX_MAX = 1_500_000;

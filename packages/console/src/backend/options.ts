import type { Acl, Client, ConnectOptions, TlsConnectionOptions } from '@meerkat/client';

/** A ZooKeeper service that the console shows. */
export interface ClusterOptions {
  /** Stands in addresses: letters, digits, `_`, `.` and `-`. */
  readonly name: string;
  /** Where it is; credentials in here are used for sessions that log in as `own`. */
  readonly connection: ConnectOptions;
  /** The servers, each to be asked four-letter words by itself. */
  readonly servers: readonly MonitoredServer[];
  /** Whether `connection` has credentials of the console's own. */
  readonly hasOwnLogin: boolean;
  /** How a znode came to be what it is, from the files of a server. Left out: nobody can tell. */
  readonly history?: (path: string) => Promise<PastStates>;
  /** The whole tree as it was, from the same files. */
  readonly past?: PastTrees;
  /** Where sessions of others are ended. Left out: nowhere. */
  readonly admin?: AdminPorts;
}

export interface PastTrees {
  /** From the first to the last txn of the retained log; null: it has none. */
  span(): Promise<{ readonly fromMs: number; readonly toMs: number } | null>;
  /**
   * Takes the memory of a whole tree until it is closed.
   *
   * @param moment a zxid or a time, as `--at` of commands takes them
   * @returns null when it is neither
   */
  open(moment: string): Promise<PastTree | null>;
}

export interface PastTree {
  readonly zxid: string;
  /** Of the last txn in it; null: it is that of a snapshot. */
  readonly atMs: number | null;
  /** Reads everything, whatever the ACLs were. */
  readonly client: Client;
  close(): Promise<void>;
}

export interface PastStates {
  /** The newest ones, as many as fit in; oldest first. */
  readonly states: readonly PastState[];
  /** There were older ones. */
  readonly isCut: boolean;
}

/** What a znode was behind a txn. */
export interface PastState {
  readonly zxid: string;
  readonly atMs: number;
  /** 0x0: the server itself. */
  readonly session: string;
  readonly client: string | null;
  readonly change: 'created' | 'changed' | 'deleted' | 'acl';
  readonly version: number | null;
  /** null: it was gone. */
  readonly state: { readonly data: Uint8Array | null; readonly acl: readonly Acl[] } | null;
}

/** One server, and how it is spoken to. */
export interface MonitoredServer {
  readonly host: string;
  readonly port: number;
  /** `host:port`, as it is shown. */
  readonly name: string;
  /** null: without TLS. */
  readonly tls: TlsConnectionOptions | null;
}

/** The admin ports of Meerkat's servers, which answer by HTTP. */
export interface AdminPorts {
  /** With TLS. */
  readonly isSecure: boolean;
  /** @throws NoAnswerError when there is no whole answer */
  ask(server: MonitoredServer, question: AdminQuestion): Promise<AdminAnswer>;
}

export interface AdminQuestion {
  readonly method: 'GET' | 'POST';
  /** Behind /commands/, with its query. */
  readonly command: string;
  /** The header of that name; null: none. */
  readonly authorization: string | null;
  /** The certificate that is shown; null: none, or that of the port's own settings. */
  readonly tls: TlsConnectionOptions | null;
}

export interface AdminAnswer {
  readonly status: number;
  /** {} when it is no JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface ConsoleOptions {
  readonly clusters: readonly ClusterOptions[];
  readonly version: string;
  /** Whether znodes may be changed. Default false. */
  readonly isWritable?: boolean;
  /** What a browser has to show before anything else, from the address that it was given. null: nothing. */
  readonly key?: string | null;
  /** Where the console is below the root, as `/zk`; '' at the root. */
  readonly prefix?: string;
  /** Names under which a browser may ask, besides addresses, localhost and this machine's name. */
  readonly hostNames?: readonly string[];
  /** Znodes that the index of one session and cluster holds at most. Default 1,500,000. */
  readonly indexMax?: number;
}

export const INDEX_MAX = 1_500_000;

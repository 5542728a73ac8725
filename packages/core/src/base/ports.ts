/**
 * The ports: everything that a server needs from its environment.
 *
 * The core is a set of state machines: events come in, effects go out. It has no clock, randomness, socket, file or
 * promise of its own. The real server provides sockets and files, the simulator virtual ones; the core cannot tell the
 * difference.
 *
 * Rules for implementations of a port:
 *
 * 1. An effect returns at once and never calls back into the core before it has returned. Its completion is another
 *    event, delivered later by the host.
 * 2. Events are delivered one at a time; each runs to completion.
 * 3. After delivering one or more events the host calls `ServerCore.onTurnEnd()` once. By then all replies of a turn
 *    have been sent, usually in one write per connection, and all transactions appended during it go to the disk
 *    together.
 * 4. The host drops the completion of something that is already closed.
 */
import type { Acl, Membership } from '@meerkat/protocol';
import type { FileScans } from './file-scans.ts';
import type { Network, PeerAddress, PeerCertificate } from './network.ts';
import type { SnapshotCodec } from './snapshot-codec.ts';
import type { Trace } from './trace.ts';

export {
  type FileScan,
  type FileScanEvents,
  type FileScans,
  SCAN_BYTES_MAX,
  SCAN_MEMORY_BYTES,
  type ScanKind,
  type ScannedChunk,
} from './file-scans.ts';
export type {
  ByteStream,
  ConnectEvents,
  Endpoint,
  ListenEvents,
  Network,
  PeerAddress,
  PeerCertificate,
  StreamEvents,
} from './network.ts';
export type { ByteTransform, Compression, SnapshotCodec } from './snapshot-codec.ts';
export type { Trace, TraceEvent } from './trace.ts';

/** Milliseconds, from two clocks. */
export interface Clock {
  /** Never goes back, nor below 0; its origin is arbitrary. Used for timeouts. */
  monotonicMs(): number;
  /** Wall-clock milliseconds since 1970. Used for ctime and mtime only. */
  wallMs(): number;
}

export interface Random {
  /** An integer of 32 random bits, 0 … 2**32 − 1. */
  uint32(): number;
}

/* --------------------------------------------------------------------------------------------------- disk ---- */

/** An I/O failure: what was attempted, on which file, and the system's error. */
export class DiskError extends Error {
  /** The system's code: ENOSPC, EIO, EACCES, ENOENT … */
  readonly code: string;
  /** The file or directory. */
  readonly path: string;

  constructor(attempted: string, path: string, code: string, cause?: unknown) {
    super(`cannot ${attempted} ${path}: ${code}`, cause === undefined ? undefined : { cause });
    this.name = 'DiskError';
    this.code = code;
    this.path = path;
  }
}

/** The completion of a disk effect, delivered as a separate event. `error` is null on success. */
export type DiskDone<T = void> = (error: DiskError | null, value: T) => void;

export interface DirectoryEntry {
  readonly name: string;
  readonly size: number;
}

/**
 * Files in directories. Paths are opaque: the core only ever joins `directory + '/' + name`.
 *
 * What has been written survives the end of the process; only what has been synced survives a crash of the machine. A
 * new, renamed or removed name is durable once its directory has been synced.
 */
export interface Disk {
  /** Creates the directory and its parents; an existing one is not an error. */
  makeDirectory(path: string, done: DiskDone): void;
  /** Names and sizes of the plain files of a directory, unordered. */
  list(path: string, done: DiskDone<readonly DirectoryEntry[]>): void;
  /** Opens for reading and, unless `readOnly`, writing; ENOENT when it is missing. */
  open(path: string, options: { readonly readOnly: boolean }, done: DiskDone<DiskFile>): void;
  /**
   * Creates an empty file for reading and writing; an existing one is replaced.
   *
   * @param isSyncedOften usually each write is followed by a sync: the host may combine them
   */
  create(path: string, done: DiskDone<DiskFile>, isSyncedOften?: boolean): void;
  rename(source: string, target: string, done: DiskDone): void;
  remove(path: string, done: DiskDone): void;
  /** Makes the names in a directory durable. */
  syncDirectory(path: string, done: DiskDone): void;
  /**
   * Locks a directory for this server; EBUSY when another one has locked it. The lock ends with `release` or with the
   * process, even after kill -9.
   */
  hold(path: string, done: DiskDone): void;
  release(path: string): void;
}

/** An open file. Effects on one file take place in the order of the calls. */
export interface DiskFile {
  readonly path: string;
  /** Size in bytes after all effects requested so far. */
  readonly size: number;
  /**
   * Reads up to `length` bytes; fewer only at the end of the file. The receiver owns the bytes.
   *
   * @param room memory that may be used for them instead of new memory; it belongs to the file until `done`
   */
  read(position: number, length: number, done: DiskDone<Uint8Array>, room?: Uint8Array): void;
  /** Writes all bytes. They belong to the file until `done`. */
  write(position: number, bytes: Uint8Array, done: DiskDone): void;
  /**
   * Writes a few bytes, which are copied; only a failure is reported. Unless other writes to this file are in progress,
   * they are in the kernel before any effect requested later, packets and replies included; so they survive the end of
   * the process.
   */
  note(position: number, bytes: Uint8Array, onFailed: (error: DiskError) => void): void;
  /** Makes everything written so far durable (fdatasync). */
  sync(done: DiskDone): void;
  /** Grows the file with zero bytes up to `size`. */
  preallocate(size: number, done: DiskDone): void;
  truncate(size: number, done: DiskDone): void;
  /** Closes after the effects requested so far. Errors of closing are ignored. */
  close(): void;
}

/* --------------------------------------------------------------------------------------- authentication ---- */

/** An authenticated identity of a connection: `digest` `ann:hash`, `ip` `127.0.0.1`, `super` …. */
export interface Identity {
  readonly scheme: string;
  readonly id: string;
}

/** Result of a step of a SASL exchange. */
export type SaslStep =
  /**
   * The exchange continues with this token. `warning` is for this server's log: why the peer will fail to answer it.
   */
  | { readonly kind: 'challenge'; readonly token: Uint8Array; readonly warning?: string }
  /** The peer has these identities. `token` is null when the mechanism has nothing more to send. */
  | { readonly kind: 'success'; readonly token: Uint8Array | null; readonly identities: readonly Identity[] }
  /** `reason` is for this server's log; it is not sent to the peer. */
  | { readonly kind: 'failure'; readonly reason: string };

/** One SASL exchange with one peer. It shares no mutable state with any other (ZOOKEEPER-4839). */
export interface SaslConversation {
  /** Answers a token of the peer, synchronously. Not called again after a success or a failure. */
  step(token: Uint8Array): SaslStep;
}

/** The initiating side of a SASL exchange between servers. Its success has no identities. */
export interface SaslInitiator extends SaslConversation {
  /** The first token. */
  start(): Uint8Array;
}

/** SASL between servers (`quorum.auth.*`). */
export interface PeerAuthentication {
  /** Servers that do not authenticate successfully are rejected. */
  readonly isRequired: boolean;
  /** For a stream that this server has opened to a host; null: it does not authenticate. */
  startInitiator(host: string): SaslInitiator | null;
  /**
   * For a stream that another server has opened. The identities of its success have the scheme `host` and are the hosts
   * of the membership that it has proved to be; none where the mechanism authenticates users.
   */
  startAcceptor(remote: PeerAddress): SaslConversation;
}

/** How a failed SASL exchange affects a connection. */
export const SaslFailure = {
  /** AUTHFAILED, and the connection is closed. */
  closes: 0,
  /** SASL is required: SESSIONCLOSEDREQUIRESASLAUTH, and the connection is closed. */
  closesAsRequired: 1,
  /** The connection continues without a SASL identity (`allowSaslFailedClients`). */
  isIgnored: 2,
} as const;
export type SaslFailure = (typeof SaslFailure)[keyof typeof SaslFailure];

/**
 * The passwords with which clients resume their sessions. All servers of an ensemble generate the same passwords, or
 * accept each other's: a session may be resumed at any of them.
 */
export interface SessionPasswords {
  /** 16 bytes. */
  make(sessionId: bigint): Uint8Array;
  /** Compares in constant time. */
  isValid(sessionId: bigint, password: Uint8Array): boolean;
}

/** The schemes of authentication and of ACL entries (AuthenticationProvider); `world` is not one of them. */
export interface Authenticator {
  /** The identities that every connection has from the start: its `ip`, and those of its certificate. */
  initialIdentities(remote: PeerAddress, certificate: PeerCertificate | null): readonly Identity[];
  /**
   * Checks the credentials of an auth packet; `auth` is null when it has none. null refuses them, which closes the
   * connection.
   *
   * @param dataOf reads the data of a znode, synchronously; null when it does not exist
   */
  authenticate(
    scheme: string,
    auth: Uint8Array | null,
    remote: PeerAddress,
    certificate: PeerCertificate | null,
    dataOf?: (path: string) => Uint8Array | null,
  ): readonly Identity[] | null;
  /** True when a refusal by this scheme is not answered, so that the client tries another server. */
  refusesSilently(scheme: string): boolean;
  /** Starts a SASL exchange; null when no login is configured: each token is then answered with null. */
  startSasl(remote: PeerAddress): SaslConversation | null;
  readonly saslFailure: SaslFailure;
  /** False while a connection with these identities may only authenticate (`enforce.auth.enabled`). */
  isAdmitted(identities: readonly Identity[]): boolean;
  /** True when an ACL entry may name this scheme and id. */
  isValidAclId(scheme: string, id: string): boolean;
  /** True when ids of this scheme may replace `auth:` entries (digest, sasl, x509; not ip, not super). */
  isAuthenticatedScheme(scheme: string): boolean;
  /** True when the id of an ACL entry matches an identity of the same scheme. */
  matches(scheme: string, identityId: string, aclId: string): boolean;
  /** True when `matches` is plain equality for this scheme, so that a list can be searched without calling it. */
  isExact(scheme: string): boolean;
  /** Why a server whose ACLs use these schemes must not start; null when it may. */
  refusalOf(schemes: ReadonlySet<string>): string | null;
  /** What whoAmI shows of an identity: the part before ":" of a digest; '' for a scheme without provider. */
  userName(identity: Identity): string;
}

/* --------------------------------------------------------------------------------------------- membership ---- */

/** Persists the memberships of a server (the files of the dynamic configuration). */
export interface MembershipStore {
  /**
   * Makes both durable, atomically: after a crash of the process or machine, a restart finds either these or the
   * previous ones. Called again only after `done`.
   *
   * @param proposed not committed yet; null: none
   */
  keep(committed: Membership, proposed: Membership | null, done: (error: Error | null) => void): void;
}

/* -------------------------------------------------------------------------------------------------- audit ---- */

/** One change of one znode, requested by a client of this server or caused by the end of a session. */
export interface AuditEntry {
  readonly operation:
    | 'create'
    | 'delete'
    | 'setData'
    | 'setAcl'
    | 'reconfig'
    | 'multiOperation'
    | 'ephemeralZNodeDeletionOnSessionCloseOrExpire';
  readonly sessionId: bigint;
  /** null: the server itself. */
  readonly client: { readonly users: readonly string[]; readonly host: string } | null;
  /** The requested path if the operation failed; null for a failed multi, and for a reconfig. */
  readonly path: string | null;
  /** For a create: a `CreateMode`. */
  readonly mode: number | null;
  /** For a setAcl: as requested. */
  readonly acl: readonly Acl[] | null;
  readonly isSuccess: boolean;
}

/** The audit log (`audit.enable`). */
export interface Audit {
  add(entry: AuditEntry): void;
}

/** All dependencies of the core. */
export interface Ports {
  readonly clock: Clock;
  readonly random: Random;
  /** For servers of an ensemble; a standalone server neither listens nor connects. */
  readonly network: Network;
  /** Omitted or null: servers do not authenticate to each other. */
  readonly peerAuthentication?: PeerAuthentication | null;
  readonly disk: Disk;
  /** Omitted or null: compressed snapshots are neither written nor read. */
  readonly snapshotCodec?: SnapshotCodec | null;
  /** Omitted or null: the core reads and checks every byte of its files itself. */
  readonly scans?: FileScans | null;
  readonly authenticator: Authenticator;
  /** Omitted: Apache's formula. */
  readonly sessionPasswords?: SessionPasswords;
  /** Omitted or null: after a restart a server uses the membership of its configuration. */
  readonly membershipStore?: MembershipStore | null;
  /** Omitted or null: no audit log. */
  readonly audit?: Audit | null;
  readonly trace: Trace;
}

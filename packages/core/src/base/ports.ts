/**
 * The ports: everything that a server needs from the world around it, and nothing else.
 *
 * The core is a set of state machines: events come in, effects go out. It has no clock, randomness, socket, file or
 * promise of its own. The real server gives it sockets and files; the simulator gives it virtual ones; the core cannot
 * tell the difference.
 *
 * Rules for whoever implements a port:
 *
 * 1. An effect returns at once and never calls back into the core before it has returned. Its completion is another
 *    event, delivered later by the host.
 * 2. Events are delivered one at a time; each runs to its end.
 * 3. After delivering one or several events the host calls `ServerCore.onTurnEnd()` once. All replies of a turn have left
 *    then, in one write per connection as a rule, and all transactions appended during it go to the disk together.
 * 4. A completion that belongs to something already closed is dropped by the host.
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
  /** Never goes back, nor below 0; its origin means nothing. Decides timeouts. */
  monotonicMs(): number;
  /** Wall-clock milliseconds since 1970. Becomes ctime and mtime; decides nothing. */
  wallMs(): number;
}

export interface Random {
  /** An integer of 32 random bits, 0 … 2**32 − 1. */
  uint32(): number;
}

/* --------------------------------------------------------------------------------------------------- disk ---- */

/** The world failed: what was attempted, on which file, and what the system said. */
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

/** The completion of an effect on the disk; delivered as an event of its own. `error` null means done. */
export type DiskDone<T = void> = (error: DiskError | null, value: T) => void;

export interface DirectoryEntry {
  readonly name: string;
  readonly size: number;
}

/**
 * Files in directories. Paths are opaque: the core joins `directory + '/' + name` and nothing else.
 *
 * What has been written is safe against the end of the process; only what has been synced is safe against the end of
 * the machine. A new, renamed or removed name is safe once its directory has been synced.
 */
export interface Disk {
  /** Creates the directory and its parents; one that exists is no error. */
  makeDirectory(path: string, done: DiskDone): void;
  /** Names and sizes of the plain files of a directory, in no order. */
  list(path: string, done: DiskDone<readonly DirectoryEntry[]>): void;
  /** Opens for reading and, unless `readOnly`, writing; ENOENT when it is missing. */
  open(path: string, options: { readonly readOnly: boolean }, done: DiskDone<DiskFile>): void;
  /**
   * Creates an empty file for reading and writing; an existing one is replaced.
   *
   * @param isSyncedOften a sync follows each write, as a rule: the host may do both in one
   */
  create(path: string, done: DiskDone<DiskFile>, isSyncedOften?: boolean): void;
  rename(source: string, target: string, done: DiskDone): void;
  remove(path: string, done: DiskDone): void;
  /** Makes the names in a directory durable. */
  syncDirectory(path: string, done: DiskDone): void;
  /**
   * Holds a directory for this server alone; EBUSY when another one holds it. The hold ends with `release` and does
   * not outlive the process, kill -9 included.
   */
  hold(path: string, done: DiskDone): void;
  release(path: string): void;
}

/** An open file. Effects on one file take place in the order in which they were asked for. */
export interface DiskFile {
  readonly path: string;
  /** Size in bytes, as it will be once the effects asked for so far have taken place. */
  readonly size: number;
  /**
   * Reads up to `length` bytes; fewer only at the end of the file. The bytes are the receiver's.
   *
   * @param room where they may be put instead of in new memory, which need not happen; it belongs to the file until `done`
   */
  read(position: number, length: number, done: DiskDone<Uint8Array>, room?: Uint8Array): void;
  /** Writes all bytes. They belong to the file until `done`. */
  write(position: number, bytes: Uint8Array, done: DiskDone): void;
  /**
   * Writes a few bytes, which are copied; only a failure is told. They are with the kernel before anything else that is
   * asked for from here on, packets and replies included, unless other writes to this file are under way; so they outlive
   * the process.
   */
  note(position: number, bytes: Uint8Array, onFailed: (error: DiskError) => void): void;
  /** Makes everything written so far durable (fdatasync). */
  sync(done: DiskDone): void;
  /** Grows the file with zero bytes up to `size`. */
  preallocate(size: number, done: DiskDone): void;
  truncate(size: number, done: DiskDone): void;
  /** Closes after the effects asked for so far. Errors of closing are of no interest. */
  close(): void;
}

/* --------------------------------------------------------------------------------------- authentication ---- */

/** Somebody that a connection has shown to be: `digest` `ann:hash`, `ip` `127.0.0.1`, `super` …. */
export interface Identity {
  readonly scheme: string;
  readonly id: string;
}

/** What a step of a SASL exchange comes to. */
export type SaslStep =
  /** The exchange goes on with this token. `warning` is for the log of this server: why the peer will not be able to answer it. */
  | { readonly kind: 'challenge'; readonly token: Uint8Array; readonly warning?: string }
  /** The peer is known as these. `token` is null when the mechanism has nothing more to say. */
  | { readonly kind: 'success'; readonly token: Uint8Array | null; readonly identities: readonly Identity[] }
  /** `reason` is for the log of this server; the peer is not told. */
  | { readonly kind: 'failure'; readonly reason: string };

/** One SASL exchange with one peer. It shares nothing that changes with any other (ZOOKEEPER-4839). */
export interface SaslConversation {
  /** Answers a token of the peer, at once. Not called again after a success or a failure. */
  step(token: Uint8Array): SaslStep;
}

/** The end of a SASL exchange that begins it, between servers. Its success has no identities. */
export interface SaslInitiator extends SaslConversation {
  /** The first token. */
  start(): Uint8Array;
}

/** SASL between servers (`quorum.auth.*`). */
export interface PeerAuthentication {
  /** Servers that do not authenticate, or fail to, are not let in. */
  readonly isRequired: boolean;
  /** For a stream that this server has opened to a host; null: it does not authenticate itself. */
  startInitiator(host: string): SaslInitiator | null;
  /**
   * For a stream that another server has opened. The identities of its success are the hosts of the membership that it has proved
   * to be, of the scheme `host`; none where the exchange is about users.
   */
  startAcceptor(remote: PeerAddress): SaslConversation;
}

/** What a failed SASL exchange means to a connection. */
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
 * The passwords with which clients go on with their sessions. Every server of an ensemble makes the same, or accepts what the
 * others make: a session may go on at any of them.
 */
export interface SessionPasswords {
  /** 16 bytes. */
  make(sessionId: bigint): Uint8Array;
  /** The time it takes tells nothing about where a wrong password differs. */
  isValid(sessionId: bigint, password: Uint8Array): boolean;
}

/** The schemes of authentication and of ACL entries (AuthenticationProvider); `world` is not one of them. */
export interface Authenticator {
  /** What every connection is from the start: its `ip`, and what its certificate says. */
  initialIdentities(remote: PeerAddress, certificate: PeerCertificate | null): readonly Identity[];
  /**
   * Checks what an auth packet offers; `auth` is null when it offers nothing. null refuses it, which closes the connection.
   *
   * @param dataOf the data of a znode, to be read at once; null when there is none
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
  /** Starts a SASL exchange; null when there is no login to check it with: each token is answered with none. */
  startSasl(remote: PeerAddress): SaslConversation | null;
  readonly saslFailure: SaslFailure;
  /** False while a connection with these identities may do nothing but authenticate (`enforce.auth.enabled`). */
  isAdmitted(identities: readonly Identity[]): boolean;
  /** True when an ACL entry may name this scheme and id. */
  isValidAclId(scheme: string, id: string): boolean;
  /** True when ids of this scheme may stand in for `auth:` entries (digest, sasl, x509; not ip, not super). */
  isAuthenticatedScheme(scheme: string): boolean;
  /** True when an identity of the same scheme is meant by the id of an ACL entry. */
  matches(scheme: string, identityId: string, aclId: string): boolean;
  /** True when `matches` is equality with this scheme, so that a list can be looked through without it. */
  isExact(scheme: string): boolean;
  /** Why a server must not start whose ACLs name these schemes; null when it may. */
  refusalOf(schemes: ReadonlySet<string>): string | null;
  /** What whoAmI shows of an identity: the part before ":" of a digest; '' of a scheme without provider. */
  userName(identity: Identity): string;
}

/* --------------------------------------------------------------------------------------------- membership ---- */

/** Where a server keeps which memberships it follows (the files of the dynamic configuration). */
export interface MembershipStore {
  /**
   * Makes both durable; whenever the process or the machine ends, a restart finds these or the ones before. Called again
   * only after `done`.
   *
   * @param proposed not committed yet; null: there is none
   */
  keep(committed: Membership, proposed: Membership | null, done: (error: Error | null) => void): void;
}

/* -------------------------------------------------------------------------------------------------- audit ---- */

/** One change of one znode that a client of this server has asked for, or that the end of a session has made. */
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
  /** null: the server has done it by itself. */
  readonly client: { readonly users: readonly string[]; readonly host: string } | null;
  /** As it was asked for when that has failed; null of a multi that has failed, and of a reconfig. */
  readonly path: string | null;
  /** Of a create: a number of `CreateMode`. */
  readonly mode: number | null;
  /** Of a setAcl: as it was asked for. */
  readonly acl: readonly Acl[] | null;
  readonly isSuccess: boolean;
}

/** Who has changed what (`audit.enable`). */
export interface Audit {
  add(entry: AuditEntry): void;
}

/** Everything that the core is given. */
export interface Ports {
  readonly clock: Clock;
  readonly random: Random;
  /** Of servers of an ensemble; one of its own listens to nobody and connects to nobody. */
  readonly network: Network;
  /** Left out or null: servers do not authenticate to each other. */
  readonly peerAuthentication?: PeerAuthentication | null;
  readonly disk: Disk;
  /** Left out or null: compressed snapshots are neither written nor read. */
  readonly snapshotCodec?: SnapshotCodec | null;
  /** Left out or null: the core reads and checks every byte of its files itself. */
  readonly scans?: FileScans | null;
  readonly authenticator: Authenticator;
  /** Left out: by Apache's formula. */
  readonly sessionPasswords?: SessionPasswords;
  /** Left out or null: after a restart a server knows the membership of its configuration. */
  readonly membershipStore?: MembershipStore | null;
  /** Left out or null: nothing is audited. */
  readonly audit?: Audit | null;
  readonly trace: Trace;
}

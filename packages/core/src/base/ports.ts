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

/** Milliseconds, from two clocks. */
export interface Clock {
  /** Never goes back; its origin means nothing. Decides timeouts. */
  monotonicMs(): number;
  /** Wall-clock milliseconds since 1970. Becomes ctime and mtime; decides nothing. */
  wallMs(): number;
}

export interface Random {
  /** An integer of 32 random bits, 0 … 2**32 − 1. */
  uint32(): number;
}

/* ------------------------------------------------------------------------------------------------ network ---- */

/** Where the other end of a stream is. */
export interface PeerAddress {
  /** 4 or 16 bytes; a v4 address that arrived mapped into v6 is given as 4 bytes. */
  readonly ip: Uint8Array;
  /** The same as text, without brackets. */
  readonly host: string;
  readonly port: number;
}

/** Who a certificate says that its owner is. */
export interface PeerCertificate {
  /** The distinguished name as RFC 2253 writes it, the last part first: `CN=ann,O=Example`. */
  readonly subject: string;
  /** The other names, each behind its kind: `DNS:a.example`, `URI:…`, `email:…`, `IP:…`. */
  readonly alternativeNames: readonly string[];
}

/** A stream of bytes to one peer: first in, first out, until it breaks. */
export interface ByteStream {
  readonly remote: PeerAddress;
  /**
   * True of a stream that was accepted although others have taken all room that the host has for its kind. One that is of
   * no use is to be closed in its place, or this one.
   */
  readonly isCrowding?: boolean;
  /** What the peer has shown when it connected, checked by the host; null or left out: nothing. */
  readonly certificate?: PeerCertificate | null;
  /**
   * Of a server that has connected: the hosts of the membership that its certificate names. It may come as the members at
   * these hosts and as no other. Null or left out: names are not checked.
   */
  readonly certifiedHosts?: readonly string[] | null;
  /** True when it is encrypted (TLS). Left out: it is not. */
  readonly isSecure?: boolean;
  /** Bytes given to `write` that the peer's kernel has not accepted yet. */
  readonly queuedBytes: number;
  /**
   * Sends bytes. While `queuedBytes` is not 0 afterwards, the bytes belong to the stream until `onDrain`;
   * when it is 0, they have left and the caller may use the memory again.
   */
  write(bytes: Uint8Array): void;
  /** Closes after everything written so far has left. `onClosed` follows. */
  end(): void;
  /** Closes at once; what is queued is lost. `onClosed` follows. */
  destroy(): void;
  /** No `onBytes` until `resume`. Bytes then queue in the kernels and at last stop the peer. */
  pause(): void;
  resume(): void;
}

/** What a stream tells its owner. */
export interface StreamEvents {
  /** Bytes arrived. The chunk is the receiver's to keep; nobody writes to it again. */
  onBytes(chunk: Uint8Array): void;
  /** Everything queued has left. */
  onDrain(): void;
  /** The stream is gone, told once; nothing follows. `reason` is for people: "closed by peer", "ECONNRESET". */
  onClosed(reason: string): void;
  /**
   * True while more of an answer follows in later turns, then `end`: a peer that has closed its own end of the stream still
   * reads. Left out or false: such a stream is closed once what was written has left.
   */
  readonly isAnswering?: boolean;
  /** The peer has closed its own end while `isAnswering`. */
  onHalfClosed?(): void;
}

/** Where somebody listens. */
export interface Endpoint {
  /** A name, resolved anew at each attempt, or an address. */
  readonly host: string;
  readonly port: number;
}

export interface ListenEvents {
  onListening(): void;
  /** Nobody can connect; told instead of `onListening`, or when listening ends by itself. */
  onListenFailed(reason: string): void;
  onAccepted(stream: ByteStream): StreamEvents;
}

export interface ConnectEvents {
  onConnected(stream: ByteStream): StreamEvents;
  /** There is no connection. `reason` is for people: "refused", "unknown host", "ETIMEDOUT". */
  onConnectFailed(reason: string): void;
}

/** Streams to and from other servers. */
export interface Network {
  /** @returns ends the listening; streams that were accepted live on */
  listen(at: Endpoint, events: ListenEvents): { close(): void };
  /** Tries once. @returns gives up: nothing is told any more, and a stream that opens meanwhile is destroyed */
  connect(to: Endpoint, events: ConnectEvents): { cancel(): void };
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
  /** Creates an empty file for reading and writing; an existing one is replaced. */
  create(path: string, done: DiskDone<DiskFile>): void;
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
  /** The exchange goes on with this token. */
  | { readonly kind: 'challenge'; readonly token: Uint8Array }
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
  /** For a stream that another server has opened. */
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

/* -------------------------------------------------------------------------------------------------- trace ---- */

/** What happened, for logs, metrics and checkers; nothing in the core depends on who listens. */
export type TraceEvent =
  /** By one of `LIMITS`; so many since this was told last. */
  | { readonly kind: 'limit-reached'; readonly limit: string; readonly reason: string; readonly refused: number }
  | { readonly kind: 'connection-refused'; readonly remote: PeerAddress; readonly reason: string }
  | { readonly kind: 'connection-opened'; readonly remote: PeerAddress }
  | {
      readonly kind: 'connection-closed';
      readonly remote: PeerAddress;
      readonly sessionId: bigint;
      readonly reason: string;
    }
  | {
      readonly kind: 'session-created';
      readonly sessionId: bigint;
      readonly timeoutMs: number;
      readonly remote: PeerAddress;
    }
  | {
      readonly kind: 'session-resumed';
      readonly sessionId: bigint;
      readonly timeoutMs: number;
      readonly remote: PeerAddress;
    }
  | {
      readonly kind: 'session-refused';
      readonly sessionId: bigint;
      readonly remote: PeerAddress;
      readonly reason: string;
    }
  | {
      readonly kind: 'session-expired';
      readonly sessionId: bigint;
      readonly timeoutMs: number;
      readonly isLocal?: true;
    }
  | { readonly kind: 'session-closed'; readonly sessionId: bigint }
  /** A request was answered with an error that says less than this. */
  | {
      readonly kind: 'request-refused';
      readonly remote: PeerAddress;
      readonly sessionId: bigint;
      readonly reason: string;
    }
  /** `reason` is null when the scheme does not tell it. */
  | {
      readonly kind: 'auth-failed';
      readonly remote: PeerAddress;
      readonly scheme: string;
      readonly reason: string | null;
    }
  | { readonly kind: 'recovery-progress'; readonly message: string }
  | {
      readonly kind: 'recovered';
      readonly lastZxid: number;
      readonly znodes: number;
      readonly sessions: number;
      /** Of the log, replayed. */
      readonly txns: number;
      /** Milliseconds that the snapshot took, and the log behind it. */
      readonly snapshotMs: number;
      readonly replayMs: number;
    }
  | {
      readonly kind: 'log-tail-cut';
      readonly file: string;
      readonly position: number;
      readonly reason: string;
      /** Name of the file that has what was cut; null when there was nothing. */
      readonly kept: string | null;
    }
  | { readonly kind: 'log-file-started'; readonly file: string }
  | { readonly kind: 'log-synced'; readonly txns: number; readonly bytes: number; readonly syncMs: number }
  | { readonly kind: 'snapshot-started'; readonly file: string }
  | { readonly kind: 'snapshot-written'; readonly file: string; readonly bytes: number; readonly ms: number }
  | { readonly kind: 'snapshot-failed'; readonly file: string; readonly error: Error }
  | { readonly kind: 'files-purged'; readonly files: readonly string[] }
  | { readonly kind: 'digest-mismatch'; readonly zxid: number; readonly expected: bigint; readonly actual: bigint }
  | { readonly kind: 'quota-exceeded'; readonly path: string; readonly limit: string; readonly isHard: boolean }
  | { readonly kind: 'warning'; readonly message: string }
  /** Good news that an operator waits for. */
  | { readonly kind: 'notice'; readonly message: string }
  /** A server of an ensemble does something else from now on; `leader` is null while it is looking for one. */
  | {
      readonly kind: 'role-changed';
      readonly role: 'looking' | 'leading' | 'following' | 'observing';
      readonly leader: number | null;
      readonly reason: string;
    }
  /** A server that finds no leader answers reads alone, or no more. */
  | { readonly kind: 'read-only-changed'; readonly isReadOnly: boolean }
  /** Another membership is proposed, or in force from now on; this server need not be a member of it. */
  | {
      readonly kind: 'membership-changed';
      readonly committed: Membership;
      /** null when there is none. */
      readonly proposed: Membership | null;
    }
  /** Leader and quorum, or this learner and its leader, have synchronized: clients are served in this epoch. */
  | { readonly kind: 'epoch-established'; readonly epoch: number; readonly zxid: number }
  /** A leader has given a txn its zxid and sent it to its followers. */
  | { readonly kind: 'proposed'; readonly zxid: number }
  /** A leader's quorum holds everything up to here; on a learner, its leader has said so. */
  | { readonly kind: 'committed'; readonly zxid: number }
  | {
      readonly kind: 'learner-synchronizing';
      readonly serverId: number;
      readonly mode: 'diff' | 'trunc' | 'snap';
      /** Where the learner was, and where the history that it is sent begins. */
      readonly from: number;
      readonly zxid: number;
    }
  | { readonly kind: 'learner-synchronized'; readonly serverId: number; readonly zxid: number }
  | { readonly kind: 'learner-closed'; readonly serverId: number | null; readonly reason: string }
  /** The server can go on no longer: `error` says why and what to do. Nothing is acknowledged after this. */
  | { readonly kind: 'failed'; readonly error: Error };

export interface Trace {
  emit(event: TraceEvent): void;
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
  readonly authenticator: Authenticator;
  /** Left out: by Apache's formula. */
  readonly sessionPasswords?: SessionPasswords;
  /** Left out or null: after a restart a server knows the membership of its configuration. */
  readonly membershipStore?: MembershipStore | null;
  /** Left out or null: nothing is audited. */
  readonly audit?: Audit | null;
  readonly trace: Trace;
}

import { checkRange } from './bounds.ts';
import { type Clock, SYSTEM_CLOCK, SYSTEM_RANDOM } from './clock.ts';
import { parseConnectString } from './connect-string.ts';
import type { Data } from './data.ts';
import type { BackOff } from './machine/dialer.ts';
import type { HostPort, Random } from './machine/ports.ts';
import type { SessionIdentity } from './machine/session-ports.ts';
import type { SaslMechanism } from './session-host.ts';
import type { TlsOptions } from './transport/node-transport.ts';
import type { Transport } from './transport/transport.ts';

/** How to connect. Times are milliseconds. */
export interface ConnectOptions {
  /** `host:port,host:port/chroot`, or a list. Default port: 2181. */
  readonly servers: string | readonly (string | HostPort)[];
  /** All paths are below this znode, which is not created. Default: none. */
  readonly chroot?: string | undefined;
  /** How long the service keeps a silent client's session. The server moves it into its limits. Default 10,000. */
  readonly sessionTimeoutMs?: number | undefined;
  /** How long `connect` tries before it rejects. Default: the session timeout. */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * How long one address is tried. Default: a third of the session timeout, divided by the number of servers, at least
   * 1000.
   */
  readonly attemptTimeoutMs?: number | undefined;
  /** `minMs` and `maxMs` of the pauses between attempts. Default: 100 and 2000. */
  readonly backOff?: BackOff | undefined;
  /** An AbortSignal that aborts `connect`. */
  readonly signal?: AbortSignal | undefined;
  /** Credentials for each connection: a list of `{ scheme, auth }`. */
  readonly auth?: readonly { readonly scheme: string; readonly auth: Data }[] | undefined;
  /** `digestMd5({ username, password })`, `kerberos()`, or your own. */
  readonly sasl?: SaslMechanism | undefined;
  /** Options of Node's `tls.connect`, or a function called for each connection. Default: plain TCP. */
  readonly tls?: TlsOptions | undefined;
  /** Accepts a server without a quorum, for reads, and looks on for one with a quorum. Default false. */
  readonly canBeReadOnly?: boolean | undefined;
  /** A session to continue: `client.session` of another process. */
  readonly session?: SessionIdentity | undefined;
  /** Longest request that the servers take, their jute.maxbuffer. Bytes. Default 1,048,575. */
  readonly requestBytesMax?: number | undefined;
  /** Longest reply that is accepted. Bytes. Default 128 MiB. */
  readonly replyBytesMax?: number | undefined;
  /** A `Transport` instead of sockets; `tls` is then ignored. */
  readonly transport?: Transport | undefined;
  /** A `Clock` instead of this machine's. */
  readonly clock?: Clock | undefined;
  /** A `Random` instead of this process's. */
  readonly random?: Random | undefined;
}

export const DEFAULT_SESSION_TIMEOUT_MS = 10_000;

const DEFAULT_BACK_OFF: BackOff = { minMs: 100, maxMs: 2000 };
const ATTEMPT_TIMEOUT_MIN_MS = 1000;
const SESSION_TIMEOUT_MS_MAX = 2 ** 31 - 1;
/** jute.maxbuffer's default, 0xfffff. */
const DEFAULT_REQUEST_BYTES_MAX = 0xfffff;
const DEFAULT_REPLY_BYTES_MAX = 128 * 1024 * 1024;

/** `ConnectOptions` with every default filled in. */
export interface Settings {
  readonly hosts: readonly HostPort[];
  /** '' for none. */
  readonly chroot: string;
  readonly sessionTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly attemptTimeoutMs: number;
  readonly backOff: BackOff;
  readonly canBeReadOnly: boolean;
  readonly requestBytesMax: number;
  readonly replyBytesMax: number;
  readonly clock: Clock;
  readonly random: Random;
}

/** @throws BadArgumentsError for invalid servers or an invalid chroot; RangeError for invalid numbers */
export function settle(options: ConnectOptions): Settings {
  const { hosts, chroot } = parseConnectString(options.servers, options.chroot);
  const sessionTimeoutMs = options.sessionTimeoutMs ?? DEFAULT_SESSION_TIMEOUT_MS;
  const settings = {
    hosts,
    chroot,
    sessionTimeoutMs,
    connectTimeoutMs: options.connectTimeoutMs ?? sessionTimeoutMs,
    // When a silent connection is abandoned, the session has a third of its timeout left to find another server.
    attemptTimeoutMs: options.attemptTimeoutMs ?? Math.max(ATTEMPT_TIMEOUT_MIN_MS, sessionTimeoutMs / 3 / hosts.length),
    backOff: options.backOff ?? DEFAULT_BACK_OFF,
    canBeReadOnly: options.canBeReadOnly ?? false,
    requestBytesMax: options.requestBytesMax ?? DEFAULT_REQUEST_BYTES_MAX,
    replyBytesMax: options.replyBytesMax ?? DEFAULT_REPLY_BYTES_MAX,
    clock: options.clock ?? SYSTEM_CLOCK,
    random: options.random ?? SYSTEM_RANDOM,
  };
  // It is sent as 32 bits; higher ones would be cut off.
  checkRange('sessionTimeoutMs', sessionTimeoutMs, 0, SESSION_TIMEOUT_MS_MAX);
  checkRange('connectTimeoutMs', settings.connectTimeoutMs, 0);
  checkRange('attemptTimeoutMs', settings.attemptTimeoutMs, 1);
  checkRange('backOff.minMs', settings.backOff.minMs, 0);
  checkRange('backOff.maxMs', settings.backOff.maxMs, 0);
  checkRange('requestBytesMax', settings.requestBytesMax, 1);
  checkRange('replyBytesMax', settings.replyBytesMax, 1);
  return settings;
}

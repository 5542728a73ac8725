import type { Clock, PeerAddress, Trace, TraceEvent } from '@meerkat/core';
import type { LogFields, Logger, LogLevel } from './logger.ts';

/**
 * Turns what happens in the core into log lines that name the peer and the reason.
 *
 * Lines about single connections are the only ones that strangers can cause at will; of those at most
 * `CONNECTION_LINES_MAX` a second are written, and then how many were left out.
 */
export class TraceLog implements Trace {
  readonly #logger: Logger;
  readonly #clock: Clock;
  /** The event being logged, for the field `event` of its lines. */
  #event = '';
  #second = 0;
  #linesInSecond = 0;
  #linesLeftOut = 0;
  /** Warnings that have just been said, and when they may be said again. */
  readonly #saidUntilMs = new Map<string, number>();

  /** Per reason of refused connections: the second of its last line, and how many were not logged since. */
  readonly #refusals = new Map<string, { second: number; more: number }>();

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  emit(event: TraceEvent): void {
    this.#event = event.kind === 'epoch-established' ? 'ready' : event.kind;
    switch (event.kind) {
      case 'connection-refused': {
        const [prefix] = OF_A_SERVER.exec(event.reason) ?? [];
        const isOfServer = prefix !== undefined;
        const level = isOfServer && isOrdinary(event.reason.slice(prefix.length)) ? 'debug' : 'warn';
        const more = level === 'debug' ? 0 : this.#refusalsBefore(event.reason);
        if (more === null) break;
        const text = `refused: ${event.reason}${more === 0 ? '' : ` (and ${more} more before)`}`;
        this.#logConnection(level, event.remote, text, { reason: event.reason }, isOfServer);
        break;
      }
      case 'connection-closed': {
        // A client that leaves closes its session first; one that did not may be missed, and its session expires.
        const isLost = event.sessionId !== 0n && LOST.has(event.reason);
        const level = isLost ? 'info' : isOrdinary(event.reason) ? 'debug' : 'warn';
        const session = event.sessionId === 0n ? '' : ` of session ${formatSession(event.sessionId)}`;
        const fields = { session: formatSession(event.sessionId), reason: event.reason };
        this.#logConnection(level, event.remote, `closed${session}: ${event.reason}`, fields);
        break;
      }
      case 'session-created':
      case 'session-resumed': {
        const what = event.kind === 'session-created' ? 'begins' : 'resumes';
        const text = `${what} session ${formatSession(event.sessionId)}, timeout ${event.timeoutMs} ms`;
        this.#logConnection('debug', event.remote, text, { session: formatSession(event.sessionId) });
        break;
      }
      case 'session-refused': {
        const text = `gets no session ${formatSession(event.sessionId)}: ${event.reason}`;
        this.#logConnection('info', event.remote, text, { reason: event.reason });
        break;
      }
      case 'request-refused': {
        const session = formatSession(event.sessionId);
        const text = `of session ${session} is refused a request: ${event.reason}`;
        this.#logConnection('warn', event.remote, text, { session, reason: event.reason });
        break;
      }
      case 'auth-failed':
        this.#logConnection(
          'warn',
          event.remote,
          `failed to authenticate by "${event.scheme}"${event.reason === null ? '' : `: ${event.reason}`}`,
          { scheme: event.scheme },
        );
        break;
      case 'limit-reached': {
        const { limit, reason, refused } = event;
        const often = refused === 1 ? '' : ` (${refused} refusals since the line before)`;
        this.#log('warn', `a limit is reached: ${reason}${often}`, { limit, reason, refused });
        break;
      }
      case 'session-expired': {
        const session = formatSession(event.sessionId);
        this.#log('info', `session ${session} has expired: nothing received from it for ${event.timeoutMs} ms`, {
          session,
          timeoutMs: event.timeoutMs,
        });
        break;
      }
      case 'recovery-progress':
      case 'notice':
        this.#log('info', event.message);
        break;
      case 'recovered': {
        const { lastZxid, znodes, sessions, txns } = event;
        const counts = `${znodes} znodes, ${sessions} sessions, ${txns} txns replayed`;
        this.#log('info', `recovered up to zxid 0x${lastZxid.toString(16)}: ${counts}`, { znodes, sessions, txns });
        break;
      }
      case 'log-tail-cut': {
        const { file, position, reason, kept } = event;
        const cut = `${file} was cut at ${position}: ${reason}`;
        const why =
          'a crash leaves that of its last write, which was not acknowledged; if nothing crashed, look at the disk';
        this.#log('warn', kept === null ? cut : `${cut}. ${why}. What was cut is kept as ${kept}`, { file, position });
        break;
      }
      case 'log-file-started':
        this.#log('debug', `log file ${event.file} started`, { file: event.file });
        break;
      case 'snapshot-started':
        this.#log('debug', `snapshot ${event.file} started`, { file: event.file });
        break;
      case 'snapshot-written': {
        const { file, bytes, ms } = event;
        this.#log('info', `snapshot ${file} written: ${bytes} bytes in ${Math.round(ms)} ms`, { file, bytes, ms });
        break;
      }
      case 'snapshot-failed':
        this.#log('error', `snapshot ${event.file} failed, and the log continues without it: ${event.error.message}`, {
          file: event.file,
        });
        break;
      case 'purge-started':
      case 'purge-ended':
        this.#log(
          'debug',
          event.kind === 'purge-started' ? 'the purge of old files begins' : 'the purge of old files is over',
        );
        break;
      case 'files-purged':
        for (const file of event.files) this.#log('info', `purge: removed ${file}`, { file });
        break;
      case 'digest-mismatch': {
        const { zxid, expected, actual } = event;
        const found = `expected digest ${expected}, found ${actual}`;
        this.#log('error', `the tree differs from what was logged at zxid 0x${zxid.toString(16)}: ${found}`, { zxid });
        break;
      }
      case 'quota-exceeded': {
        const { path, limit, isHard } = event;
        const text = `${isHard ? 'a write was refused: ' : ''}the quota of ${path} is exceeded: ${limit}`;
        this.#log('warn', text, { path });
        break;
      }
      case 'role-changed':
        this.#log('info', describeRole(event), { role: event.role });
        break;
      case 'read-only-changed':
        if (event.isReadOnly) this.#log('warn', 'has found no leader: answers only reads, of clients that take that');
        else this.#log('info', 'answers reads alone no more: there is a leader');
        break;
      case 'epoch-established': {
        const { epoch, zxid } = event;
        this.#log('info', `epoch ${epoch} is established: clients are served`, { epoch, zxid });
        break;
      }
      case 'learner-synchronizing': {
        const { serverId, mode, from, zxid } = event;
        const isReplaced = mode === 'snap' && from > zxid;
        const what = `server ${serverId} is at zxid 0x${from.toString(16)} and ${describeSync(mode, zxid)}`;
        const doubt =
          ' in place of txns that this leader does not know: was its data directory that of another ensemble?';
        this.#log(isReplaced ? 'warn' : 'info', `${what}${isReplaced ? doubt : ''}`, { serverId, mode, from, zxid });
        break;
      }
      case 'catching-up': {
        const { leader, mode, zxid } = event;
        this.#log('info', `server ${leader} ${describeCatchingUp(mode, zxid)}`, { leader, mode, zxid });
        break;
      }
      case 'learner-synchronized': {
        const { serverId, zxid } = event;
        this.#log('info', `server ${serverId} has the history up to zxid 0x${zxid.toString(16)}`, { serverId });
        break;
      }
      case 'learner-closed': {
        // Strangers can cause these at will, too.
        if (event.serverId === null && this.#isFlooded()) break;
        const who = event.serverId === null ? 'a server that had not said who it is' : `server ${event.serverId}`;
        this.#log('info', `${who} has left this leader: ${event.reason}`);
        break;
      }
      case 'election-started':
        this.#log('debug', `an election begins; this server is at zxid 0x${event.zxid.toString(16)}`, {
          zxid: event.zxid,
        });
        break;
      case 'peer-lost': {
        const { serverId, reason } = event;
        // Strangers that say to be servers can cause these.
        if (this.#isFlooded()) break;
        this.#log('info', `the connection to server ${serverId} for elections has ended: ${reason}`, {
          serverId,
          reason,
        });
        break;
      }
      case 'warning':
        this.#logWarning(event.message);
        break;
      case 'connection-opened':
      case 'session-closed':
      case 'log-synced':
      case 'proposed':
      case 'committed':
      case 'membership-changed':
        // Counted by metrics, or covered by another line; a line for each would be noise.
        break;
      case 'failed':
        // Reported once by the host of the server, with what to do about it.
        break;
      default:
        event satisfies never;
    }
  }

  /**
   * Limits the lines about a reason to one a second.
   *
   * @returns how many refusals were skipped since the last line; null: skip this one, too
   */
  #refusalsBefore(reason: string): number | null {
    const second = Math.floor(this.#clock.monotonicMs() / 1000);
    const last = this.#refusals.get(reason);
    if (last?.second === second) {
      last.more++;
      return null;
    }
    if (this.#refusals.size >= SAID_MAX) this.#refusals.clear();
    this.#refusals.set(reason, { second, more: 0 });
    return last?.more ?? 0;
  }

  /** Limits warnings that every packet of another server would repeat. */
  #logWarning(message: string): void {
    const beginning = message.slice(0, SAID_CHARACTERS);
    const nowMs = this.#clock.monotonicMs();
    for (const [said, untilMs] of this.#saidUntilMs) if (untilMs <= nowMs) this.#saidUntilMs.delete(said);
    if (this.#saidUntilMs.has(beginning)) return;
    if (this.#saidUntilMs.size < SAID_MAX) this.#saidUntilMs.set(beginning, nowMs + SAID_MS);
    else if (this.#isFlooded()) return;
    this.#log('warn', message);
  }

  #log(level: LogLevel, message: string, fields?: LogFields): void {
    this.#logger.log(level, message, { event: this.#event, ...fields });
  }

  #logConnection(level: LogLevel, remote: PeerAddress, what: string, fields: LogFields, isOfServer = false): void {
    if (level !== 'debug' && this.#isFlooded()) return;
    const peer = remote.ip.length === 4 ? `${remote.host}:${remote.port}` : `[${remote.host}]:${remote.port}`;
    this.#logger.log(level, `${isOfServer ? 'connection from' : 'client'} ${peer} ${what}`, {
      event: this.#event,
      peer,
      ...fields,
    });
  }

  #isFlooded(): boolean {
    const second = Math.floor(this.#clock.monotonicMs() / 1000);
    if (second !== this.#second) {
      if (this.#linesLeftOut > 0) this.#log('warn', `${this.#linesLeftOut} more lines about connections were left out`);
      this.#second = second;
      this.#linesInSecond = 0;
      this.#linesLeftOut = 0;
    }
    this.#linesInSecond++;
    if (this.#linesInSecond <= CONNECTION_LINES_MAX) return false;
    this.#linesLeftOut++;
    return true;
  }
}

function describeRole({ role, leader, reason }: TraceEvent & { readonly kind: 'role-changed' }): string {
  switch (role) {
    case 'looking':
      return `looks for a leader: ${reason}`;
    case 'leading':
      return `leads: ${reason}`;
    case 'following':
      return `follows server ${leader}: ${reason}`;
    case 'observing':
      return `observes server ${leader}: ${reason}`;
  }
}

function describeSync(mode: 'diff' | 'trunc' | 'snap', zxid: number): string {
  switch (mode) {
    case 'diff':
      return 'is sent what follows';
    case 'trunc':
      return `has to truncate its log to zxid 0x${zxid.toString(16)}`;
    case 'snap':
      return `is sent a snapshot of zxid 0x${zxid.toString(16)}`;
  }
}

function describeCatchingUp(mode: 'diff' | 'trunc' | 'snap', zxid: number): string {
  switch (mode) {
    case 'diff':
      return 'sends the txns that this server has not got';
    case 'trunc':
      return `demands that the log is truncated to zxid 0x${zxid.toString(16)}`;
    case 'snap':
      return `sends a snapshot of zxid 0x${zxid.toString(16)}`;
  }
}

/** Prefixes of reasons about a connection from a peer that is, or claims to be, another server. */
const OF_A_SERVER = /^(on the election port|between servers): /;

/** Milliseconds for which the same warning is not said again, and how many are remembered. */
const SAID_MS = 60_000;
const SAID_MAX = 100;
/** Characters by which a warning is known: another server may have written the rest. */
const SAID_CHARACTERS = 2000;

/** Lines about single connections written in a second. */
const CONNECTION_LINES_MAX = 100;

/** Ends that belong to everyday life: the client left, or asked a four-letter word, or came while there is no leader. */
function isOrdinary(reason: string): boolean {
  return ORDINARY_REASONS.has(reason) || ORDINARY_BEGINNINGS.some((beginning) => reason.startsWith(beginning));
}

const ORDINARY_BEGINNINGS: readonly string[] = [
  // One line covers all of them.
  'a limit of this server is reached: ',
  'it asked "',
  'the server has lost its leader',
  // There may be thousands of these, and one warning covers all of them.
  'there are as many connections of clients as the descriptors',
  'it has not identified itself, and the descriptors',
];

/** Ends of connections that have not closed their session before. */
const LOST: ReadonlySet<string> = new Set(['closed by peer', 'reset by peer']);

const ORDINARY_REASONS: ReadonlySet<string> = new Set([
  'its clients are sent to other servers',
  'it closed the connection during the TLS handshake',
  // A warning has said why.
  'authentication by SASL failed',
  'closed by peer',
  'reset by peer',
  'its session is closed',
  'its session has moved to another connection',
  'the server is stopping',
  'the server is not serving yet',
]);

function formatSession(sessionId: bigint): string {
  return `0x${BigInt.asUintN(64, sessionId).toString(16)}`;
}

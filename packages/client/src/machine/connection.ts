import {
  AddWatchMode,
  type AddWatchRequest,
  ErrorCode,
  Fifo,
  JuteReader,
  OpCode,
  type Request,
  SpecialXid,
  WatcherType,
} from '@meerkat/protocol';
import { Call, type CallFailure, type FailureKind } from './call.ts';
import type { Credentials } from './credentials.ts';
import type { Outbox } from './outbox.ts';
import { type MultiResult, readNothing } from './replies.ts';
import type { Timing } from './timing.ts';
import type { WatchListener } from './watch-listener.ts';
import type { Watches } from './watches.ts';

/** Called once: null for success. */
export type Settle = (failure: CallFailure | null) => void;

/** Events of a connection for its session. */
export interface ConnectionEvents {
  /** Every reply shows how far the server is; called when that exceeds all earlier ones. */
  onZxidSeen(zxid: number): void;
  onCredentialsRefused(): void;
  /** A request was refused because the session is over, or about to be. */
  onSessionExpired(): void;
  onRearmed(): void;
  /** The server has not armed the watches: changes would not be reported. The connection is unusable. */
  onRearmRefused(code: number): void;
  /** The server sent invalid data: the connection is unusable. */
  onBadReply(what: string): void;
  /** Everything that was sent has been answered. */
  onIdle(): void;
}

export interface ConnectionParts {
  readonly outbox: Outbox;
  readonly timing: Timing;
  readonly watches: Watches;
  /** host:port, for people. */
  readonly serverName: string;
  /** Longest request frame that servers accept. Bytes. */
  readonly requestBytesMax: number;
  readonly replyBytesMax: number;
}

/**
 * The traffic of one connection after its handshake: requests go out, replies and events come in, in order.
 *
 *     send ──► [ in flight: 7 6 5 ] ──► reply 5 settles the oldest
 *
 * Replies with special xids (events −1, pings −2, credentials −4, watches −8) interleave with the others; each kind is
 * answered in the order in which it was sent.
 */
export class Connection {
  readonly #outbox: Outbox;
  readonly #timing: Timing;
  readonly #watches: Watches;
  readonly #serverName: string;
  readonly #requestBytesMax: number;
  readonly #events: ConnectionEvents;
  readonly #reader: JuteReader;
  readonly #inFlight: Fifo<Call> = new Fifo();
  readonly #pings: Fifo<{ readonly sentAtMs: number; readonly settle: Settle | null }> = new Fifo();
  readonly #sentCredentials: Fifo<Credentials> = new Fifo();
  #nextXid = 1;
  #lastZxid = 0;
  #rearmsInFlight = 0;
  #isModeProbeSent = false;
  /** Of persistent and recursive watches, of any path. */
  #removals = 0;

  constructor(parts: ConnectionParts, events: ConnectionEvents) {
    this.#outbox = parts.outbox;
    this.#timing = parts.timing;
    this.#watches = parts.watches;
    this.#serverName = parts.serverName;
    this.#requestBytesMax = parts.requestBytesMax;
    this.#reader = new JuteReader(undefined, parts.replyBytesMax);
    this.#events = events;
  }

  get inFlightCount(): number {
    return this.#inFlight.length;
  }

  /* ------------------------------------------------------------------------------------------------ sending ---- */

  send(call: Call): void {
    const { request } = call;
    const xid = this.#nextXid;
    const sent = call.listener === null ? request : this.#asWatched(request);
    let frameBytes: number;
    try {
      frameBytes = this.#outbox.write(xid, sent, this.#requestBytesMax);
    } catch (error) {
      this.#takeBack(call);
      call.fail('malformed-request', this.#serverName, error instanceof Error ? error.message : String(error));
      return;
    }
    if (frameBytes > this.#requestBytesMax) {
      this.#takeBack(call);
      const detail = `the request takes ${frameBytes} bytes, servers take ${this.#requestBytesMax}`;
      call.fail('request-too-large', this.#serverName, detail);
      return;
    }
    this.#nextXid = xid === XID_MAX ? 1 : xid + 1;
    call.xid = xid;
    call.sentAtMs = this.#timing.sentAtMs;
    call.coveredAt = sent !== request && request.op !== OpCode.addWatch ? this.#removals : -1;
    this.#inFlight.push(call);
    if (request.op === OpCode.addWatch && this.#watches.keepsModes === null) this.#sendModeProbe(request.path);
  }

  sendCredentials(credentials: Credentials): void {
    this.#sentCredentials.push(credentials);
    const { scheme, auth } = credentials;
    this.#outbox.write(SpecialXid.auth, { op: OpCode.auth, scheme, auth });
  }

  sendPing(settle: Settle | null): void {
    this.#outbox.write(SpecialXid.ping, { op: OpCode.ping });
    this.#pings.push({ sentAtMs: this.#timing.sentAtMs, settle });
  }

  /** Arms all watches of the session; `onRearmed` follows, unless there are none. */
  rearmWatches(lastZxid: number): void {
    this.#lastZxid = lastZxid;
    if (this.#watches.isEmpty) return;
    const requests = this.#watches.rearmRequests(lastZxid);
    this.#rearmsInFlight = requests.length;
    for (const request of requests) this.#outbox.write(SpecialXid.setWatches, request);
    const lasting = requests.flatMap((request) => [
      ...request.persistentWatches,
      ...request.persistentRecursiveWatches,
    ]);
    if (lasting.length > 0) this.#sendModeProbe(lasting[0]!);
  }

  /** Removes a listener, and its watch from the server when it was the last. */
  removeWatch(kind: 'persistent' | 'recursive', path: string, listener: WatchListener, done: () => void): void {
    const requests = this.#watches.remove(kind, path, listener)
      ? this.#watches.removalRequests(kind, path, this.#lastZxid)
      : [];
    const last = requests.findLast(({ op }) => op === OpCode.removeWatches);
    if (last === undefined) done();
    else this.#removals++;
    for (const request of requests) {
      if (request.op !== OpCode.removeWatches) this.#outbox.write(SpecialXid.setWatches, request);
      else {
        const onAnswered = (): void => {
          if (request !== last) return;
          this.#watches.onRemovalAnswered(request, path);
          done();
        };
        this.send(new Call(request, readNothing, onAnswered, onAnswered, null, false));
      }
    }
  }

  /** Reverts a request that was about to be sent. */
  #takeBack({ request, listener }: Call): void {
    if (request.op === OpCode.addWatch && listener !== null) {
      this.#watches.onAddWatchUnsent(request.path, request.mode);
    }
  }

  /** A request with a watch, in a form that this server supports. */
  #asWatched(request: Request): Request {
    if (request.op === OpCode.addWatch) {
      const mode = this.#watches.onAddWatchSent(request.path, request.mode);
      return mode === request.mode ? request : { ...request, mode };
    }
    return this.#watches.isCovered(request) ? ({ ...request, watch: false } as Request) : request;
  }

  /**
   * Probes, after the first persistent watch of a connection, whether the server keeps the modes of a path separate.
   * One that does knows the watcher type "recursive"; an older one cannot decode the request and says so.
   */
  #sendModeProbe(path: string): void {
    if (this.#isModeProbeSent) return;
    this.#isModeProbeSent = true;
    const request: Request = { op: OpCode.checkWatches, path, watcherType: WatcherType.persistentRecursive };
    const onRefused = (failure: CallFailure): void => {
      if (failure.kind === 'refused') this.#watches.keepsModes = failure.code === ErrorCode.noWatcher;
    };
    const onFound = (): void => {
      this.#watches.keepsModes = true;
    };
    this.send(new Call(request, readNothing, onFound, onRefused, null, false));
  }

  /* ----------------------------------------------------------------------------------------------- receiving ---- */

  onFrame(bytes: Uint8Array, start: number, end: number): void {
    const reader = this.#reader;
    reader.reset(bytes, start, end);
    const xid = reader.int();
    if (xid === SpecialXid.notification) {
      this.#onNotification(reader);
      return;
    }
    const zxid = reader.longClamped();
    const code = reader.int();
    if (reader.failed) {
      this.#events.onBadReply('a reply without a header');
      return;
    }
    switch (xid) {
      case SpecialXid.ping:
        this.#onPingReply();
        return;
      case SpecialXid.auth:
        this.#onAuthReply(code);
        return;
      case SpecialXid.setWatches:
        // An overloaded server refuses, too (THROTTLEDOP).
        if (code !== ErrorCode.ok) this.#events.onRearmRefused(code);
        else if (this.#rearmsInFlight > 0 && --this.#rearmsInFlight === 0) this.#events.onRearmed();
        return;
      default:
        this.#onReply(xid, zxid, code, reader);
    }
  }

  /** @param reader positioned after the header */
  #onReply(xid: number, zxid: number, code: number, reader: JuteReader): void {
    const call = this.#inFlight.peek();
    if (call === undefined || call.xid !== xid) {
      const due = call === undefined ? 'none' : `that to ${call.xid}`;
      this.#events.onBadReply(`a reply to request ${xid} where ${due} was due`);
      return;
    }
    this.#inFlight.shift();
    if (zxid > this.#lastZxid) {
      this.#lastZxid = zxid;
      this.#events.onZxidSeen(zxid);
    }
    this.#timing.onAnswered(call.sentAtMs);
    if (call.listener !== null) {
      const { request } = call;
      if (request.op === OpCode.addWatch) this.#watches.onAddWatchAnswered(request.path, request.mode);
      if (!call.isSettled) this.#watches.onReply(request, code, call.listener);
      if (request.op === OpCode.addWatch && (call.isSettled || code !== ErrorCode.ok)) {
        this.#onVoidWatch(request);
      } else if (call.coveredAt >= 0 && 'path' in request) this.#armUncovered(request.path, call.coveredAt);
    }
    const refusal = call.isSettled ? code : this.#settle(call, code, reader);
    if (refusal === ErrorCode.sessionExpired) this.#events.onSessionExpired();
    else if (this.#inFlight.length === 0) this.#events.onIdle();
  }

  /** @returns why the server has refused it: the code of the reply, or of the operation that ended a multi */
  #settle(call: Call, code: number, reader: JuteReader): number {
    call.isSettled = true;
    if (code !== ErrorCode.ok) {
      call.reject({ kind: 'refused', code, server: this.#serverName });
      return code;
    }
    const result = call.read(reader);
    if (reader.failed) {
      const detail = 'the record of the reply is cut off or malformed';
      call.reject({ kind: 'bad-reply', wasSent: true, server: this.#serverName, detail });
      return code;
    }
    (call.resolve as (result: unknown) => void)(result);
    return call.request.op === OpCode.multi ? refusalOf(result as readonly MultiResult[]) : code;
  }

  /**
   * A call with a persistent watch was cancelled or refused. A watch that exists nevertheless is removed, and covers
   * nothing.
   */
  #onVoidWatch(request: AddWatchRequest): void {
    const kind = request.mode === AddWatchMode.persistentRecursive ? 'recursive' : 'persistent';
    if (this.#watches.has(kind, request.path)) return;
    this.#watches.add(kind, request.path, NO_LISTENER);
    this.removeWatch(kind, request.path, NO_LISTENER, () => {});
  }

  /**
   * Arms a one-shot watch that was left to a persistent one when it was sent and is no longer covered: changes since
   * the reply were not reported, and a watch that was added since does not report earlier changes. The same if the
   * server turns out to keep modes separate: a recursive watch does not report children that this client may not read.
   */
  #armUncovered(path: string, coveredAt: number): void {
    const isCovered = coveredAt === this.#removals && this.#watches.hasLasting(path);
    if (isCovered && this.#watches.keepsModes !== true) return;
    for (const request of this.#watches.rearmRequestsOf(path, this.#lastZxid)) {
      this.#outbox.write(SpecialXid.setWatches, request);
    }
  }

  #onNotification(reader: JuteReader): void {
    const zxid = reader.longBig();
    reader.int();
    const type = reader.int();
    reader.int();
    const path = reader.ustring();
    if (reader.failed || path === null) {
      this.#events.onBadReply('a malformed notification');
      return;
    }
    // This zxid does not show what has been seen: other changes may precede it.
    this.#watches.onEvent(type, path, zxid >= 0n ? zxid : null);
  }

  #onPingReply(): void {
    const ping = this.#pings.shift();
    if (ping === undefined) return;
    this.#timing.onAnswered(ping.sentAtMs);
    ping.settle?.(null);
  }

  #onAuthReply(code: number): void {
    const credentials = this.#sentCredentials.shift();
    if (code === ErrorCode.ok) {
      credentials?.settleOnce(null);
      return;
    }
    const detail = `${this.#serverName} refused the credentials (code ${code})`;
    credentials?.settleOnce({ kind: 'auth-failed', wasSent: true, server: this.#serverName, detail });
    this.#events.onCredentialsRefused();
  }

  /* ------------------------------------------------------------------------------------------------- its end ---- */

  /** The oldest request in flight makes the server send invalid data: it is not retried. */
  rejectOldest(what: string): void {
    const call = this.#inFlight.peek();
    if (call !== undefined) call.fail('bad-reply', this.#serverName, `${this.#serverName} sent ${what}`);
  }

  /** The stream is gone. @returns the requests that may be retried; the others, and pings, have failed */
  end(kind: FailureKind, reason: string): Call[] {
    for (const { settle } of this.#pings.takeAll()) {
      settle?.({ kind, wasSent: true, server: this.#serverName, detail: reason });
    }
    const again: Call[] = [];
    for (const call of this.#inFlight.takeAll()) {
      if (call.isSettled) continue;
      call.losses++;
      if (kind === 'connection-lost' && call.isRepeatable && call.losses < LOSSES_MAX) again.push(call);
      else call.fail(kind, this.#serverName, reason);
      call.xid = 0;
    }
    return again;
  }
}

function refusalOf(results: readonly MultiResult[]): number {
  for (const result of results) if (!result.ok && result.code !== ErrorCode.ok) return result.code;
  return ErrorCode.ok;
}

const XID_MAX = 0x7fffffff;
/** Connections that a repeatable request may survive: it may be the reason why the server closes them. */
export const LOSSES_MAX = 5;

/** The placeholder for a listener that is gone. */
const NO_LISTENER: WatchListener = {
  onWatchEvent() {},
  onWatchSuspended() {},
  onWatchRearmed() {},
  onWatchEnded() {},
};

/**
 * A session machine in a world that the test controls: it opens streams, answers frames and moves the clock. The data
 * from the "server" is built byte by byte here, not by the encoder under test.
 */
import type { Request } from '@meerkat/protocol';
import { Call, type CallFailure } from '../call.ts';
import type { FailedAttempt, HostPort, Target } from '../ports.ts';
import { isRepeatable, replyReaderOf } from '../replies.ts';
import { Session } from '../session.ts';
import type { SessionOptions } from '../session-ports.ts';
import type { StateChange } from '../state.ts';
import type { WatchEvent, WatchListener } from '../watch-listener.ts';

/** Big-endian bytes, written by hand. */
export class Bytes {
  readonly list: number[] = [];

  byte(value: number): this {
    this.list.push(value & 0xff);
    return this;
  }
  int(value: number): this {
    return this.byte(value >> 24)
      .byte(value >> 16)
      .byte(value >> 8)
      .byte(value);
  }
  long(value: bigint | number): this {
    const whole = BigInt.asUintN(64, BigInt(value));
    return this.int(Number(whole >> 32n) | 0).int(Number(whole & 0xffff_ffffn) | 0);
  }
  buffer(bytes: Uint8Array | readonly number[] | null): this {
    if (bytes === null) return this.int(-1);
    this.int(bytes.length);
    this.list.push(...bytes);
    return this;
  }
  text(text: string): this {
    return this.buffer(new TextEncoder().encode(text));
  }
  stat(mzxid: number, version = 0): this {
    return this.long(1).long(mzxid).long(5).long(6).int(version).int(0).int(0).long(0).int(2).int(0).long(7);
  }
  frame(): Uint8Array {
    return new Uint8Array([...new Bytes().int(this.list.length).list, ...this.list]);
  }
}

/** One frame that the client sent. */
export interface SentFrame {
  readonly xid: number;
  readonly op: number;
  /** After the RequestHeader. */
  readonly body: Uint8Array;
}

export interface Outcome {
  result: unknown;
  failure: CallFailure | null;
  isSettled: boolean;
}

export class Watcher implements WatchListener {
  readonly received: string[] = [];
  onWatchEvent(event: WatchEvent): void {
    this.received.push(`${event.type} ${event.path}${event.zxid === null ? '' : ` ${event.zxid}`}`);
  }
  onWatchSuspended(): void {
    this.received.push('suspended');
  }
  onWatchRearmed(sameSession: boolean): void {
    this.received.push(sameSession ? 'rearmed' : 'rearmed on a new session');
  }
  onWatchEnded(reason: string): void {
    this.received.push(`ended ${reason}`);
  }
}

export const PASSWORD: readonly number[] = Array.from({ length: 16 }, (_, i) => i + 1);

export const TEST_OPTIONS: SessionOptions = {
  hosts: [{ host: 'one', port: 2181 }],
  sessionTimeoutMs: 9000,
  attemptTimeoutMs: 3000,
  backOff: { minMs: 100, maxMs: 1000 },
  canBeReadOnly: false,
  session: null,
  credentials: [],
  sasl: null,
  requestBytesMax: 1000,
  replyBytesMax: 100_000,
};

export class ScriptedWorld {
  nowMs = 1000;
  readonly session: Session;
  readonly states: StateChange[] = [];
  readonly attempts: FailedAttempt[] = [];
  readonly stalls: number[] = [];
  /** When the session reported that it may be over. */
  readonly unsureAtMs: number[] = [];
  /** When it reported that it is being closed. */
  readonly closingAtMs: number[] = [];
  /** Bytes sent by then and not taken by the test. */
  sentBytesAtClosing = 0;
  readonly probes: HostPort[] = [];
  /** Streams that the session requested, in order. */
  readonly opened: Target[] = [];
  isOpen = false;
  addresses: readonly string[] | null = ['10.0.0.1'];
  #sent: number[] = [];
  #isFlushAsked = false;

  constructor(options: Partial<SessionOptions> = {}) {
    this.session = new Session(
      { ...TEST_OPTIONS, ...options },
      { monotonicMs: () => this.nowMs },
      { uint32: () => 0 },
      {
        resolve: () => this.#later(() => this.session.onResolved(this.addresses, 'no such name')),
        open: (target) => {
          this.opened.push(target);
          this.isOpen = true;
        },
        write: (bytes) => {
          for (const byte of bytes) this.#sent.push(byte);
          return true;
        },
        closeStream: () => {
          this.isOpen = false;
        },
        flushSoon: () => {
          this.#isFlushAsked = true;
        },
        probe: (host) => this.probes.push(host),
      },
      {
        onState: (change) => this.states.push(change),
        onAttemptFailed: (attempt) => this.attempts.push(attempt),
        onUnsure: () => this.unsureAtMs.push(this.nowMs),
        onClosing: () => {
          this.closingAtMs.push(this.nowMs);
          this.sentBytesAtClosing = this.#sent.length;
        },
        onStall: (ms) => this.stalls.push(ms),
      },
    );
  }

  readonly #events: (() => void)[] = [];

  #later(event: () => void): void {
    this.#events.push(event);
  }

  /** Delivers lookups and flushes until nothing is left to do. */
  run(): void {
    for (;;) {
      const event = this.#events.shift();
      if (event !== undefined) event();
      else if (this.#isFlushAsked) {
        this.#isFlushAsked = false;
        this.session.flush();
      } else return;
    }
  }

  /** Moves the clock, calling onTick at every deadline on the way. */
  advance(ms: number): void {
    const endMs = this.nowMs + ms;
    for (;;) {
      const deadlineMs = this.session.nextDeadlineMs();
      if (deadlineMs > endMs) break;
      this.nowMs = Math.max(this.nowMs, deadlineMs);
      this.session.onTick();
      this.run();
    }
    this.nowMs = endMs;
  }

  /** Dials, opens the stream and takes the ConnectRequest. */
  open(): Uint8Array {
    this.run();
    this.#sent = [];
    this.session.onOpened();
    return this.takeBytes();
  }

  /** A connection with a session. */
  connect(sessionId = 0x77, timeoutMs = 9000): void {
    if (this.states.length === 0 && this.opened.length === 0) this.session.start();
    this.open();
    this.acceptSession(sessionId, timeoutMs);
  }

  acceptSession(sessionId: bigint | number = 0x77, timeoutMs = 9000, isReadOnly = false): void {
    this.receive(
      new Bytes()
        .int(0)
        .int(timeoutMs)
        .long(sessionId)
        .buffer(PASSWORD)
        .byte(isReadOnly ? 1 : 0)
        .frame(),
    );
  }

  refuseSession(): void {
    this.receive(new Bytes().int(0).int(0).long(0).buffer(new Uint8Array(16)).byte(0).frame());
  }

  receive(bytes: Uint8Array): void {
    this.session.onBytes(bytes);
    this.run();
  }

  reply(xid: number, zxid: number, code: number, body: Bytes = new Bytes()): void {
    this.receive(replyBytes(xid, zxid, code, body));
  }

  notify(type: number, path: string, zxid = -1): void {
    this.reply(-1, zxid, 0, new Bytes().int(type).int(3).text(path));
  }

  close(detail = 'closed by the server'): void {
    this.isOpen = false;
    this.session.onStreamClosed(null, detail);
    this.run();
  }

  submit(request: Request, listener: WatchListener | null = null): Outcome & { readonly call: Call } {
    const outcome: Outcome = { result: undefined, failure: null, isSettled: false };
    const call = new Call(
      request,
      replyReaderOf(request),
      (result: unknown) => {
        Object.assign(outcome, { result, isSettled: true });
      },
      (failure) => {
        Object.assign(outcome, { failure, isSettled: true });
      },
      listener,
      isRepeatable(request),
    );
    this.session.calls.submit(call);
    return Object.assign(outcome, { call });
  }

  takeBytes(): Uint8Array {
    this.run();
    const bytes = new Uint8Array(this.#sent);
    this.#sent = [];
    return bytes;
  }

  /** The frames sent since the last call. */
  takeFrames(): SentFrame[] {
    const bytes = this.takeBytes();
    const view = new DataView(bytes.buffer);
    const frames: SentFrame[] = [];
    for (let at = 0; at < bytes.length; ) {
      const length = view.getInt32(at);
      frames.push({
        xid: view.getInt32(at + 4),
        op: view.getInt32(at + 8),
        body: bytes.slice(at + 12, at + 4 + length),
      });
      at += 4 + length;
    }
    return frames;
  }

  get stateNames(): string[] {
    return this.states.map(({ state }) => state);
  }
}

export function replyBytes(xid: number, zxid: number, code: number, body: Bytes = new Bytes()): Uint8Array {
  const frame = new Bytes().int(xid).long(zxid).int(code);
  frame.list.push(...body.list);
  return frame.frame();
}

import {
  type ConnectResponse,
  EMPTY_BYTES,
  getInt,
  JuteReader,
  JuteWriter,
  PASSWORD_BYTES,
  type ReplyHeader,
  type Request,
  readConnectResponse,
  readReplyHeader,
  readWatcherEvent,
  SpecialXid,
  type WatcherEvent,
  writeConnectRequest,
  writeRequest,
} from '@meerkat/protocol';
import type { CoreOptions } from '../base/options.ts';
import { DEFAULT_CORE_OPTIONS } from '../base/options.ts';
import type { Authenticator, ByteStream, Clock, PeerAddress, StreamEvents, TraceEvent } from '../base/ports.ts';
import type { FourLetterWords } from '../base/server-view.ts';
import { ServerCore } from '../server-core.ts';
import { MemoryDisk } from '../storage/memory-disk.ts';
import { NO_NETWORK } from './no-network.ts';
import { PLAIN_AUTHENTICATOR } from './plain-authenticator.ts';

/** A clock that only a test advances. */
export class ManualClock implements Clock {
  nowMs = 1_000_000;
  monotonicMs(): number {
    return this.nowMs;
  }
  wallMs(): number {
    return 1_700_000_000_000 + this.nowMs;
  }
}

/** What a client has received, in order of arrival. */
export type Arrival =
  | { readonly kind: 'session'; readonly response: ConnectResponse }
  | { readonly kind: 'reply'; readonly header: ReplyHeader; readonly body: Uint8Array }
  | { readonly kind: 'event'; readonly zxid: number; readonly event: WatcherEvent }
  | { readonly kind: 'closed' };

/** A client at the other end of an in-memory stream. */
export class TestClient implements ByteStream {
  readonly remote: PeerAddress;
  readonly isCrowding: boolean;
  readonly arrivals: Arrival[] = [];
  /** While true the client reads nothing: what is sent queues. */
  isDeaf = false;
  queuedBytes = 0;
  isPaused = false;
  session: { id: bigint; password: Uint8Array } | null = null;
  lastXid = 0;
  readonly #events: StreamEvents | undefined;
  #input: Uint8Array = EMPTY_BYTES;
  #isConnected = false;
  #isClosed = false;
  #held: Uint8Array[] = [];

  /** @param isCrowding it exceeds the host's limit */
  constructor(core: Pick<ServerCore, 'onStreamOpened'>, host = '10.0.0.1', isCrowding = false) {
    this.isCrowding = isCrowding;
    this.remote = { ip: new Uint8Array(host.split('.').map(Number)), host, port: 40_000 };
    this.#events = core.onStreamOpened(this);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The server has announced that more of an answer follows. */
  get isAwaiting(): boolean {
    return this.#events?.isAnswering === true;
  }

  write(bytes: Uint8Array): void {
    if (this.#isClosed) return;
    if (this.isDeaf) {
      this.#held.push(bytes.slice());
      this.queuedBytes += bytes.length;
      return;
    }
    this.#take(bytes);
  }

  /** Reads what queued while it was deaf. */
  listen(): void {
    this.isDeaf = false;
    const held = this.#held;
    this.#held = [];
    this.queuedBytes = 0;
    for (const bytes of held) this.#take(bytes);
    this.#events?.onDrain();
  }

  end(): void {
    this.destroy();
  }

  destroy(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.arrivals.push({ kind: 'closed' });
    this.#events?.onClosed('closed');
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }

  /** The client's process has ended. */
  drop(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#events?.onClosed('dropped');
  }

  sendBytes(bytes: Uint8Array): void {
    this.#events?.onBytes(bytes);
  }

  connect(
    options: { timeoutMs?: number; session?: { id: bigint; password: Uint8Array }; lastZxidSeen?: number } = {},
  ): void {
    const writer = new JuteWriter();
    const at = writer.beginFrame();
    writeConnectRequest(writer, {
      protocolVersion: 0,
      lastZxidSeen: options.lastZxidSeen ?? 0,
      timeoutMs: options.timeoutMs ?? 10_000,
      sessionId: options.session?.id ?? 0n,
      password: options.session?.password ?? new Uint8Array(PASSWORD_BYTES),
      readOnly: false,
      hasReadOnlyByte: true,
    });
    writer.endFrame(at);
    this.sendBytes(writer.toBytes());
  }

  /** @returns the xid of the request */
  send(request: Request, xid: number = ++this.lastXid): number {
    const writer = new JuteWriter();
    writeFrame(writer, request, xid);
    this.sendBytes(writer.toBytes());
    return xid;
  }

  /** Several requests that arrive in one piece. */
  sendTogether(requests: readonly Request[]): void {
    const writer = new JuteWriter();
    for (const request of requests) writeFrame(writer, request, ++this.lastXid);
    this.sendBytes(writer.toBytes());
  }

  /** Everything that arrived since the last call. */
  takeArrivals(): Arrival[] {
    return this.arrivals.splice(0);
  }

  #take(bytes: Uint8Array): void {
    const whole = new Uint8Array(this.#input.length + bytes.length);
    whole.set(this.#input);
    whole.set(bytes, this.#input.length);
    let position = 0;
    while (whole.length - position >= 4) {
      const length = getInt(whole, position);
      if (whole.length - position - 4 < length) break;
      this.#onFrame(new JuteReader(whole.slice(position + 4, position + 4 + length)));
      position += 4 + length;
    }
    this.#input = whole.slice(position);
  }

  #onFrame(reader: JuteReader): void {
    if (!this.#isConnected) {
      this.#isConnected = true;
      const response = readConnectResponse(reader);
      if (response.timeoutMs > 0) this.session = { id: response.sessionId, password: response.password };
      this.arrivals.push({ kind: 'session', response });
      return;
    }
    const header = readReplyHeader(reader);
    if (header.xid === SpecialXid.notification) {
      this.arrivals.push({ kind: 'event', zxid: header.zxid, event: readWatcherEvent(reader) });
    } else {
      this.arrivals.push({ kind: 'reply', header, body: reader.bytes.slice(reader.position) });
    }
  }
}

function writeFrame(writer: JuteWriter, request: Request, xid: number): void {
  const at = writer.beginFrame();
  writer.int(xid);
  writer.int(request.op);
  writeRequest(writer, request);
  writer.endFrame(at);
}

/** A server's core with a memory disk and a manual clock; `run` delivers what is due. */
export class TestServer {
  readonly clock: ManualClock;
  readonly disk: MemoryDisk;
  readonly trace: TraceEvent[] = [];
  readonly core: ServerCore;
  readonly fourLetterWords: FourLetterWords = {
    isWord: (word) => word === 'ruok',
    hasArgument: () => false,
    answer: () => 'imok',
  };
  isServing = false;
  /** While true no effect on the disk completes. */
  isDiskHeld = false;
  isStopped = false;
  failure: Error | null = null;

  constructor(
    options: Partial<CoreOptions> = {},
    disk: MemoryDisk = new MemoryDisk(),
    clock: ManualClock = new ManualClock(),
    authenticator: Authenticator = PLAIN_AUTHENTICATOR,
  ) {
    this.clock = clock;
    this.disk = disk;
    let random = 0;
    this.core = new ServerCore(
      {
        clock,
        random: { uint32: () => (random = (random + 0x9e3779b9) >>> 0) },
        network: NO_NETWORK,
        disk,
        authenticator,
        trace: { emit: (event) => this.trace.push(event) },
      },
      {
        ...DEFAULT_CORE_OPTIONS,
        snapshotDirectory: '/data/version-2',
        logDirectory: '/data/version-2',
        tickTimeMs: 1000,
        sessionTimeoutMinMs: 2000,
        sessionTimeoutMaxMs: 20_000,
        connectionsPerHostMax: 0,
        preallocateBytes: 64 * 1024,
        ...options,
      },
      { fourLetterWords: () => this.fourLetterWords },
      {
        onServing: () => {
          this.isServing = true;
        },
        onStopped: () => {
          this.isStopped = true;
        },
        onFailed: (error) => {
          this.failure = error;
        },
      },
    );
    this.core.start();
    this.run();
  }

  /** Ends the turn, delivers disk completions and immediate timers of the core, until nothing is left to do. */
  run(): void {
    do {
      this.core.onTurnEnd();
    } while ((!this.isDiskHeld && this.disk.deliver()) || this.core.nextDeadlineMs() === 0);
  }

  /** Lets time pass in steps of 100 ms. */
  advance(ms: number): void {
    for (let passed = 0; passed < ms; passed += 100) {
      this.clock.nowMs += Math.min(100, ms - passed);
      if (this.clock.nowMs >= this.core.nextDeadlineMs()) this.core.onTick();
      this.run();
    }
  }

  open(host?: string, isCrowding?: boolean): TestClient {
    return new TestClient(this.core, host, isCrowding);
  }

  /** A client with a session. */
  connect(timeoutMs = 10_000): TestClient {
    const client = this.open();
    client.connect({ timeoutMs });
    this.run();
    client.takeArrivals();
    return client;
  }

  stop(): void {
    this.core.stop();
    this.run();
  }
}

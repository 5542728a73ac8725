import { Fifo } from '@meerkat/protocol';
import type { CoreOptions } from '../base/options.ts';
import type { ByteStream } from '../base/ports.ts';
import type { WorkMeter } from '../request/work-meter.ts';
import type { AnswerGate } from './answer-gate.ts';
import { ClientConnection } from './client-connection.ts';
import type { ConnectionEvents, ConnectionHost } from './connection-host.ts';
import { LargeRequests } from './large-requests.ts';
import { Strangers } from './strangers.ts';
import { UntakenReplies } from './untaken-replies.ts';

type Limits = Pick<
  CoreOptions,
  'limits' | 'multiReadBytesMax' | 'connectionsPerHostMax' | 'connectionsMax' | 'sessionlessTimeoutMs' | 'tickTimeMs'
>;

/** All connections of clients: how many there may be, which of them have output, and which wait to be read again. */
export class ClientConnections implements ConnectionEvents<ClientConnection>, Iterable<ClientConnection> {
  readonly gate: AnswerGate;
  readonly #limits: Limits;
  readonly #connections = new Set<ClientConnection>();
  readonly #countOfHost = new Map<string, number>();
  /** Have not asked for a session, nor for anything else. */
  readonly #strangers = new Strangers<ClientConnection>();
  /** Connections with output of this turn. */
  #withOutput: ClientConnection[] = [];
  /** Connections with events, the oldest first. */
  readonly #withEvents: Fifo<ClientConnection> = new Fifo();
  /** Connections that stopped reading until there is less to do. */
  readonly #heldBack = new Set<ClientConnection>();
  /** Came while the server has no role, and wait for it to have one; the oldest first. */
  readonly #awaitingServing = new Set<ClientConnection>();
  /**
   * Go on in one of the next turns, after everybody else: their output was full and has room again, or their share was
   * used. Who has waited for longest comes first.
   */
  readonly #goingOn = new Set<ClientConnection>();
  /** Those that have had their share of this turn. */
  #sated: ClientConnection[] = [];
  readonly #untaken: UntakenReplies<ClientConnection>;
  readonly #large: LargeRequests<ClientConnection>;
  readonly largeRequestBytes: number;
  #turnShare = TURN_UNITS;
  #nextTickMs = 0;
  /** When the first connection that pauses behind a long multi is to be looked at again. */
  #nextPauseEndMs = Number.POSITIVE_INFINITY;

  constructor(limits: Limits, gate: AnswerGate) {
    this.gate = gate;
    this.#limits = limits;
    const { largeRequestBytes, largeRequestsBytesMax } = limits.limits;
    this.largeRequestBytes = largeRequestBytes < 0 ? Number.POSITIVE_INFINITY : largeRequestBytes;
    this.#large = new LargeRequests(largeRequestsBytesMax);
    this.#untaken = new UntakenReplies(UNTAKEN_REPLIES_MAX * limits.multiReadBytesMax);
  }

  /** Those that are open or closing. */
  get all(): ReadonlySet<ClientConnection> {
    return this.#connections;
  }

  [Symbol.iterator](): IterableIterator<ClientConnection> {
    return this.#connections.values();
  }

  /** True while connections have something to do that waits for nothing but the next turn. */
  get hasWork(): boolean {
    return this.#goingOn.size > 0 || (this.#withEvents.length > 0 && this.gate.look());
  }

  /** Units of work that one connection may have of a turn: less when many want more than that. */
  get turnShare(): number {
    return this.#turnShare;
  }

  get turnUnits(): number {
    return TURN_UNITS;
  }

  /** @returns why one more from this host is refused; null when it is welcome */
  refusalOf(host: string): string | null {
    const { connectionsPerHostMax, connectionsMax } = this.#limits;
    if (connectionsPerHostMax > 0 && (this.#countOfHost.get(host) ?? 0) >= connectionsPerHostMax) {
      return `its address has ${connectionsPerHostMax} connections, as many as maxClientCnxns allows`;
    }
    if (connectionsMax > 0 && this.#connections.size >= connectionsMax) {
      return `there are ${connectionsMax} connections, as many as maxCnxns allows`;
    }
    return null;
  }

  open(stream: ByteStream, server: ConnectionHost<ClientConnection>): ClientConnection {
    const connection = new ClientConnection(stream, server);
    const { host } = stream.remote;
    if (this.#connections.size === 0) this.#nextTickMs = server.turn.nowMs() + this.#tickMs;
    this.#connections.add(connection);
    this.#strangers.add(connection, stream.remote);
    this.#countOfHost.set(host, (this.#countOfHost.get(host) ?? 0) + 1);
    return connection;
  }

  /**
   * Ends a connection that has been silent, see `Strangers`.
   *
   * @returns false when there is none
   */
  shedSilent(reason: string): boolean {
    const silent = this.#strangers.choose();
    if (silent === null) return false;
    this.#strangers.delete(silent);
    silent.close(reason);
    return true;
  }

  /** It has asked for a session, or for something else; or it is told why it may not. */
  onAsked(connection: ClientConnection): void {
    this.#strangers.delete(connection);
  }

  onClosed(connection: ClientConnection): void {
    this.#connections.delete(connection);
    this.#strangers.delete(connection);
    this.#heldBack.delete(connection);
    this.#awaitingServing.delete(connection);
    this.#untaken.release(connection);
    this.#large.release(connection);
    const { host } = connection.remote;
    const count = (this.#countOfHost.get(host) ?? 1) - 1;
    if (count === 0) this.#countOfHost.delete(host);
    else this.#countOfHost.set(host, count);
  }

  admitLarge(connection: ClientConnection, bytes: number): boolean {
    return this.#large.admit(connection, bytes);
  }

  onLargeComplete(connection: ClientConnection): void {
    this.#large.onComplete(connection);
  }

  onUntaken(connection: ClientConnection, bytes: number): void {
    this.#untaken.hold(connection, connection.remote, bytes);
    for (let deaf = this.#untaken.shed(); deaf !== null; deaf = this.#untaken.shed()) {
      deaf.close('it does not take what it is sent, and all that clients do not take is more than may stand in memory');
    }
  }

  onTaken(connection: ClientConnection): void {
    this.#untaken.release(connection);
  }

  onOutput(connection: ClientConnection): void {
    this.#withOutput.push(connection);
  }

  onEvents(connection: ClientConnection): void {
    this.#withEvents.push(connection);
  }

  /**
   * What a connection has sent is read to its end. When that makes many with output in one turn, theirs leaves now and
   * not at the end: after a thousand others have been read, what a write touches of a connection, in the kernel as here,
   * has to be fetched from memory again. It saves 1.4 of the 23 µs that an event and the next watch cost with 1,000
   * watchers.
   *
   * Never between two commits: those of one turn answer the same connections again and again, and share a write.
   */
  onRead(): void {
    if (this.#withOutput.length >= OUTPUTS_TOGETHER) this.flush();
  }

  onHeldBack(connection: ClientConnection): void {
    this.#heldBack.add(connection);
  }

  onPause(untilMs: number): void {
    // Turns count in whole milliseconds: within one it would be due and not be over until the next.
    this.#nextPauseEndMs = Math.min(this.#nextPauseEndMs, Math.ceil(untilMs));
  }

  onShareUsed(connection: ClientConnection): void {
    this.#sated.push(connection);
  }

  onAwaitingServing(connection: ClientConnection): void {
    this.#awaitingServing.add(connection);
  }

  /** Clients are served: those that waited for it go on. */
  onServing(): void {
    // Asked in every turn.
    if (this.#awaitingServing.size === 0) return;
    const waiting = [...this.#awaitingServing];
    this.#awaitingServing.clear();
    for (const connection of waiting) connection.resumeReading();
  }

  /**
   * How long a client may wait for this server to have a role, in milliseconds: an election takes less as a rule, and a
   * server that finds no quorum must not keep clients from those that have one.
   */
  get servingWaitMs(): number {
    return this.#limits.tickTimeMs / 4;
  }

  /** Those that wait because this server has too much to do, not because they are silent. */
  get heldBack(): ReadonlySet<ClientConnection> {
    return this.#heldBack;
  }

  /** Monotonic milliseconds at which `onTick` has something to do, at the latest; Infinity without connections. */
  get nextDeadlineMs(): number {
    if (this.#connections.size === 0) return Number.POSITIVE_INFINITY;
    const nextMs = Math.min(this.#nextTickMs, this.#nextPauseEndMs);
    const [oldest] = this.#awaitingServing;
    return oldest === undefined ? nextMs : Math.min(nextMs, oldest.openedMs + this.servingWaitMs);
  }

  /** Ends what has taken too long. */
  onTick(nowMs: number): void {
    for (const connection of this.#awaitingServing) {
      if (nowMs < connection.openedMs + this.servingWaitMs) break;
      this.#awaitingServing.delete(connection);
      connection.resumeReading();
    }
    // Those that pause are held back: `goOn` looks at them in each turn.
    if (nowMs >= this.#nextPauseEndMs) this.#nextPauseEndMs = Number.POSITIVE_INFINITY;
    if (nowMs < this.#nextTickMs) return;
    this.#nextTickMs = nowMs + this.#tickMs;
    for (const connection of this.#connections)
      connection.onTick(nowMs, this.#limits.sessionlessTimeoutMs, this.#tickMs);
  }

  get #tickMs(): number {
    return Math.min(this.#limits.tickTimeMs, this.#limits.sessionlessTimeoutMs);
  }

  /**
   * Reads on where there is room or less to do, before the turn's output leaves: one that has had its share before, and
   * more of them while this turn has not cost what a turn may.
   */
  goOn(work: WorkMeter): void {
    if (this.gate.isShut) this.gate.look();
    let left = this.#goingOn.size;
    for (const connection of this.#goingOn) {
      this.#goingOn.delete(connection);
      connection.onTurn();
      if (--left === 0 || work.turnUnits >= TURN_UNITS) break;
    }
    for (const connection of this.#heldBack) {
      connection.resumeReading();
      if (connection.isReading) this.#heldBack.delete(connection);
    }
  }

  /** Hands the output to the streams, one write each. */
  flush(): void {
    // One look for all: everything that is answered here has come before.
    if (this.#withOutput.length > 0) this.#flush(this.gate.look());
  }

  /** @param mayAnswer false: what clients with a session were answered waits until it may leave */
  #flush(mayAnswer: boolean): void {
    const withOutput = this.#withOutput;
    this.#withOutput = [];
    for (const connection of withOutput) {
      if (!mayAnswer && connection.session !== null) this.#withOutput.push(connection);
      else if (connection.flush()) this.#goingOn.add(connection);
    }
  }

  /**
   * Hands events to the streams that have nothing else to send: of so many connections in a turn that others are not kept
   * waiting when one change is told to thousands. A connection's own output stays in order, whenever it leaves.
   */
  flushEvents(countMax: number = EVENTS_TOGETHER): void {
    if (this.#withEvents.length === 0 || !this.gate.look()) return;
    for (let i = 0; i < countMax && this.#withEvents.length > 0; i++) {
      const connection = this.#withEvents.shift()!;
      if (connection.flushEvents()) this.#goingOn.add(connection);
    }
  }

  /** A turn is over: those that have had their share of it go on in one of the next. */
  onTurnEnd(): void {
    if (this.#large.bytes > 0) this.#large.releaseAnswered();
    const sated = this.#sated;
    if (sated.length > 0) {
      this.#sated = [];
      for (const connection of sated) this.#goingOn.add(connection);
    }
    this.#turnShare = Math.max(TURN_UNITS_MIN, TURN_UNITS / Math.max(1, this.#goingOn.size));
  }

  /**
   * Ends connections that have a session, the oldest first, after what was answered has left: their clients go on elsewhere.
   *
   * @returns how many
   */
  shed(countMax: number, reason: string): number {
    let count = 0;
    for (const connection of [...this.#connections]) {
      if (count >= countMax) break;
      if (connection.session === null || !connection.isOpen) continue;
      connection.closeAfterReplies(reason);
      count++;
    }
    return count;
  }

  /** Ends all of them, after what was answered has left; what may not leave now never does, for it is of a role that ends. */
  closeAfterReplies(reason: string): void {
    const mayAnswer = this.gate.look();
    if (mayAnswer) this.#flush(true);
    const kept = new Set(this.#withOutput);
    for (const connection of [...this.#connections]) {
      if (mayAnswer || connection.session === null) connection.closeAfterReplies(reason);
      else if (connection.isOpen) connection.close(reason);
      else if (kept.has(connection)) connection.abandon();
    }
  }

  /** Ends all of them at once. */
  close(reason: string): void {
    for (const connection of [...this.#connections]) connection.close(reason);
  }
}

/**
 * Units of work, see `WorkMeter`, after which a connection waits for its next turn: somewhat less than a millisecond. A
 * turn with one connection that wants more takes that long, and so do those with many, each of which gets a part, down to
 * the least share: those for which nothing is left wait for another turn. A single request may cost more than that.
 */
const TURN_UNITS = 8192;
const TURN_UNITS_MIN = 512;

/** What clients do not take may be as much as so many of the longest replies to a multiRead. */
const UNTAKEN_REPLIES_MAX = 16;

/**
 * Connections whose output leaves together. With 1,000 watchers 16 saves a little more than 64, and 1 no more; but below
 * 33 it also parts the output of the bench's 32 pipelining connections, whose reads then seem to cost 3 % more.
 */
const OUTPUTS_TOGETHER = 64;

/** Connections whose events leave in a turn: each costs some 10 µs, nearly all of them in the kernel. */
const EVENTS_TOGETHER = 128;

import { Fifo } from '@meerkat/protocol';
import type { CoreOptions } from '../base/options.ts';
import type { ByteStream } from '../base/ports.ts';
import type { WorkMeter } from '../request/work-meter.ts';
import type { AnswerGate } from './answer-gate.ts';
import { ClientConnection } from './client-connection.ts';
import type { ConnectionEvents, ConnectionHost } from './connection-host.ts';
import { LargeRequests } from './large-requests.ts';
import { UnidentifiedConnections } from './unidentified-connections.ts';
import { UnreadReplies } from './unread-replies.ts';

type Limits = Pick<
  CoreOptions,
  'limits' | 'multiReadBytesMax' | 'connectionsPerHostMax' | 'connectionsMax' | 'sessionlessTimeoutMs' | 'tickTimeMs'
>;

/** All client connections: their limits, which of them have output, and which wait to be read again. */
export class ClientConnections implements ConnectionEvents<ClientConnection>, Iterable<ClientConnection> {
  readonly gate: AnswerGate;
  readonly #limits: Limits;
  readonly #connections = new Set<ClientConnection>();
  readonly #countOfHost = new Map<string, number>();
  /** Have not sent a connect request or a four-letter word yet. */
  readonly #strangers = new UnidentifiedConnections<ClientConnection>();
  /** Connections with output in this turn. */
  #withOutput: ClientConnection[] = [];
  /** Connections with events, the oldest first. */
  readonly #withEvents: Fifo<ClientConnection> = new Fifo();
  /** Connections that are not read until there is less to do. */
  readonly #heldBack = new Set<ClientConnection>();
  /** Connections accepted while the server has no role, which wait for one; the oldest first. */
  readonly #awaitingServing = new Set<ClientConnection>();
  /**
   * Continue in one of the next turns, after all others: their output was full and has room again, or their share was
   * used up. The longest waiting comes first.
   */
  readonly #continuing = new Set<ClientConnection>();
  /** Connections that have used up their share of this turn. */
  #sated: ClientConnection[] = [];
  readonly #untaken: UnreadReplies<ClientConnection>;
  readonly #large: LargeRequests<ClientConnection>;
  readonly largeRequestBytes: number;
  #turnShare = TURN_UNITS;
  #nextTickMs = 0;
  /** When the first connection that pauses behind a long multi must be checked again. */
  #nextPauseEndMs = Number.POSITIVE_INFINITY;

  constructor(limits: Limits, gate: AnswerGate) {
    this.gate = gate;
    this.#limits = limits;
    const { largeRequestBytes, largeRequestsBytesMax } = limits.limits;
    this.largeRequestBytes = largeRequestBytes < 0 ? Number.POSITIVE_INFINITY : largeRequestBytes;
    this.#large = new LargeRequests(largeRequestsBytesMax);
    this.#untaken = new UnreadReplies(UNTAKEN_REPLIES_MAX * limits.multiReadBytesMax);
  }

  /** Open and closing connections. */
  get all(): ReadonlySet<ClientConnection> {
    return this.#connections;
  }

  [Symbol.iterator](): IterableIterator<ClientConnection> {
    return this.#connections.values();
  }

  /** True while connections have work that only waits for the next turn. */
  get hasWork(): boolean {
    return this.#continuing.size > 0 || (this.#withEvents.length > 0 && this.gate.look());
  }

  /** Units of work per connection and turn: less when many connections want more. */
  get turnShare(): number {
    return this.#turnShare;
  }

  get turnUnits(): number {
    return TURN_UNITS;
  }

  /** @returns why another connection from this host is refused; null if it is accepted */
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
   * Closes a connection that has been silent, see `UnidentifiedConnections`.
   *
   * @returns false when there are no silent connections
   */
  shedSilent(reason: string): boolean {
    const silent = this.#strangers.choose();
    if (silent === null) return false;
    this.#strangers.delete(silent);
    silent.close(reason);
    return true;
  }

  /** The connection has requested something, or is about to close. */
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
      deaf.close('it does not read its replies, and the unread replies of all clients exceed the memory limit');
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
   * A connection's input has been processed. When many connections get output in one turn, it leaves now rather than at
   * the end of the turn: after a thousand others have been read, everything that a write touches, in the kernel and
   * here, would have to be fetched from memory again. This saves 1.4 of the 23 µs that an event and the next watch cost
   * with 1,000 watchers.
   *
   * Never called between two commits: commits of one turn answer the same connections repeatedly, and share a write.
   */
  onRead(): void {
    if (this.#withOutput.length >= OUTPUTS_TOGETHER) this.flush();
  }

  onHeldBack(connection: ClientConnection): void {
    this.#heldBack.add(connection);
  }

  onPause(untilMs: number): void {
    // Turns count whole milliseconds: without rounding up, `onTick` could be due before the pause is over.
    this.#nextPauseEndMs = Math.min(this.#nextPauseEndMs, Math.ceil(untilMs));
  }

  onShareUsed(connection: ClientConnection): void {
    this.#sated.push(connection);
  }

  onAwaitingServing(connection: ClientConnection): void {
    this.#awaitingServing.add(connection);
  }

  /** Clients are served: connections that waited for this continue. */
  onServing(): void {
    // Called every turn: return early.
    if (this.#awaitingServing.size === 0) return;
    const waiting = [...this.#awaitingServing];
    this.#awaitingServing.clear();
    for (const connection of waiting) connection.resumeReading();
  }

  /**
   * How long a client may wait for this server to have a role, in milliseconds. An election usually takes less, and a
   * server without a quorum must not keep clients from those that have one.
   */
  get servingWaitMs(): number {
    return this.#limits.tickTimeMs / 4;
  }

  /** Connections that wait because this server is busy, not because they are silent. */
  get heldBack(): ReadonlySet<ClientConnection> {
    return this.#heldBack;
  }

  /** When `onTick` is due at the latest, in monotonic milliseconds; Infinity without connections. */
  get nextDeadlineMs(): number {
    if (this.#connections.size === 0) return Number.POSITIVE_INFINITY;
    const nextMs = Math.min(this.#nextTickMs, this.#nextPauseEndMs);
    const [oldest] = this.#awaitingServing;
    return oldest === undefined ? nextMs : Math.min(nextMs, oldest.openedMs + this.servingWaitMs);
  }

  /** Closes connections that have timed out. */
  onTick(nowMs: number): void {
    for (const connection of this.#awaitingServing) {
      if (nowMs < connection.openedMs + this.servingWaitMs) break;
      this.#awaitingServing.delete(connection);
      connection.resumeReading();
    }
    // Pausing connections are held back: `advance` checks them every turn.
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
   * Continues connections that have room again, or that were held back, before the turn's output leaves: at least one
   * of those that used up their share, and more until this turn has used up its units.
   */
  advance(work: WorkMeter): void {
    if (this.gate.isShut) this.gate.look();
    let left = this.#continuing.size;
    for (const connection of this.#continuing) {
      this.#continuing.delete(connection);
      connection.onTurn();
      if (--left === 0 || work.turnUnits >= TURN_UNITS) break;
    }
    for (const connection of this.#heldBack) {
      connection.resumeReading();
      if (connection.isReading) this.#heldBack.delete(connection);
    }
  }

  /** Hands the output to the streams, one write for each connection. */
  flush(): void {
    // One check for all connections: everything answered here arrived before it.
    if (this.#withOutput.length > 0) this.#flush(this.gate.look());
  }

  /** @param mayAnswer false: output for clients with a session is kept */
  #flush(mayAnswer: boolean): void {
    const withOutput = this.#withOutput;
    this.#withOutput = [];
    for (const connection of withOutput) {
      if (!mayAnswer && connection.session !== null) this.#withOutput.push(connection);
      else if (connection.flush()) this.#continuing.add(connection);
    }
  }

  /**
   * Hands events to connections that have nothing else to send. The number per turn is limited, so that others do not
   * wait when one change notifies thousands of clients. The output of each connection stays in order.
   */
  flushEvents(countMax: number = EVENTS_TOGETHER): void {
    if (this.#withEvents.length === 0 || !this.gate.look()) return;
    for (let i = 0; i < countMax && this.#withEvents.length > 0; i++) {
      const connection = this.#withEvents.shift()!;
      if (connection.flushEvents()) this.#continuing.add(connection);
    }
  }

  /** The turn is over: connections that used up their share continue in one of the next. */
  onTurnEnd(): void {
    if (this.#large.bytes > 0) this.#large.releaseAnswered();
    const sated = this.#sated;
    if (sated.length > 0) {
      this.#sated = [];
      for (const connection of sated) this.#continuing.add(connection);
    }
    this.#turnShare = Math.max(TURN_UNITS_MIN, TURN_UNITS / Math.max(1, this.#continuing.size));
  }

  /**
   * Closes connections that have a session, the oldest first, after pending replies have left; their clients reconnect
   * elsewhere.
   *
   * @returns how many were closed
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

  /**
   * Closes all connections after pending replies have left. Replies that may not leave now are dropped, because their
   * role ends.
   */
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

  /** Closes all connections at once. */
  close(reason: string): void {
    for (const connection of [...this.#connections]) connection.close(reason);
  }
}

/**
 * Units of work, see `WorkMeter`, after which a connection waits for its next turn: somewhat less than a millisecond. A
 * turn takes that long whether one connection wants more or many do, each of which gets a part, but no less than the
 * minimum share. Connections for which nothing is left wait for another turn. A single request may cost more.
 */
const TURN_UNITS = 8192;
const TURN_UNITS_MIN = 512;

/** Maximum of unread replies in total, in multiples of the longest multiRead reply. */
const UNTAKEN_REPLIES_MAX = 16;

/**
 * Number of connections whose output leaves together. With 1,000 watchers, 16 saves a little more than 64, and 1 saves
 * no more; but below 33 it also splits the output of the benchmark's 32 pipelining connections, whose reads then seem
 * to cost 3 % more.
 */
const OUTPUTS_TOGETHER = 64;

/** Connections whose events leave in one turn: each costs about 10 µs, nearly all of it in the kernel. */
const EVENTS_TOGETHER = 128;

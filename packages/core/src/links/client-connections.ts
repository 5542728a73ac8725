import type { CoreOptions } from '../options.ts';
import type { ByteStream } from '../ports.ts';
import { ClientConnection } from './client-connection.ts';
import type { ConnectionHost } from './connection-host.ts';

type Limits = Pick<CoreOptions, 'connectionsPerHostMax' | 'connectionsMax' | 'sessionlessTimeoutMs' | 'tickTimeMs'>;

/** All connections of clients: how many there may be, which of them have output, and which wait to be read again. */
export class ClientConnections implements Iterable<ClientConnection> {
  readonly #limits: Limits;
  readonly #connections = new Set<ClientConnection>();
  readonly #countOfHost = new Map<string, number>();
  /** Connections with output of this turn. */
  #withOutput: ClientConnection[] = [];
  /** Connections that stopped reading until there is less to do. */
  readonly #heldBack = new Set<ClientConnection>();
  /** Came while the server has no role, and wait for it to have one; the oldest first. */
  readonly #awaitingServing = new Set<ClientConnection>();
  /** Filled their output in this turn and have room again: they go on in the next one, after everybody else. */
  #withRoom: ClientConnection[] = [];
  #nextTickMs = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
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
    return this.#withRoom.length > 0;
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

  open(stream: ByteStream, server: ConnectionHost): ClientConnection {
    const connection = new ClientConnection(stream, server);
    const { host } = stream.remote;
    if (this.#connections.size === 0) this.#nextTickMs = server.nowMs() + this.#tickMs;
    this.#connections.add(connection);
    this.#countOfHost.set(host, (this.#countOfHost.get(host) ?? 0) + 1);
    return connection;
  }

  onClosed(connection: ClientConnection): void {
    this.#connections.delete(connection);
    this.#heldBack.delete(connection);
    this.#awaitingServing.delete(connection);
    const { host } = connection.remote;
    const count = (this.#countOfHost.get(host) ?? 1) - 1;
    if (count === 0) this.#countOfHost.delete(host);
    else this.#countOfHost.set(host, count);
  }

  onOutput(connection: ClientConnection): void {
    this.#withOutput.push(connection);
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
    const [oldest] = this.#awaitingServing;
    return oldest === undefined ? this.#nextTickMs : Math.min(this.#nextTickMs, oldest.openedMs + this.servingWaitMs);
  }

  /** Ends what has taken too long. */
  onTick(nowMs: number): void {
    for (const connection of this.#awaitingServing) {
      if (nowMs < connection.openedMs + this.servingWaitMs) break;
      this.#awaitingServing.delete(connection);
      connection.resumeReading();
    }
    if (nowMs < this.#nextTickMs) return;
    this.#nextTickMs = nowMs + this.#tickMs;
    for (const connection of this.#connections) connection.onTick(nowMs, this.#limits.sessionlessTimeoutMs);
  }

  get #tickMs(): number {
    return Math.min(this.#limits.tickTimeMs, this.#limits.sessionlessTimeoutMs);
  }

  /** Reads on where there is room or less to do, before the turn's output leaves. */
  goOn(): void {
    const withRoom = this.#withRoom;
    if (withRoom.length > 0) {
      this.#withRoom = [];
      for (const connection of withRoom) connection.goOn();
    }
    for (const connection of this.#heldBack) {
      connection.resumeReading();
      if (connection.isReading) this.#heldBack.delete(connection);
    }
  }

  /** Hands the output to the streams, one write each. */
  flush(): void {
    const withOutput = this.#withOutput;
    this.#withOutput = [];
    for (const connection of withOutput) if (connection.flush()) this.#withRoom.push(connection);
  }

  /** Ends all of them, after what was answered has left. */
  closeAfterReplies(reason: string): void {
    for (const connection of [...this.#connections]) connection.closeAfterReplies(reason);
  }

  /** Ends all of them at once. */
  close(reason: string): void {
    for (const connection of [...this.#connections]) connection.close(reason);
  }
}

/**
 * Connections whose output leaves together. With 1,000 watchers 16 saves a little more than 64, and 1 no more; but below
 * 33 it also parts the output of the bench's 32 pipelining connections, whose reads then seem to cost 3 % more.
 */
const OUTPUTS_TOGETHER = 64;

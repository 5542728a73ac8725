import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import {
  type CutOptions,
  type CutRule,
  checkCutRule,
  type Direction,
  ProxiedConnection,
} from './proxied-connection.ts';
import { whilePortIsTaken } from './taken-port.ts';
import { formatTarget, parseTarget, type TargetAddress } from './target-address.ts';

export interface TcpProxyOptions {
  /** A port of 127.0.0.1, or `host:port`. */
  readonly target: number | string;
  /** The port on 127.0.0.1 to listen on; 0, the default, takes a free one. */
  readonly port?: number;
}

export interface RefuseOptions {
  /** `'refuse'`, the default: there is no listener (ECONNREFUSED). `'close'`: connections are accepted and closed at once. */
  readonly how?: 'refuse' | 'close';
}

interface AwaitedCut {
  readonly rule: CutRule;
  readonly resolve: (cut: Promise<void>) => void;
  readonly reject: (error: Error) => void;
}

interface AwaitedConnection {
  readonly resolve: (connection: ProxiedConnection) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A proxy between any clients and server that injects network faults into their connections.
 *
 *     await using proxy = await TcpProxy.start({ target: server.port });
 *     const client = await connect(proxy.connectString);
 *     proxy.freeze();
 *     await client.until('suspended');
 *     proxy.thaw();
 *
 * `direction` is `'toServer'` or `'toClient'`; without it, both are meant.
 */
export class TcpProxy implements AsyncDisposable {
  readonly #connections = new Set<ProxiedConnection>();
  readonly #delayMs: Record<Direction, number> = { toServer: 0, toClient: 0 };
  readonly #isFrozen: Record<Direction, boolean> = { toServer: false, toClient: false };
  readonly #passedBytes: Record<Direction, number> = { toServer: 0, toClient: 0 };
  #target: TargetAddress;
  #port: number;
  #listener: Server | null = null;
  #closesAtOnce = false;
  #isStopped = false;
  #acceptedCount = 0;
  /** For the next connection. */
  #awaitedCuts: AwaitedCut[] = [];
  #awaitedConnections: AwaitedConnection[] = [];

  /**
   * Starts a proxy on a port of 127.0.0.1.
   *
   *     await using proxy = await TcpProxy.start({ target: 'zookeeper.example:2181' });
   */
  static async start(options: TcpProxyOptions): Promise<TcpProxy> {
    const proxy = new TcpProxy(options);
    proxy.#onListening(await proxy.#tryListen());
    return proxy;
  }

  private constructor(options: TcpProxyOptions) {
    this.#target = parseTarget(options.target);
    this.#port = options.port ?? 0;
  }

  /** The port on 127.0.0.1, the same when it listens again. */
  get port(): number {
    return this.#port;
  }

  /** What clients connect to: `127.0.0.1:port`. */
  get connectString(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /**
   * Where new connections lead, as `host:port`; those that exist stay where they are.
   *
   *     proxy.target = other.port;
   *     await proxy.cut();            // the client comes back and finds the other server
   */
  get target(): string {
    return formatTarget(this.#target);
  }

  set target(target: number | string) {
    this.#target = parseTarget(target);
  }

  /** The connections that are open, oldest first. */
  get connections(): readonly ProxiedConnection[] {
    return [...this.#connections];
  }

  /** How many connections have come since the start. */
  get acceptedCount(): number {
    return this.#acceptedCount;
  }

  /** Bytes passed on since the start, on all connections. */
  get bytesToServer(): number {
    return this.#passedBytes.toServer;
  }

  get bytesToClient(): number {
    return this.#passedBytes.toClient;
  }

  /**
   * Delays what arrives from now on; 0 ends that. Nothing overtakes earlier bytes.
   *
   *     proxy.delay(50);                 // a round trip takes 100 ms more
   *     proxy.delay(200, 'toClient');
   */
  delay(ms: number, direction?: Direction): void {
    if (!(ms >= 0 && Number.isFinite(ms))) throw new RangeError(`a delay is 0 or more milliseconds, not ${ms}`);
    for (const each of directionsOf(direction)) this.#delayMs[each] = ms;
    for (const connection of this.#connections) connection.delay(ms, direction);
  }

  /**
   * Stops forwarding, both bytes and closes. Connections stay open, and what is sent waits. New connections are
   * accepted, and wait too.
   *
   *     proxy.freeze('toClient');        // requests arrive, replies do not
   */
  freeze(direction?: Direction): void {
    for (const each of directionsOf(direction)) this.#isFrozen[each] = true;
    for (const connection of this.#connections) connection.freeze(direction);
  }

  /** Ends `freeze`: everything that has waited is passed on in its order. */
  thaw(direction?: Direction): void {
    for (const each of directionsOf(direction)) this.#isFrozen[each] = false;
    for (const connection of this.#connections) connection.thaw(direction);
  }

  /**
   * Cuts all connections; what has not been passed on is lost. New ones may come.
   *
   *     await proxy.cut({ how: 'end' });
   *
   * @returns once they are closed on this side
   */
  async cut(options: CutOptions = {}): Promise<void> {
    await Promise.all(this.connections.map((connection) => connection.cut(options)));
  }

  /**
   * Cuts the next connection after exactly so many bytes. Several calls before it comes all hold for it; the first limit
   * that is reached counts. Bytes of an open connection are counted by its own `cutAfter`.
   *
   *     const cut = proxy.cutAfter({ direction: 'toServer', bytes: 20 });
   *     await connect(proxy.connectString).catch(() => {});
   *     await cut;
   *
   * @returns once it is cut
   * @throws Error when it closes before, or the proxy is stopped
   */
  cutAfter(rule: CutRule): Promise<void> {
    this.#checkNotStopped();
    checkCutRule(rule);
    const cut = new Promise<void>((resolve, reject) => this.#awaitedCuts.push({ rule, resolve, reject }));
    // A caller that does not wait for the cut need not learn that it did not come.
    cut.catch(() => {});
    return cut;
  }

  /**
   * Takes no new connections; those that exist stay. `accept` ends it.
   *
   *     await proxy.refuse();
   *     await proxy.cut();               // clients come back and find no server
   */
  async refuse(options: RefuseOptions = {}): Promise<void> {
    this.#checkNotStopped();
    this.#closesAtOnce = options.how === 'close';
    if (this.#closesAtOnce) await this.#listenAgain();
    else this.#stopListening();
  }

  /** Takes connections again, on the same port. */
  async accept(): Promise<void> {
    this.#checkNotStopped();
    this.#closesAtOnce = false;
    await this.#listenAgain();
  }

  /**
   * Waits for the next connection that a client makes.
   *
   *     const coming = proxy.nextConnection();
   *     const client = await connect(proxy.connectString);
   *     const connection = await coming;
   *
   * @throws Error when the proxy is stopped
   */
  nextConnection(): Promise<ProxiedConnection> {
    this.#checkNotStopped();
    const connection = new Promise<ProxiedConnection>((resolve, reject) => {
      this.#awaitedConnections.push({ resolve, reject });
    });
    connection.catch(() => {});
    return connection;
  }

  /** Breaks all connections and takes no more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopListening();
    const error = new Error(STOPPED);
    for (const { reject } of [...this.#awaitedCuts.splice(0), ...this.#awaitedConnections.splice(0)]) reject(error);
    await this.cut();
  }

  /** What `await using` calls: the same as `stop`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #listenAgain(): Promise<void> {
    if (this.#listener === null) this.#onListening(await whilePortIsTaken(() => this.#tryListen()));
  }

  async #tryListen(): Promise<Server> {
    const listener = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#onClient(socket));
    listener.listen(this.#port, '127.0.0.1');
    await once(listener, 'listening');
    // An accept that fails later, for lack of file descriptors for instance, is another way of refusing.
    listener.on('error', () => {});
    return listener;
  }

  #onListening(listener: Server): void {
    this.#port = (listener.address() as AddressInfo).port;
    if (this.#listener === null && !this.#isStopped) this.#listener = listener;
    else listener.close();
  }

  #stopListening(): void {
    this.#listener?.close();
    this.#listener = null;
  }

  #onClient(socket: Socket): void {
    this.#acceptedCount++;
    if (this.#closesAtOnce || this.#isStopped) {
      socket.on('error', () => {});
      socket.destroy();
      return;
    }
    const connection = new ProxiedConnection(socket, this.#target, {
      delayMs: this.#delayMs,
      isFrozen: this.#isFrozen,
      onPassed: (direction, bytes) => {
        this.#passedBytes[direction] += bytes;
      },
    });
    this.#connections.add(connection);
    void connection.closed.then(() => this.#connections.delete(connection));
    for (const { rule, resolve } of this.#awaitedCuts.splice(0)) resolve(connection.cutAfter(rule));
    for (const { resolve } of this.#awaitedConnections.splice(0)) resolve(connection);
  }

  #checkNotStopped(): void {
    if (this.#isStopped) throw new Error(STOPPED);
  }
}

function directionsOf(direction: Direction | undefined): readonly Direction[] {
  return direction === undefined ? ['toServer', 'toClient'] : [direction];
}

const STOPPED = 'the proxy has been stopped';

import type { Clock } from './clock.ts';
import type { AttemptFailure, HostPort, Random, SaslExchange, Target } from './machine/ports.ts';
import { Session } from './machine/session.ts';
import type { SessionEffects, SessionListener, SessionOptions } from './machine/session-ports.ts';
import type { Transport, TransportStream } from './transport/transport.ts';

/**
 * Creates the client's half of a SASL exchange with a server. It may be asynchronous: the connection is opened
 * afterwards.
 */
export type SaslMechanism = (server: HostPort) => SaslExchange | Promise<SaslExchange>;

export interface HostOptions extends Omit<SessionOptions, 'sasl'> {
  readonly sasl: SaslMechanism | null;
}

/** The environment of a session. Virtual in the simulator. */
export interface World {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * Runs a session machine on a transport and a clock: turns effects into calls, completions into events, and wakes the
 * machine at its next deadline.
 */
export class SessionHost implements SessionEffects {
  readonly session: Session;
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #sasl: SaslMechanism | null;
  /** For the next connection. */
  #exchange: SaslExchange | null = null;
  #stream: TransportStream | null = null;
  /** Incremented for every stream and lookup: later events of earlier ones are dropped. */
  #attempt = 0;
  #cancelTimer: (() => void) | null = null;
  #timerAtMs = Number.POSITIVE_INFINITY;

  constructor(options: HostOptions, world: World, listener: SessionListener) {
    this.#transport = world.transport;
    this.#clock = world.clock;
    this.#sasl = options.sasl;
    // It was created before the connection.
    const sasl = options.sasl === null ? null : (): SaslExchange => this.#exchange!;
    this.session = new Session({ ...options, sasl }, world.clock, world.random, this, listener);
  }

  start(): void {
    this.session.start();
    this.armTimer();
  }

  /** Ends at once; nothing of it keeps the process alive. */
  end(reason: string): void {
    this.session.end('closed', reason);
    this.armTimer();
  }

  /** Ends before a server was found. */
  abandon(reason: string): void {
    this.session.abandon(reason);
    this.armTimer();
  }

  /** To be called after a command that may have changed the session's deadlines. */
  armTimer(): void {
    const deadlineMs = this.session.nextDeadlineMs();
    // A timer that fires too early is harmless: it is set again then.
    const isNever = deadlineMs === Number.POSITIVE_INFINITY;
    if (this.#cancelTimer !== null && this.#timerAtMs <= deadlineMs && !isNever) return;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (isNever) return;
    this.#timerAtMs = deadlineMs;
    const delayMs = Math.max(0, Math.ceil(deadlineMs - this.#clock.monotonicMs()));
    this.#cancelTimer = this.#clock.schedule(delayMs, this.#onTimer);
  }

  /* ----------------------------------------------------------------------------------------------- effects ---- */

  resolve({ host }: HostPort): void {
    const attempt = ++this.#attempt;
    const report = (addresses: readonly string[] | null, detail: string): void => {
      if (attempt !== this.#attempt) return;
      this.session.onResolved(addresses, detail);
      this.armTimer();
    };
    this.#transport.resolve(host).then(
      (addresses) => report(addresses, `${host} has no address`),
      (error: unknown) => report(null, error instanceof Error ? error.message : String(error)),
    );
  }

  open(target: Target): void {
    const attempt = ++this.#attempt;
    if (this.#sasl === null) this.#connect(target, attempt);
    else void this.#connectWithSasl(target, attempt, this.#sasl);
  }

  async #connectWithSasl(target: Target, attempt: number, mechanism: SaslMechanism): Promise<void> {
    try {
      const exchange = await mechanism(target);
      if (attempt !== this.#attempt) return;
      this.#exchange = exchange;
      this.session.onPrepared();
    } catch (error) {
      if (attempt !== this.#attempt) return;
      this.session.onStreamClosed('sasl', error instanceof Error ? error.message : String(error));
      this.armTimer();
      return;
    }
    this.#connect(target, attempt);
  }

  #connect(target: Target, attempt: number): void {
    this.#stream = this.#transport.connect(target, {
      onOpen: () => {
        if (attempt !== this.#attempt) return;
        this.session.onOpened();
        this.armTimer();
      },
      onBytes: (chunk: Uint8Array) => {
        if (attempt !== this.#attempt) return;
        this.session.onBytes(chunk);
        this.armTimer();
      },
      onClosed: (failure: AttemptFailure | null, detail: string) => {
        if (attempt !== this.#attempt) return;
        this.#stream = null;
        this.session.onStreamClosed(failure, detail);
        this.armTimer();
      },
    });
  }

  write(bytes: Uint8Array): boolean {
    return this.#stream === null ? true : this.#stream.write(bytes);
  }

  closeStream(): void {
    this.#attempt++;
    this.#stream?.destroy();
    this.#stream = null;
  }

  flushSoon(): void {
    this.#clock.defer(this.#flush);
  }

  probe(host: HostPort): void {
    void this.#probe(host).then((isReadWrite) => {
      this.session.onProbed(host, isReadWrite);
      this.armTimer();
    });
  }

  async #probe({ host, port }: HostPort): Promise<boolean> {
    try {
      for (const address of await this.#transport.resolve(host)) {
        const answer = await this.#transport.probe({ host, port, address }, 'isro', PROBE_TIMEOUT_MS);
        if (answer.trim() === 'rw') return true;
      }
    } catch {
      // A server that cannot be probed is not a target; the next probe asks another.
    }
    return false;
  }

  readonly #flush = (): void => this.session.flush();

  readonly #onTimer = (): void => {
    this.#cancelTimer = null;
    this.session.onTick();
    this.armTimer();
  };
}

const PROBE_TIMEOUT_MS = 1000;

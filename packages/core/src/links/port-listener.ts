import type { ByteStream, Clock, Endpoint, Network, StreamEvents, Trace } from '../base/ports.ts';

export interface PortListenerPorts {
  readonly network: Network;
  readonly clock: Clock;
  readonly trace: Trace;
}

export interface PortListenerEvents {
  onAccepted(stream: ByteStream): StreamEvents;
  /**
   * It has started to listen, failed to, or stopped listening. Called once per attempt, and when listening ends by
   * itself.
   */
  onChanged?(): void;
}

/** For log messages. */
export interface ListeningFor {
  /** Who connects, for example "followers". */
  readonly who: string;
  /** What is not possible while it cannot listen. */
  readonly consequence: string;
}

const NEVER = Number.POSITIVE_INFINITY;
/** Milliseconds between two attempts to listen. */
const LISTEN_AGAIN_MS = 250;
/** Consecutive failures per warning: one warning a minute. */
const WARNING_EVERY = 240;

/**
 * Listens at one address, and never stops retrying: a server that could not listen once, or no longer can, must not
 * stay unreachable (ZOOKEEPER-3320, 3084, 2836).
 */
export class PortListener {
  readonly #ports: PortListenerPorts;
  readonly #at: Endpoint;
  readonly #what: ListeningFor;
  readonly #events: PortListenerEvents;
  #listener: { close(): void } | null = null;
  #state: 'unknown' | 'listening' | 'failed' = 'unknown';
  #againAtMs = NEVER;
  #failures = 0;
  #isStopped = false;

  constructor(ports: PortListenerPorts, at: Endpoint, what: ListeningFor, events: PortListenerEvents) {
    this.#ports = ports;
    this.#at = at;
    this.#what = what;
    this.#events = events;
  }

  get nextDeadlineMs(): number {
    return this.#againAtMs;
  }

  get isListening(): boolean {
    return this.#state === 'listening';
  }

  /** True once the first attempt has succeeded or failed. */
  get isSettled(): boolean {
    return this.#state !== 'unknown';
  }

  start(): void {
    this.#againAtMs = NEVER;
    this.#listener = this.#ports.network.listen(this.#at, {
      onListening: () => this.#onListening(),
      onListenFailed: (reason) => this.#onFailed(reason),
      onAccepted: (stream) => this.#events.onAccepted(stream),
    });
  }

  onTick(): void {
    if (this.#ports.clock.monotonicMs() >= this.#againAtMs) this.start();
  }

  stop(): void {
    this.#isStopped = true;
    this.#againAtMs = NEVER;
    this.#listener?.close();
    this.#listener = null;
  }

  #onListening(): void {
    if (this.#isStopped) return;
    if (this.#failures > 0) this.#say('notice', 'listens', '');
    this.#failures = 0;
    this.#state = 'listening';
    this.#events.onChanged?.();
  }

  #onFailed(reason: string): void {
    if (this.#isStopped) return;
    this.#listener?.close();
    this.#listener = null;
    this.#state = 'failed';
    this.#againAtMs = this.#ports.clock.monotonicMs() + LISTEN_AGAIN_MS;
    if (this.#failures++ % WARNING_EVERY === 0) {
      this.#say('warning', 'cannot listen', `: ${reason}. Retrying; until then ${this.#what.consequence}`);
    }
    this.#events.onChanged?.();
  }

  #say(kind: 'notice' | 'warning', what: string, more: string): void {
    const { host, port } = this.#at;
    this.#ports.trace.emit({ kind, message: `${what} for ${this.#what.who} at ${host}:${port}${more}` });
  }
}

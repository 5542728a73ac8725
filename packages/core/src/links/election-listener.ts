import type { ByteStream, Clock, Endpoint, Network, StreamEvents, Trace } from '../ports.ts';

export interface ElectionListenerPorts {
  readonly network: Network;
  readonly clock: Clock;
  readonly trace: Trace;
}

const NEVER = Number.POSITIVE_INFINITY;
/** Milliseconds between two attempts to listen. */
const LISTEN_AGAIN_MS = 1000;
/** Of attempts that fail in a row, one in so many is warned of. */
const WARNING_EVERY = 60;

/**
 * Listens at one address, and never stops trying to: a server that could not listen once, or no longer can, must not
 * stay deaf (ZOOKEEPER-3320, 3084, 2836).
 */
export class ElectionListener {
  readonly #ports: ElectionListenerPorts;
  readonly #at: Endpoint;
  readonly #onAccepted: (stream: ByteStream) => StreamEvents;
  #listener: { close(): void } | null = null;
  #againAtMs = NEVER;
  #failures = 0;
  #isStopped = false;

  constructor(ports: ElectionListenerPorts, at: Endpoint, onAccepted: (stream: ByteStream) => StreamEvents) {
    this.#ports = ports;
    this.#at = at;
    this.#onAccepted = onAccepted;
  }

  get nextDeadlineMs(): number {
    return this.#againAtMs;
  }

  start(): void {
    this.#againAtMs = NEVER;
    this.#listener = this.#ports.network.listen(this.#at, {
      onListening: () => {
        this.#failures = 0;
      },
      onListenFailed: (reason) => this.#onFailed(reason),
      onAccepted: (stream) => this.#onAccepted(stream),
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

  #onFailed(reason: string): void {
    if (this.#isStopped) return;
    this.#listener?.close();
    this.#listener = null;
    this.#againAtMs = this.#ports.clock.monotonicMs() + LISTEN_AGAIN_MS;
    if (this.#failures++ % WARNING_EVERY > 0) return;
    const { host, port } = this.#at;
    this.#ports.trace.emit({
      kind: 'warning',
      message: `cannot listen for the election at ${host}:${port}: ${reason}. It is tried again every second; servers with a higher id cannot connect until then`,
    });
  }
}

import type { ByteStream, Endpoint, StreamEvents } from '../base/ports.ts';
import { isSameEndpoint } from './address-list.ts';
import { type ListeningFor, PortListener, type PortListenerPorts } from './port-listener.ts';

interface ListenerSetEvents {
  onAccepted(stream: ByteStream): StreamEvents;
  /** `isOpen` or `isSettled` may have changed. */
  onChanged?(): void;
}

/** The addresses at which a server listens for one purpose; they may change while it does. */
export class ListenerSet {
  readonly #ports: PortListenerPorts;
  readonly #what: ListeningFor;
  readonly #events: ListenerSetEvents;
  #listeners: readonly { readonly at: Endpoint; readonly listener: PortListener }[] = [];
  #isStarted = false;
  #isStopped = false;

  constructor(ports: PortListenerPorts, what: ListeningFor, events: ListenerSetEvents) {
    this.#ports = ports;
    this.#what = what;
    this.#events = events;
  }

  /** True while it listens at one address or more. */
  get isOpen(): boolean {
    return this.#listeners.some(({ listener }) => listener.isListening);
  }

  /** True once it is open, or has failed to open at every address. */
  get isSettled(): boolean {
    return this.isOpen || this.#listeners.every(({ listener }) => listener.isSettled);
  }

  /** Milliseconds of the monotonic clock; Infinity when nothing is due. */
  get nextDeadlineMs(): number {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const { listener } of this.#listeners) nextMs = Math.min(nextMs, listener.nextDeadlineMs);
    return nextMs;
  }

  /** Replaces the addresses. Those that stay are listened on without interruption. */
  set(addresses: readonly Endpoint[]): void {
    if (this.#isStopped) return;
    const before = this.#listeners;
    const kept = before.filter(({ at }) => addresses.some((address) => isSameEndpoint(address, at)));
    const added = addresses
      .filter((address) => !before.some(({ at }) => isSameEndpoint(address, at)))
      .map((at) => ({ at, listener: new PortListener(this.#ports, at, this.#what, this.#events) }));
    if (added.length === 0 && kept.length === before.length) return;
    this.#listeners = [...kept, ...added];
    // Stop old ones first: the same port on another interface may conflict.
    for (const { at, listener } of before) if (!kept.some((other) => other.at === at)) listener.stop();
    if (this.#isStarted) for (const { listener } of added) listener.start();
    this.#events.onChanged?.();
  }

  start(): void {
    this.#isStarted = true;
    for (const { listener } of this.#listeners) listener.start();
  }

  onTick(): void {
    for (const { listener } of this.#listeners) listener.onTick();
  }

  stop(): void {
    this.#isStopped = true;
    for (const { listener } of this.#listeners) listener.stop();
  }
}

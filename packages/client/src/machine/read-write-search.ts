import type { HostPort, Target } from './ports.ts';

/** Which server is asked next whether it has a quorum, and when, while connected to a server without one. */
export class ReadWriteSearch {
  readonly #hosts: readonly HostPort[];
  #asked = 0;
  #pauseMs = PAUSE_MIN_MS;
  #nextAtMs = Number.POSITIVE_INFINITY;

  constructor(hosts: readonly HostPort[]) {
    this.#hosts = hosts;
  }

  /** Monotonic milliseconds. */
  get nextAtMs(): number {
    return this.#nextAtMs;
  }

  /** There is a connection. */
  begin(nowMs: number): void {
    this.#pauseMs = PAUSE_MIN_MS;
    this.#nextAtMs = nowMs + this.#pauseMs;
  }

  /** @returns the server to ask now; undefined when there is none but `here` */
  next(nowMs: number, here: Target | null): HostPort | undefined {
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MAX_MS);
    this.#nextAtMs = nowMs + this.#pauseMs;
    const others = this.#hosts.filter(({ host, port }) => host !== here?.host || port !== here.port);
    return others[this.#asked++ % Math.max(others.length, 1)];
  }
}

/** Delays double from the minimum to the maximum (ClientCnxn). Milliseconds. */
const PAUSE_MIN_MS = 100;
const PAUSE_MAX_MS = 60_000;

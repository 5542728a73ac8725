import { ConnectionLossError, type Data, NoAuthError, QuotaExceededError, RequestTooLargeError } from '@meerkat/client';

/**
 * How often in a row a write has cost the connection. A server closes it without a word when a request is larger than its
 * `jute.maxbuffer`, which the client does not know, so that sending it again would never end, and would cost everybody else
 * in the process a connection each time. Whoever writes again looks at the znode in between: smaller requests are answered.
 */
export class LostWrites {
  readonly #path: string;
  #data: Data = null;
  #count = 0;

  /** @param path of the znode, for errors */
  constructor(path: string) {
    this.#path = path;
  }

  /** Writing these data has cost so many connections that it is to be tried more rarely, if at all. */
  areTooMany(data: Data): boolean {
    return this.#data === data && this.#count >= LOSSES_MAX;
  }

  /** @returns what a write has failed for: RequestTooLargeError after so many lost connections in a row */
  explain(data: Data, error: unknown): unknown {
    const isLoss = error instanceof ConnectionLossError && error.outcome === 'unknown';
    if (!isLoss || (data?.length ?? 0) < SMALL_LENGTH) return error;
    this.#count = this.#data === data ? this.#count + 1 : 1;
    this.#data = data;
    if (!this.areTooMany(data)) return error;
    const about = { operation: 'set', path: this.#path };
    return new RequestTooLargeError({ ...about, outcome: 'unknown', detail: CLOSED, cause: error });
  }

  /** A write was answered. */
  forget(): void {
    this.#data = null;
    this.#count = 0;
  }
}

/** By then the service has answered smaller requests several times in between. */
const LOSSES_MAX = 5;
const CLOSED = `the connection was lost ${LOSSES_MAX} times in a row while this was in flight, and smaller requests were answered`;

/** Bytes or characters: less than that no server is set to refuse, so that it is the network. */
const SMALL_LENGTH = 4096;

/** The service does not take these data; the next it may. */
export function isRefusal(error: unknown): error is Error {
  return REFUSALS.some((kind) => error instanceof kind);
}

const REFUSALS = [RequestTooLargeError, QuotaExceededError, NoAuthError] as const;

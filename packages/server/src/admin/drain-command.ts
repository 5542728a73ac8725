import type { ServerCore } from '@meerkat/core';
import type { AdminAuthorization, Caller, Refusal } from './authorization.ts';

export interface DrainCommandParts {
  readonly authorization: AdminAuthorization;
  readonly core: Pick<ServerCore, 'shed' | 'isDraining' | 'setDraining' | 'view'>;
  /** Gives the core an event, in a turn of its own. */
  deliver(event: () => void): void;
}

export interface Drained {
  readonly isDraining: boolean;
  /** Connections that are still open, those without a session among them. */
  readonly connections: number;
  /** Closed by this command so far; `drain` goes on. */
  readonly closed: number;
}

/** Milliseconds between two parts, and connections a second, unless the command says otherwise. */
const PERIOD_MS = 100;
const PER_SECOND = 500;
const PER_SECOND_MAX = 100_000;

/**
 * The admin commands `drain`, `undrain` and `shed`: clients move to other servers with their sessions, a few at a time, before
 * this one stops, or because others have fewer. They need the authorization of `snapshot`.
 */
export class DrainCommand {
  readonly #parts: DrainCommandParts;
  #timer: NodeJS.Timeout | null = null;

  constructor(parts: DrainCommandParts) {
    this.#parts = parts;
  }

  run(name: 'drain' | 'undrain' | 'shed', query: Readonly<Record<string, string>>, caller: Caller): Drained | Refusal {
    const refusal = this.#parts.authorization.refusalOf(caller);
    if (refusal !== null) return refusal;
    const { core, deliver } = this.#parts;
    let closed = 0;
    switch (name) {
      case 'drain': {
        const perSecond = numberOf(query['per_second'] ?? String(PER_SECOND), PER_SECOND_MAX);
        if (perSecond === null) return { status: 400, error: `per_second is a number from 1 to ${PER_SECOND_MAX}` };
        const part = Math.max(1, Math.round((perSecond * PERIOD_MS) / 1000));
        const next = (): void =>
          deliver(() => {
            closed += core.shed(part);
          });
        this.stop();
        deliver(() => core.setDraining(true));
        next();
        this.#timer = setInterval(next, PERIOD_MS);
        this.#timer.unref();
        break;
      }
      case 'undrain':
        this.stop();
        deliver(() => core.setDraining(false));
        break;
      case 'shed': {
        const count = numberOf(query['count'] ?? '', Number.MAX_SAFE_INTEGER);
        if (count === null) return { status: 400, error: 'count is how many connections are to be closed' };
        deliver(() => {
          closed = core.shed(count);
        });
        break;
      }
    }
    return { isDraining: core.isDraining, connections: core.view.connectionCount, closed };
  }

  /** The server ends: nothing is shed any more. */
  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}

function numberOf(text: string, max: number): number | null {
  if (!/^\d{1,16}$/.test(text)) return null;
  const value = Number(text);
  return value >= 1 && value <= max ? value : null;
}

import type { ServerCore } from '@meerkat/core';
import type { Logger } from '../logger.ts';
import type { AdminAudit } from './admin-audit.ts';
import type { AdminAuthorization, Caller, Refusal } from './authorization.ts';

export interface DrainCommandParts {
  readonly authorization: Pick<AdminAuthorization, 'refusalOf'>;
  readonly core: Pick<ServerCore, 'shed' | 'isDraining' | 'setDraining'> & {
    readonly view: Pick<ServerCore['view'], 'connectionCount'>;
  };
  readonly audit: Pick<AdminAudit, 'add' | 'nameOf'>;
  readonly logger: Logger;
  /** Gives the core an event, in a turn of its own. */
  deliver(event: () => void): void;
}

export interface Drained {
  readonly isDraining: boolean;
  /** Connections that are still open, those without a session among them. */
  readonly connections: number;
  /** Closed by this command so far; `drain` closes more in the background. */
  readonly closed: number;
}

export const DRAIN_NAMES = ['drain', 'shed', 'undrain'] as const;
export type DrainName = (typeof DRAIN_NAMES)[number];

export function isDrainName(name: string): name is DrainName {
  return (DRAIN_NAMES as readonly string[]).includes(name);
}

/** Milliseconds between two parts, and connections a second, unless the command says otherwise. */
const PERIOD_MS = 100;
const PER_SECOND = 500;
const PER_SECOND_MAX = 100_000;

/**
 * The admin commands `drain`, `undrain` and `shed`, which are not ZooKeeper's: clients move to other servers with their sessions,
 * a few at a time, before this one stops, or because others have fewer.
 *
 *     GET  …/drain                   whether it drains, and how many connections there are
 *     POST …/drain?per_second=500
 *     POST …/undrain
 *     POST …/shed?count=10
 *
 * Who may ask is decided as for `snapshot`, before all else. 405: the method is another one.
 */
export class DrainCommand {
  readonly #parts: DrainCommandParts;
  #timer: NodeJS.Timeout | null = null;

  constructor(parts: DrainCommandParts) {
    this.#parts = parts;
  }

  run(name: DrainName, isOrder: boolean, query: Readonly<Record<string, string>>, caller: Caller): Drained | Refusal {
    const { authorization, audit } = this.#parts;
    const refusal = authorization.refusalOf(caller, NO_TREE);
    if (!isOrder) {
      if (refusal !== null) return refusal;
      // Older versions of the command drain by GET: the answer must not look like success.
      if (name !== 'drain' || query['per_second'] !== undefined) return { status: 405, error: BY_POST };
      return this.#outcome(0);
    }
    const outcome = refusal ?? this.#obey(name, query, caller);
    audit.add(name, caller, 'status' in outcome ? 'failure' : 'success');
    return outcome;
  }

  /** Called when the server stops. */
  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #obey(name: DrainName, query: Readonly<Record<string, string>>, caller: Caller): Drained | Refusal {
    switch (name) {
      case 'drain': {
        const perSecond = numberOf(query['per_second'] ?? String(PER_SECOND), PER_SECOND_MAX);
        if (perSecond === null) return { status: 400, error: `per_second is a number from 1 to ${PER_SECOND_MAX}` };
        this.#log(
          `clients are sent away, ${perSecond} a second, and no sessions are taken, until undrain or a start`,
          caller,
        );
        return this.#drain(perSecond);
      }
      case 'undrain':
        this.stop();
        this.#parts.deliver(() => this.#parts.core.setDraining(false));
        this.#log('sessions are taken again', caller);
        return this.#outcome(0);
      case 'shed': {
        const count = numberOf(query['count'] ?? '', Number.MAX_SAFE_INTEGER);
        if (count === null) return { status: 400, error: 'count is how many connections are to be closed' };
        const closed = this.#shed(count);
        this.#log(`clients sent away: ${closed}`, caller);
        return this.#outcome(closed);
      }
    }
  }

  #drain(perSecond: number): Drained {
    const { core, deliver } = this.#parts;
    const part = Math.max(1, Math.round((perSecond * PERIOD_MS) / 1000));
    this.stop();
    deliver(() => core.setDraining(true));
    const closed = this.#shed(part);
    this.#timer = setInterval(() => this.#shed(part), PERIOD_MS);
    this.#timer.unref();
    return this.#outcome(closed);
  }

  #shed(count: number): number {
    let closed = 0;
    this.#parts.deliver(() => {
      closed = this.#parts.core.shed(count);
    });
    return closed;
  }

  #outcome(closed: number): Drained {
    const { core } = this.#parts;
    return { isDraining: core.isDraining, connections: core.view.connectionCount, closed };
  }

  #log(what: string, caller: Caller): void {
    const { logger, audit } = this.#parts;
    logger.log('info', `${what}; the admin command of ${audit.nameOf(caller)}`, { event: 'draining' });
  }
}

function numberOf(text: string, max: number): number | null {
  if (!/^\d{1,16}$/.test(text)) return null;
  const value = Number(text);
  return value >= 1 && value <= max ? value : null;
}

const BY_POST = 'it changes something: ask with POST';
const NO_TREE: Refusal = {
  status: 503,
  error: 'this server has no quorum, or is starting, and cannot tell who may do this; a super user may',
};

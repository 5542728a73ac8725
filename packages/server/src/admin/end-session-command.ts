import type { ServerCore } from '@meerkat/core';
import { type AdminEvent, formatSessionId } from '../audit/audit-line.ts';
import type { Logger } from '../logger.ts';
import type { SessionEnds } from '../session-ends.ts';
import type { AdminAudit } from './admin-audit.ts';
import type { AdminAuthorization, Caller, Refusal } from './authorization.ts';

export interface EndSessionCommandParts {
  readonly authorization: Pick<AdminAuthorization, 'refusalOf'>;
  readonly core: Pick<ServerCore, 'expireSession' | 'endsSessions'> & {
    readonly view: Pick<
      ServerCore['view'],
      'isServing' | 'lastZxid' | 'timeoutMsOf' | 'ephemeralCountOf' | 'ephemeralsOf'
    >;
  };
  readonly sessionEnds: Pick<SessionEnds, 'onNext'>;
  readonly audit: Pick<AdminAudit, 'add' | 'nameOf'>;
  readonly logger: Logger;
  /** How long the end is waited for. */
  readonly confirmMs: number;
  /** Gives the core an event, in a turn of its own. */
  deliver(event: () => void): void;
}

/** A session and what goes with it. */
export interface EndableSession {
  readonly sessionId: bigint;
  readonly ephemerals: number;
  /** The first ones. */
  readonly paths: readonly string[];
  /** Whether it has ended: its closeSession is committed and applied here. */
  readonly isEnded: boolean;
}

type End = 'ended' | 'unknown' | 'no-quorum' | 'unconfirmed';

/**
 * The admin command `end_session`, which is not one of ZooKeeper's: there a session ends when its client closes it or is silent
 * for its timeout.
 *
 *     GET  …/end_session?session=0x100…    whether it is there, and what would go with it
 *     POST …/end_session?session=0x100…    ends it
 *
 * Any server with a quorum does it for any session of the ensemble: a learner asks the leader. A local session is known to its
 * own server alone. Who may ask is decided as for `snapshot`, before all else. 404: this server knows no such session; 503: it has no quorum, or
 * leads no longer, and nothing was asked for; 504: asked for, and what came of it is not known.
 */
export class EndSessionCommand {
  readonly #parts: EndSessionCommandParts;

  constructor(parts: EndSessionCommandParts) {
    this.#parts = parts;
  }

  async run(
    isOrder: boolean,
    query: Readonly<Record<string, string>>,
    caller: Caller,
  ): Promise<EndableSession | Refusal> {
    const { audit, logger } = this.#parts;
    const sessionId = parseSessionId(query['session'] ?? '');
    const found = this.#find(sessionId, caller);
    if (!isOrder) return found;
    if ('status' in found) {
      audit.add('endSession', caller, 'failure', sessionId);
      return found;
    }
    const end = await this.#end(found.sessionId);
    audit.add('endSession', caller, RESULTS[end], found.sessionId);
    if (end === 'no-quorum') return NO_QUORUM;
    if (end === 'unknown') return this.#unknown(found.sessionId);
    if (end === 'unconfirmed') return this.#unconfirmed(found.sessionId);
    const session = formatSessionId(found.sessionId);
    const text = `session ${session} was ended by the admin command of ${audit.nameOf(caller)}, and with it ${found.ephemerals} ephemeral znodes`;
    logger.log('warn', text, { event: 'session-ended', session });
    return { ...found, isEnded: true };
  }

  /** Nothing has changed yet. */
  #find(sessionId: bigint | null, caller: Caller): EndableSession | Refusal {
    const { core, authorization } = this.#parts;
    const { view } = core;
    const refusal = authorization.refusalOf(caller, NO_QUORUM);
    if (refusal !== null) return refusal;
    if (sessionId === null) return { status: 400, error: BAD_SESSION };
    if (!core.endsSessions) return NO_QUORUM;
    if (view.timeoutMsOf(sessionId) === null) return this.#unknown(sessionId);
    const paths = [...first(view.ephemeralsOf(sessionId), PATHS_MAX)];
    return { sessionId, ephemerals: view.ephemeralCountOf(sessionId), paths, isEnded: false };
  }

  #end(sessionId: bigint): Promise<End> {
    const { core, sessionEnds, confirmMs, deliver } = this.#parts;
    return new Promise((resolve) => {
      const settle = (end: End): void => {
        clearTimeout(timer);
        forget();
        resolve(end);
      };
      const timer = setTimeout(() => settle('unconfirmed'), confirmMs);
      timer.unref();
      // An error: the server has ended.
      const forget = sessionEnds.onNext(sessionId, (error) => settle(error === null ? 'ended' : 'unconfirmed'));
      deliver(() => {
        if (!core.endsSessions) settle('no-quorum');
        else if (!core.expireSession(sessionId, 'operator')) settle('unknown');
      });
    });
  }

  #unknown(sessionId: bigint): Refusal {
    const { lastZxid } = this.#parts.core.view;
    const session = formatSessionId(sessionId);
    return {
      status: 404,
      error: `there is no session ${session} as of zxid 0x${lastZxid.toString(16)}; a local session is known to the server of its client alone`,
    };
  }

  #unconfirmed(sessionId: bigint): Refusal {
    const { confirmMs, core } = this.#parts;
    const why = core.view.isServing ? 'no quorum has confirmed it' : 'this server has lost its leader';
    const session = formatSessionId(sessionId);
    return {
      status: 504,
      error: `session ${session} was to be ended, and within ${confirmMs / 1000} s ${why}: it may end yet; ask with GET whether it is still there`,
    };
  }
}

/** Hexadecimal with 0x, as `cons` shows it, or decimal, as admin commands do; null for anything else. */
function parseSessionId(text: string): bigint | null {
  if (!/^(?:0x[0-9a-f]{1,16}|-?\d{1,19})$/i.test(text)) return null;
  const id = BigInt.asIntN(64, BigInt(text));
  // One that is longer than a long would be another one.
  return text.startsWith('0x') || text.startsWith('0X') || id === BigInt(text) ? id : null;
}

function* first<T>(all: Iterable<T>, max: number): Iterable<T> {
  let left = max;
  for (const one of all) {
    if (left-- === 0) return;
    yield one;
  }
}

/** Milliseconds: many times what a commit takes, and less than who asks by HTTP waits. */
export const END_CONFIRM_MS = 5000;
const PATHS_MAX = 20;
const BAD_SESSION = 'expected session=0x…, the id of a session as cons shows it';
const NO_QUORUM: Refusal = {
  status: 503,
  error: 'nothing was asked for: this server has no quorum, is starting or hands over; ask another one, or later',
};
const RESULTS: Readonly<Record<End, AdminEvent['result']>> = {
  ended: 'success',
  unknown: 'failure',
  'no-quorum': 'failure',
  unconfirmed: 'invoked',
};

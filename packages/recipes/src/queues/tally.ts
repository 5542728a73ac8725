import {
  type About,
  BadVersionError,
  type CallOptions,
  type Client,
  ConnectionLossError,
  joinPath,
  NoNodeError,
  NotReadOnlyError,
  RequestTooLargeError,
  SessionLostError,
  type Stat,
  type Transaction,
  TransactionError,
  type TransactionResult,
  ZooKeeperError,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { asDoubtful, asNotApplied } from '../kernel/doubt.ts';
import { isPassing, isSessionEnd } from '../kernel/failures.ts';
import { standOwned } from '../kernel/owned-znode.ts';
import { removeZnode } from '../kernel/removal.ts';

/*
 * Exactly-once transactions where the reply may be lost, and where the effect cannot be recognized afterwards.
 *
 * A protected create does not work for an item of a queue: when its creator looks for it, a consumer may have taken it
 * already, and a missing item looks like one that was never created. Nor may the names that Curator and kazoo read
 * contain a mark. So each client that puts and takes has its own ephemeral znode, its tally, whose version counts its
 * transactions: every transaction begins with a set of the tally at its current version.
 *
 *     set    /jobs-lines/tallies/_c_5b2f…-tally   expects version 7, makes it 8
 *     create /jobs/queue-                         applied with it, or not at all
 *
 * When the reply is lost the same transaction is sent again. If the first was applied, the tally has a later version
 * and the second is refused with BADVERSION, which means "applied, once". If not, the second is applied. No other
 * client writes the tally, and the service applies transactions atomically and in one order, so there is no third case,
 * also when the first one is still in flight.
 *
 * Only when the session ends with the tally while in doubt, the outcome cannot be known; the caller is told so
 * (`unknown`).
 */

/** Applies transactions exactly once, one after the other. */
export class Tally {
  readonly #client: Client;
  readonly #parent: string;
  readonly #makeParent: (call: CallOptions) => Promise<void>;
  /** Settles when the previous transaction has ended, in whatever way. */
  #previous: Promise<unknown> = Promise.resolve();
  #own: OwnTally | null = null;
  /** The last clock reading of the service, with our clock before and after. */
  #lastReading: { readonly serverMs: number; readonly askedMs: number; readonly receivedMs: number } | null = null;

  /**
   * @param parent of the tally; a container that is created with it
   * @param makeParent creates it in another way than with all missing ancestors; `commit` throws what it throws
   */
  constructor(
    client: Client,
    parent: string,
    makeParent = (call: CallOptions): Promise<void> => client.ensurePath(parent, { ...call, mode: 'container' }),
  ) {
    this.#client = client;
    this.#parent = parent;
    this.#makeParent = makeParent;
  }

  /**
   * Applies what `build` adds, exactly once, however often the connection is lost.
   *
   * @returns null when it was applied and the results were lost
   * @throws TransactionError when the service refuses it, with `index` counting what `build` has added;
   *   SessionLostError of outcome 'unknown' when the session ended before the reply; AbortedError, TimeoutError,
   *   ClosedError, of outcome 'not-applied' while nothing was sent; RequestTooLargeError also when servers close the
   *   connection because of its size
   * @param progress updated with its progress
   * @param about the operation named in errors
   */
  commit<Results extends readonly TransactionResult[]>(
    build: (transaction: Transaction<[]>) => Transaction<Results>,
    options: CallOptions = {},
    progress: Progress = { mayBeApplied: false },
    about: About = { operation: 'commit', path: this.#parent },
  ): Promise<Results | null> {
    const attempt = new Attempt(this.#client, options, about);
    const committed = this.#previous.then(() => this.#commit(build, attempt, progress));
    this.#previous = committed.catch(() => {});
    return attempt.waitFor(committed).catch((error: unknown) => {
      throw progress.mayBeApplied ? asDoubtful(error, about) : asNotApplied(error, about);
    });
  }

  /**
   * The current time of the service: one clock for all clients, whatever their own.
   */
  async serverTime(options: CallOptions = {}): Promise<ServerTime> {
    const receivedMs = this.#lastReading?.receivedMs;
    if (receivedMs === undefined || this.#monotonicMs() - receivedMs > SERVER_TIME_AGE_MS_MAX) {
      const about = { operation: 'serverTime', path: this.#parent };
      const attempt = new Attempt(this.#client, options, about);
      const stamped = this.#previous.then(() => this.#stamp(attempt));
      this.#previous = stamped.catch(() => {});
      await attempt.waitFor(stamped).catch((error: unknown) => {
        throw asNotApplied(error, about);
      });
    }
    const nowMs = this.#monotonicMs();
    const { serverMs, askedMs, receivedMs: lastMs } = this.#lastReading!;
    // The service counts whole milliseconds: the one that it reports has begun already.
    return { earliestMs: Math.floor(serverMs + nowMs - lastMs), latestMs: Math.ceil(serverMs + 1 + nowMs - askedMs) };
  }

  async #stamp(attempt: Attempt): Promise<void> {
    for (;;) {
      try {
        const own = await this.#open(attempt);
        let askedMs = 0;
        const stat = await attempt.through((call) => {
          askedMs = this.#monotonicMs();
          return this.#client.set(own.path, '', call);
        });
        own.version = stat.version;
        this.#recordReading(stat.mtime, askedMs);
        return;
      } catch (error) {
        // An attempt may have been applied without a reply: the version is not known, so another tally is used.
        this.#abandon();
        if (error instanceof NotReadOnlyError) await attempt.reconnect();
        else if (!(error instanceof NoNodeError)) throw error;
      }
    }
  }

  /** @param askedMs our clock before the request was sent */
  #recordReading(serverMs: number, askedMs: number): void {
    this.#lastReading = { serverMs, askedMs, receivedMs: this.#monotonicMs() };
  }

  #monotonicMs(): number {
    return this.#client.surroundings.clock.monotonicMs();
  }

  async #commit<Results extends readonly TransactionResult[]>(
    build: (transaction: Transaction<[]>) => Transaction<Results>,
    attempt: Attempt,
    progress: Progress,
  ): Promise<Results | null> {
    let isDoubtful = false;
    /** Consecutive connections that ended while it was in flight. */
    let losses = 0;
    for (;;) {
      // A request that waits in the client for a connection counts as sent.
      if (!isDoubtful) await this.#client.whenConnected(attempt.next());
      const own = isDoubtful && this.#own !== null ? this.#own : await this.#open(attempt);
      const transaction = this.#client.transaction().set(own.path, '', { version: own.version });
      const askedMs = this.#monotonicMs();
      try {
        const built = build(transaction as unknown as Transaction<[]>);
        const limits = isDoubtful ? {} : attempt.next();
        progress.mayBeApplied = true;
        const results: readonly TransactionResult[] = await built.commit(limits);
        const stat = results[0] as Stat;
        own.version = stat.version;
        this.#recordReading(stat.mtime, askedMs);
        return results.slice(1) as readonly TransactionResult[] as Results;
      } catch (error) {
        const refusal =
          error instanceof TransactionError ? this.#onRefused(error, own, isDoubtful, attempt.about) : null;
        if (refusal === 'applied') return null;
        if (refusal === 'again') {
          isDoubtful = false;
          progress.mayBeApplied = false;
          continue;
        }
        if (!(error instanceof ZooKeeperError)) throw error;
        const isUnknown = error.outcome === 'unknown';
        isDoubtful ||= isUnknown;
        progress.mayBeApplied = isDoubtful;
        // A server without a quorum does not know the outcome.
        const isIgnorant = isDoubtful && error instanceof NotReadOnlyError;
        // The caller has cancelled, or the client was closed.
        const isEnd = !isIgnorant && !isPassing(error);
        if (isEnd && isDoubtful) this.#abandon();
        if (isEnd) throw error;
        if (isSessionEnd(error) && isDoubtful) {
          this.#abandon();
          throw unknown(attempt.about, error);
        }
        await this.#recover(attempt, isDoubtful);
        losses = isUnknown && error instanceof ConnectionLossError ? losses + 1 : 0;
        if (losses < LOSSES_SETTLED_FROM) continue;
        const isApplied = await this.#settle(own, attempt.about);
        if (isApplied === true) {
          own.version = nextVersion(own.version);
          return null;
        }
        if (isApplied === null) continue;
        isDoubtful = false;
        progress.mayBeApplied = false;
        if (losses >= LOSSES_MAX) throw new RequestTooLargeError({ ...attempt.about, detail: CLOSED });
      }
    }
  }

  /** @returns 'applied' when an earlier attempt was applied; 'again' when certainly none was */
  #onRefused(refusal: TransactionError, own: OwnTally, isDoubtful: boolean, about: About): 'applied' | 'again' {
    const { index, operations, cause } = refusal;
    if (index > 0) throw new TransactionError(index - 1, operations.slice(1), cause);
    if (isDoubtful && cause instanceof BadVersionError) {
      own.version = nextVersion(own.version);
      return 'applied';
    }
    if (isDoubtful && cause instanceof NoNodeError && this.#isEnded(own)) {
      this.#own = null;
      return 'again';
    }
    this.#abandon();
    if (isDoubtful) throw unknown(about, refusal);
    if (cause instanceof NoNodeError || cause instanceof BadVersionError) return 'again';
    throw refusal;
  }

  /**
   * Resolves the doubt. A server closes the connection without a reply when a request is larger than its limit, so
   * retrying it would never end. The deletion of the tally is small, and shows by its version whether the request was
   * applied; after it, no request still in flight can be applied.
   *
   * @returns null when the connection was lost again
   */
  async #settle(own: OwnTally, about: About): Promise<boolean | null> {
    try {
      await this.#client.delete(own.path, { version: own.version });
      this.#own = null;
      return false;
    } catch (error) {
      if (error instanceof BadVersionError) return true;
      if (isPassing(error) || error instanceof NotReadOnlyError) {
        own.isEnding ||= error.outcome === 'unknown';
        return null;
      }
      if (error instanceof NoNodeError && this.#isEnded(own)) {
        this.#own = null;
        return false;
      }
      this.#abandon();
      if (error instanceof NoNodeError) throw unknown(about, error, 'the tally was deleted in the moment of a doubt');
      throw error;
    }
  }

  /** For a missing tally: it was deleted by `#settle`, whose reply was lost, and not with its session. */
  #isEnded(own: OwnTally): boolean {
    return own.isEnding && this.#client.session?.id === own.sessionId && !this.#client.lostSignal.aborted;
  }

  /** In doubt the caller's deadline does not apply: what was begun is completed, in the background if need be. */
  async #recover(attempt: Attempt, isDoubtful: boolean): Promise<void> {
    const waiting = isDoubtful ? new Attempt(this.#client, {}, attempt.about) : attempt;
    await waiting.reconnect();
  }

  async #open(attempt: Attempt): Promise<OwnTally> {
    const client = this.#client;
    if (this.#own !== null && this.#own.sessionId === client.session?.id) return this.#own;
    const made = await standOwned(attempt, joinPath(this.#parent, 'tally'), {}, this.#makeParent);
    const { version, ephemeralOwner: sessionId } = made.stat;
    this.#own = { path: made.path, version, sessionId, isEnding: false };
    return this.#own;
  }

  /** Its version is no longer known, or may change without our knowledge: the next transaction uses another one. */
  #abandon(): void {
    if (this.#own !== null) void removeZnode(this.#client, this.#own.path, this.#own.sessionId);
    this.#own = null;
  }
}

/** The bounds of the service's clock, milliseconds since 1970: they differ by the time of one request. */
export interface ServerTime {
  /** For a client that must not be too early. */
  readonly earliestMs: number;
  /** For a client that sets a time in the future. */
  readonly latestMs: number;
}

/** The progress of a `commit`. */
export interface Progress {
  /** It is in flight, or was without a reply. */
  mayBeApplied: boolean;
}

interface OwnTally {
  readonly path: string;
  readonly sessionId: bigint;
  version: number;
  /** Its deletion was sent, and may have been applied. */
  isEnding: boolean;
}

/** After this, the clock of the service is read again: clocks drift, and leaders change. */
const SERVER_TIME_AGE_MS_MAX = 10_000;

/** From this many consecutive losses on, the doubt is resolved before a retry. */
const LOSSES_SETTLED_FROM = 2;
/** After this many it is not retried: by then the service has answered smaller requests several times in between. */
const LOSSES_MAX = 5;
const CLOSED = `the connection was lost ${LOSSES_MAX} times in a row while this was in flight, and smaller requests were answered`;

function unknown(
  about: About,
  cause: ZooKeeperError,
  detail = 'the session ended before the answer',
): SessionLostError {
  return new SessionLostError({ ...about, outcome: 'unknown', detail, cause });
}

/** Versions are 32 bits wide, and servers skip −1, which means "any". */
function nextVersion(version: number): number {
  return version === -2 ? 0 : (version + 1) | 0;
}

import { type ClientInfo, OpCode } from '@meerkat/protocol';
import { makeAuth } from './auth.ts';
import { call } from './calls.ts';
import type { ClientSession, Stall } from './client-session.ts';
import type { Data } from './data.ts';
import { checkOptions } from './known-options.ts';
import { readLease } from './lease.ts';
import type { HostPort, Target } from './machine/ports.ts';
import type { Znode } from './machine/replies.ts';
import { type ClientState, isConnectedState, type StateChange } from './machine/state.ts';
import { makeError } from './make-error.ts';
import { changeMembership, readMembership } from './membership.ts';
import type { ReconfigOptions } from './operations.ts';
import type { CallOptions, ReadOptions } from './requester.ts';
import { type RetryOptions, type RetryPolicy, withRetry } from './retry.ts';
import { closeSession, detachSession } from './session-end.ts';
import { SessionInfo } from './session-info.ts';
import { iterateStates, waitForState } from './states.ts';
import type { Surroundings } from './surroundings.ts';

/**
 * The part of a client that is independent of znodes: its session, its connection, the ensemble. It is shared by
 * clients with different chroots, created by `withChroot`.
 */
export abstract class SessionClient implements AsyncDisposable {
  readonly #session: ClientSession;

  constructor(session: ClientSession) {
    this.#session = session;
  }

  /* -------------------------------------------------------------------------------------------- the session ---- */

  get state(): ClientState {
    return this.#session.state;
  }

  /** null until a server has created one, and between the loss of one and the next. */
  get session(): SessionInfo | null {
    const { identity, sessionTimeoutMs } = this.#session.session;
    return identity === null ? null : new SessionInfo(identity, sessionTimeoutMs);
  }

  /** The server of the current connection. */
  get server(): Target | null {
    return this.#session.session.server;
  }

  /**
   * The largest zxid of any reply so far: the connected server had applied everything up to it. All watch events of
   * this client up to there have arrived.
   */
  get lastZxid(): bigint {
    return BigInt(this.#session.session.lastZxid);
  }

  /**
   * Aborts when the session may no longer be ours: at `lost` and `auth-failed`, at the beginning of `close`, and while
   * `read-only` or after that as soon as no server with a quorum has answered for the session timeout. Code that
   * depends on ownership takes the signal when it starts; after the next connection to a server with a quorum there is
   * another.
   */
  get lostSignal(): AbortSignal {
    return this.#session.lostSignal;
  }

  /**
   * When `lostSignal` aborts unless a server with a quorum answers before: milliseconds of `surroundings.clock`, −∞
   * when it has already aborted. After a pause of the process this is correct before the first timer has fired.
   */
  get lostAtMs(): number {
    return this.#session.session.sureUntilMs;
  }

  /** The clock and random numbers of this client: recipes and other layers use them, too. */
  get surroundings(): Surroundings {
    return this.#session.settings;
  }

  /** Calls back at every change of state. The same listener twice is called once. */
  onState(listener: (change: StateChange) => void): Disposable {
    return this.#session.stateListeners.add(listener);
  }

  /**
   * Calls back when the event loop of this process was blocked so long that a ping was late by more than a third of the
   * session timeout. A stall of two thirds is always reported.
   */
  onStall(listener: (stall: Stall) => void): Disposable {
    return this.#session.stallListeners.add(listener);
  }

  /** Every change of state from now on; ends after `closed` and `auth-failed`. */
  states(options: { readonly signal?: AbortSignal } = {}): AsyncIterableIterator<StateChange> {
    return iterateStates(this.#session, options.signal);
  }

  /**
   * Resolves as soon as there is a connection; at once when there is one.
   *
   * @example
   * for (const job of jobs) {
   *   await client.whenConnected(); // pauses while the connection is suspended
   *   await run(job);
   * }
   */
  async whenConnected(options: CallOptions = {}): Promise<void> {
    checkOptions('whenConnected', options, { operation: 'whenConnected', path: null });
    return await waitForState(this.#session, isConnectedState, 'whenConnected', options);
  }

  /**
   * Continues the same session on another server: the given one, or the next in turn. Requests in flight are answered
   * first. Resolves when the session is connected again.
   */
  async moveTo(server: HostPort | null = null, options: CallOptions = {}): Promise<void> {
    checkOptions('moveTo', options, { operation: 'moveTo', path: null });
    const moved = waitForState(this.#session, isConnectedState, 'moveTo', options, true);
    this.#session.session.moveTo(server);
    this.#session.host.armTimer();
    await moved;
  }

  /**
   * Ends the session: requests in flight are answered, ephemeral znodes are deleted, watches end. `lostSignal` aborts
   * at once, since the service may give the session's ownership away before it replies. Without a connection the
   * session ends on the servers after its timeout.
   *
   * @param options `timeoutMs`: how long the server may take; then the connection is closed. Default: the session
   *   timeout
   */
  async close(options: CallOptions = {}): Promise<void> {
    return await closeSession(this.#session, options);
  }

  /**
   * Hands the session over to another process: ends this client but not the session, which lives on the servers for its
   * timeout and whose ephemeral znodes stay. Requests in flight are answered first; requests that wait for a connection
   * are refused.
   *
   * @returns what `connect` needs to resume it: the option `session`
   * @throws ClosedError, SessionLostError when there is no session to leave
   * @example
   * const session = await client.detach();
   * const successor = await connect(servers, { session });
   */
  async detach(options: CallOptions = {}): Promise<SessionInfo> {
    return await detachSession(this.#session, this.session, options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /* ----------------------------------------------------------------------------------------- the connection ---- */

  /** The time of a round trip to the server, in milliseconds. Rejects while there is no connection. */
  ping(): Promise<number> {
    const { clock, session } = this.#session;
    const startedMs = clock.monotonicMs();
    return new Promise((resolve, reject) => {
      session.calls.ping((failure) => {
        if (failure === null) resolve(clock.monotonicMs() - startedMs);
        else reject(makeError(failure, { operation: 'ping', path: null }));
      });
    });
  }

  /** The identities of this connection, as known to the server. Needs a server of 3.7 or newer. */
  async whoAmI(options?: CallOptions): Promise<readonly ClientInfo[]> {
    checkOptions('whoAmI', options, WHO_AM_I);
    const plan = { request: { op: OpCode.whoAmI }, about: WHO_AM_I, listener: null };
    return await call(this.#session, plan, options);
  }

  /**
   * Authenticates to the service, now and on every later connection. A refusal ends the client (`auth-failed`).
   *
   * @example
   * await client.addAuth('digest', 'ann:secret');
   */
  addAuth(scheme: string, auth: Data): Promise<void> {
    return new Promise((resolve, reject) => {
      const made = makeAuth(scheme, auth, 'addAuth');
      this.#session.session.calls.addCredentials(made.scheme, made.auth, (failure) => {
        if (failure === null) resolve();
        else reject(makeError(failure, { operation: 'addAuth', path: null }));
      });
    });
  }

  /**
   * Retries an operation until it succeeds, as long as a retry is safe and may help.
   *
   * @param attempt gets its number, from 1
   * @example
   * await client.retry(retry.exponential({ attemptsMax: 5 }), () => client.set('/config', 'on', { version: 3 }));
   */
  async retry<T>(policy: RetryPolicy, attempt: (number: number) => Promise<T>, options?: RetryOptions): Promise<T> {
    checkOptions('retry', options, { operation: 'retry', path: null });
    return await withRetry(policy, attempt, this.surroundings, options);
  }

  /* -------------------------------------------------------------------------------------------- the ensemble ---- */

  /** The membership of the ensemble, as text: `server.1=…` lines and `version=…`. */
  async config(options?: ReadOptions): Promise<Znode> {
    return await readMembership(this.#session, options);
  }

  /**
   * Whether the servers guarantee that a session does not end while this client is certain of it: by leases, which all
   * voters of the ensemble hold, or because there is only one server. Then recipes need no `marginMs` for servers that
   * are cut off. It may change when servers are replaced; see docs/leases.md.
   *
   * @returns false on Apache's servers, and in an ensemble with them
   */
  async hasLeasedAnswers(options?: CallOptions): Promise<boolean> {
    return await readLease(this.#session, options);
  }

  /**
   * Changes the membership of the ensemble. Needs `reconfigEnabled=true` and the right to write /zookeeper/config.
   *
   * @returns the new configuration
   * @throws ReconfigDisabledError, ReconfigInProgressError, NewConfigNoQuorumError, BadVersionError
   */
  async reconfig(options: ReconfigOptions): Promise<Znode> {
    return await changeMembership(this.#session, options);
  }
}

const WHO_AM_I = { operation: 'whoAmI', path: null } as const;

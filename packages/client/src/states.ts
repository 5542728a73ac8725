import { onAbort } from './abort.ts';
import { checkTimeout } from './bounds.ts';
import type { ClientSession } from './client-session.ts';
import type { FailureKind } from './machine/call.ts';
import { type ClientState, isFinalState, type StateChange } from './machine/state.ts';
import { makeError } from './make-error.ts';
import type { CallOptions } from './requester.ts';

/**
 * Resolves when the session is in a matching state; rejects when it ends in one that does not match.
 *
 * @param onlyNext ignores the current state
 */
export function waitForState(
  session: ClientSession,
  fits: (state: ClientState) => boolean,
  operation: string,
  options: CallOptions,
  onlyNext = false,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const { signal, timeoutMs } = options;
    checkTimeout(timeoutMs);
    const fail = (kind: FailureKind, detail: string, cause?: unknown): void => {
      release();
      reject(makeError({ kind, wasSent: false, server: null, detail }, { operation, path: null }, cause));
    };
    const abandon = (): void => fail('aborted', 'the signal was aborted', signal?.reason);
    const look = (state: ClientState): void => {
      if (fits(state)) {
        release();
        resolve();
      } else if (isFinalState(state)) fail(state === 'closed' ? 'closed' : 'auth-failed', session.reason);
    };
    const subscription = session.stateListeners.add((change) => look(change.state));
    const cancelTimer =
      timeoutMs === undefined
        ? null
        : session.clock.schedule(timeoutMs, () =>
            fail('timed-out', `still ${session.state} after ${timeoutMs} ms: ${session.reason}`),
          );
    const release = (): void => {
      subscription[Symbol.dispose]();
      cancelTimer?.();
      releaseSignal?.();
    };
    const releaseSignal = signal === undefined || signal.aborted ? null : onAbort(signal, abandon);
    if (signal?.aborted === true) abandon();
    else if (!onlyNext || isFinalState(session.state)) look(session.state);
  });
}

/** Every change of state from now on; ends after the last one, and when the signal is aborted. */
export function iterateStates(
  session: ClientSession,
  signal: AbortSignal | undefined,
): AsyncIterableIterator<StateChange> {
  const changes: StateChange[] = [];
  let isOver = isFinalState(session.state);
  /** Waiters for a change, oldest first; there are no changes then. */
  let waiting: ((result: IteratorResult<StateChange>) => void)[] = [];
  const subscription = session.stateListeners.add((change) => {
    const resolve = waiting.shift();
    if (resolve === undefined) changes.push(change);
    else resolve({ done: false, value: change });
    if (isFinalState(change.state)) end();
  });
  const end = (): void => {
    isOver = true;
    subscription[Symbol.dispose]();
    releaseSignal();
    const woken = waiting;
    waiting = [];
    for (const resolve of woken) resolve(DONE);
  };
  let releaseSignal = (): void => {};
  if (isOver) end();
  else releaseSignal = onAbort(signal, end);
  return {
    next(): Promise<IteratorResult<StateChange>> {
      const change = changes.shift();
      if (change !== undefined) return Promise.resolve({ done: false, value: change });
      if (isOver) return Promise.resolve(DONE);
      return new Promise((resolve) => {
        waiting.push(resolve);
      });
    },
    return(): Promise<IteratorResult<StateChange>> {
      changes.length = 0;
      end();
      return Promise.resolve(DONE);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

const DONE: IteratorResult<StateChange> = { done: true, value: undefined };

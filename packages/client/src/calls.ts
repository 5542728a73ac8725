import { ErrorCode, OpCode, type Request } from '@meerkat/protocol';
import { onAbort } from './abort.ts';
import { checkTimeout } from './bounds.ts';
import type { ClientSession } from './client-session.ts';
import { isTraced, traceRequest } from './diagnostics/trace-request.ts';
import { ConnectionLossError } from './errors.ts';
import { Call, type CallFailure } from './machine/call.ts';
import { LOSSES_MAX } from './machine/connection.ts';
import { isRepeatable, type ReplyReader, replyReaderOf } from './machine/replies.ts';
import type { WatchListener } from './machine/watch-listener.ts';
import { makeError } from './make-error.ts';
import type { About, CallOptions, ReadOptions } from './requester.ts';
import type { ZooKeeperError } from './zookeeper-error.ts';

/** How one request is sent, besides its record. */
export interface CallPlan {
  readonly request: Request;
  readonly about: About;
  readonly listener: WatchListener | null;
  /** Reads the reply. Default: as for every request of this operation. */
  readonly read?: ReplyReader | undefined;
  /** The result when the server answers NONODE; undefined: that is an error. */
  readonly whenMissing?: unknown;
}

/** Sends one request. The promise rejects with a ZooKeeperError. */
export function call<T>(session: ClientSession, plan: CallPlan, options: CallOptions | undefined): Promise<T> {
  if (isTraced()) return traceRequest(plan.about, session.session, () => callUntraced(session, plan, options));
  return callUntraced(session, plan, options);
}

function callUntraced<T>(session: ClientSession, plan: CallPlan, options: CallOptions | undefined): Promise<T> {
  return new Promise((resolve) => {
    submit(session, plan, isRepeatable(plan.request), options, resolve, null);
  });
}

/**
 * A promise that rejects with the error, which has the stack of the code that awaits it. The error was created where
 * the reply was read: its stack shows this client only. In a microtask whose promise is already awaited, V8 includes
 * the awaiting functions. Only failures pay for that; they are settled four microtasks later than a result.
 */
async function rejectWithCaller(error: ZooKeeperError): Promise<never> {
  await undefined;
  await undefined;
  Error.captureStackTrace(error, rejectWithCaller);
  throw error;
}

/** Sends a read; with `read: 'linearizable'` a sync goes before it in the same round trip. */
export function callRead<T>(
  session: ClientSession,
  plan: CallPlan,
  path: string,
  options: ReadOptions | undefined,
): Promise<T> {
  if (options?.read !== 'linearizable') return call(session, plan, options);
  const run = (): Promise<T> => callLinearizable(session, plan, path, options);
  return isTraced() ? traceRequest(plan.about, session.session, run) : run();
}

/**
 * A sync and a read, sent together, on one connection. When that connection breaks before both are answered they are
 * sent again together: a read on one server means nothing after a sync on another.
 *
 * The promise is settled at the second reply, so that promises settle in the order of the replies, as always.
 */
function callLinearizable<T>(session: ClientSession, plan: CallPlan, path: string, options: ReadOptions): Promise<T> {
  const sync: CallPlan = {
    request: { op: OpCode.sync, path },
    about: plan.about,
    listener: null,
  };
  const startedMs = session.clock.monotonicMs();
  return new Promise((resolve) => {
    let losses = 0;
    const attempt = (): void => {
      const left = leftOf(options, session.clock.monotonicMs() - startedMs);
      let missing = 2;
      let result: T;
      let failure: ZooKeeperError | null = null;
      const onEnded = (): void => {
        if (--missing > 0) return;
        if (failure === null) resolve(result);
        else if (failure instanceof ConnectionLossError && ++losses < LOSSES_MAX) queueMicrotask(attempt);
        else resolve(rejectWithCaller(failure));
      };
      const onFailure = (error: ZooKeeperError): void => {
        failure ??= error;
        onEnded();
      };
      const onResult = (value: T): void => {
        result = value;
        onEnded();
      };
      submit(session, sync, false, left, onEnded, onFailure);
      submit(session, plan, false, left, onResult, onFailure);
    };
    attempt();
  });
}

function leftOf(options: CallOptions, passedMs: number): CallOptions {
  if (options.timeoutMs === undefined) return options;
  return { signal: options.signal, timeoutMs: Math.max(options.timeoutMs - passedMs, 0) };
}

/**
 * Passes a request to the session.
 *
 * @param resolve of the promise; the only closure that is created for a request without limits
 * @param reject null: the promise rejects by being resolved with one that does
 */
export function submit(
  session: ClientSession,
  plan: CallPlan,
  repeatable: boolean,
  options: CallOptions | undefined,
  resolve: (result: never) => void,
  reject: ((error: ZooKeeperError) => void) | null,
): void {
  const onFailure = (failure: CallFailure): void => {
    if (plan.whenMissing !== undefined && failure.kind === 'refused' && failure.code === ErrorCode.noNode) {
      (resolve as (result: unknown) => void)(plan.whenMissing);
      return;
    }
    const error = makeError(failure, plan.about, failure.kind === 'aborted' ? options?.signal?.reason : undefined);
    if (reject !== null) reject(error);
    else (resolve as (result: Promise<never>) => void)(rejectWithCaller(error));
  };
  if (options === undefined || (options.signal === undefined && options.timeoutMs === undefined)) {
    const made = new Call(plan.request, readerOf(plan), resolve, onFailure, plan.listener, repeatable);
    session.session.calls.submit(made);
    return;
  }
  submitLimited(session, plan, repeatable, options, resolve, onFailure);
}

function readerOf({ request, read }: CallPlan): ReplyReader {
  return read ?? replyReaderOf(request);
}

/** A request that is cancelled at its timeout or by its signal. */
function submitLimited(
  session: ClientSession,
  plan: CallPlan,
  repeatable: boolean,
  options: CallOptions,
  resolve: (result: never) => void,
  onFailure: (failure: CallFailure) => void,
): void {
  const { signal, timeoutMs } = options;
  checkTimeout(timeoutMs);
  const release = (): void => {
    cancelTimer?.();
    releaseSignal?.();
  };
  const made = new Call(
    plan.request,
    readerOf(plan),
    (result) => {
      release();
      resolve(result);
    },
    (failure) => {
      release();
      onFailure(failure);
    },
    plan.listener,
    repeatable,
  );
  const abandon = (): void => session.session.calls.cancel(made, 'aborted', 'the signal was aborted');
  const onTimeout = (): void =>
    session.session.calls.cancel(made, 'timed-out', `no answer within ${Math.round(timeoutMs ?? 0)} ms`);
  let cancelTimer: (() => void) | undefined;
  let releaseSignal: (() => void) | undefined;
  if (signal?.aborted === true) {
    abandon();
    return;
  }
  if (signal !== undefined) releaseSignal = onAbort(signal, abandon);
  if (timeoutMs !== undefined) cancelTimer = session.clock.schedule(Math.max(timeoutMs, 0), onTimeout);
  session.session.calls.submit(made);
}

import { createContext, useContext, useEffect, useRef, useState } from 'react';
import type { ClusterInfo, Failure, Hello, StreamMessage, Subscription } from '../api/messages.ts';
import { failureOf } from './api.ts';
import { STREAM } from './stream.ts';

/** The context of every view. */
export interface Session {
  readonly hello: Hello;
  readonly cluster: ClusterInfo;
  readonly isWritable: boolean;
  /** Shows a line at the bottom. `stays`: until it is closed. */
  notify(
    text: string,
    options?: { readonly undo?: boolean; readonly isError?: boolean; readonly stays?: boolean },
  ): void;
  fail(error: unknown): void;
  setHello(hello: Hello): void;
}

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('a view outside of a session');
  return session;
}

/** Subscribes while the component is mounted. */
export function useSubscription(subscription: Subscription | null, onMessage: (message: StreamMessage) => void): void {
  const listener = useRef(onMessage);
  listener.current = onMessage;
  const key = subscription === null ? '' : JSON.stringify(subscription);
  useEffect(() => {
    if (key === '') return undefined;
    return STREAM.subscribe(JSON.parse(key) as Subscription, (message) => listener.current(message));
  }, [key]);
}

export interface Resource<T> {
  readonly value: T | null;
  readonly failure: Failure | null;
  reload(): void;
}

/** Data that is read again when `key` changes; the old data stays until the new has arrived. */
export function useResource<T>(key: string | null, read: (signal: AbortSignal) => Promise<T>): Resource<T> {
  const [state, setState] = useState<{ readonly value: T | null; readonly failure: Failure | null }>(NOTHING);
  const [round, setRound] = useState(0);
  const reader = useRef(read);
  reader.current = read;
  useEffect(() => {
    if (key === null) return undefined;
    const controller = new AbortController();
    reader.current(controller.signal).then(
      (value) => controller.signal.aborted || setState({ value, failure: null }),
      (error: unknown) =>
        controller.signal.aborted || setState((last) => ({ value: last.value, failure: failureOf(error) })),
    );
    return () => controller.abort();
  }, [key, round]);
  return { ...state, reload: () => setRound((n) => n + 1) };
}

/** Retries a failed read after a while; not if it is forbidden or does not exist. */
export function useRetry({ failure, reload }: Resource<unknown>): void {
  const again = useRef(reload);
  again.current = reload;
  useEffect(() => {
    if (failure === null || failure.code === 'NOAUTH' || failure.code === 'NONODE') return undefined;
    const timer = setTimeout(() => again.current(), RETRY_MS);
    return () => clearTimeout(timer);
  }, [failure]);
}

const RETRY_MS = 2000;
const NOTHING = { value: null, failure: null };

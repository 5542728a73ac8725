import type { CallOptions, Client } from '@meerkat/client';

/** A client with one request that waits for an action, or fails with its error. */
export interface SteppedClient {
  readonly client: Client;
  /** Runs the action before the nth request from now on, which is sent then. */
  beforeRequest(nth: number, action: () => Promise<unknown>): void;
  /** Runs the action after the reply to the nth request from now on, which is delivered then. */
  afterRequest(nth: number, action: () => Promise<unknown>): void;
}

export function stepClient(stepped: Client): SteppedClient {
  let toCome = 0;
  let around = (request: () => Promise<unknown>): Promise<unknown> => request();
  const send = (request: () => Promise<unknown>): Promise<unknown> => (--toCome === 0 ? around(request) : request());
  const client = new Proxy(stepped, {
    get: (target, key) => {
      const member: unknown = Reflect.get(target, key, target);
      if (typeof member !== 'function') return member;
      const call = (...args: unknown[]): Promise<unknown> => Reflect.apply(member, target, args);
      if (key === 'transaction') {
        return () => {
          const transaction = target.transaction();
          const commit = transaction.commit.bind(transaction);
          return Object.assign(transaction, { commit: (options?: CallOptions) => send(() => commit(options)) });
        };
      }
      return REQUESTS.has(key) ? (...args: unknown[]) => send(() => call(...args)) : call;
    },
  });
  return {
    client,
    beforeRequest: (nth, action) => {
      toCome = nth;
      around = (request) => action().then(request);
    },
    afterRequest: (nth, action) => {
      toCome = nth;
      around = (request) => request().finally(action);
    },
  };
}

const REQUESTS: ReadonlySet<string | symbol> = new Set([
  'get',
  'exists',
  'children',
  'create',
  'createProtected',
  'createParents',
  'ensurePath',
  'set',
  'delete',
]);

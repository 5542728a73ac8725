import type { Client } from '@meerkat/client';

/** A client of which each request waits for something else to be done. */
export interface SteppedClient {
  readonly client: Client;
  /** Does it before the nth request from now on, and sends that then. */
  beforeRequest(nth: number, action: () => Promise<unknown>): void;
}

export function stepClient(stepped: Client): SteppedClient {
  let toCome = 0;
  let action = (): Promise<unknown> => Promise.resolve();
  const send = <T>(request: () => T): T | Promise<T> => (--toCome === 0 ? action().then(request) : request());
  const client = new Proxy(stepped, {
    get: (target, key) => {
      const member: unknown = Reflect.get(target, key, target);
      if (key === 'transaction') {
        return () => {
          const transaction = target.transaction();
          const commit = transaction.commit.bind(transaction);
          return Object.assign(transaction, {
            commit: (...args: Parameters<typeof commit>) => send(() => commit(...args)),
          });
        };
      }
      if (typeof member !== 'function') return member;
      const call = (...args: unknown[]): unknown => Reflect.apply(member, target, args);
      return REQUESTS.has(key) ? (...args: unknown[]) => send(() => call(...args)) : call;
    },
  });
  return {
    client,
    beforeRequest: (nth, then) => {
      toCome = nth;
      action = then;
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

import { type Client, NoNodeError, parentOf, type ReadOptions, ThrottledError } from '@meerkat/client';

/**
 * A client whose first creation below a parent is in doubt, before it learns that the parent is missing. A recipe's
 * attempts to remove the znode are delayed until `relent`.
 */
export interface DoubtedClient {
  readonly client: Client;
  relent(): void;
}

export function doubtClient(doubted: Client, parent: string): DoubtedClient {
  let isFirst = true;
  let isBusy = true;
  const client = new Proxy(doubted, {
    get: (target, key) => {
      const member: unknown = Reflect.get(target, key, target);
      if (typeof member !== 'function') return member;
      const call = (...args: unknown[]): unknown => Reflect.apply(member, target, args);
      if (key === 'createProtected') {
        return (path: string, ...rest: unknown[]) => {
          if (!isFirst || parentOf(path) !== parent) return call(path, ...rest);
          isFirst = false;
          return Promise.reject(new NoNodeError({ operation: key, path: parent, outcome: 'unknown' }));
        };
      }
      if (key === 'children') {
        return (path: string, options: ReadOptions = {}) =>
          isBusy && path === parent && options.read === 'linearizable'
            ? Promise.reject(new ThrottledError({ operation: key, path }))
            : call(path, options);
      }
      return call;
    },
  });
  return {
    client,
    relent: () => {
      isBusy = false;
    },
  };
}

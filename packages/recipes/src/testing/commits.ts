import { type Client, ConnectionLossError } from '@meerkat/client';

type Results = readonly unknown[];

/**
 * Intercepts the commits of a client's transactions from now on.
 *
 * @param around sends the commit, or not, and returns the client's result
 * @returns a function that ends this
 */
export function aroundCommits(client: Client, around: (send: () => Promise<Results>) => Promise<Results>): () => void {
  const begin = client.transaction.bind(client);
  client.transaction = () => {
    const made = begin();
    const commit = made.commit.bind(made);
    made.commit = (options) => around(() => commit(options)) as Promise<[]>;
    return made;
  };
  return () => {
    client.transaction = begin;
  };
}

/** The same for the next commit of the next transaction only. */
export function aroundNextCommit(client: Client, around: (send: () => Promise<Results>) => Promise<Results>): void {
  const begin = client.transaction.bind(client);
  client.transaction = () => {
    client.transaction = begin;
    const made = begin();
    const commit = made.commit.bind(made);
    made.commit = (options) => {
      made.commit = commit;
      return around(() => commit(options)) as Promise<[]>;
    };
    return made;
  };
}

/** The error of a client whose transaction, or its reply, was lost with the connection. */
export function lostCommit(): ConnectionLossError {
  return new ConnectionLossError({ operation: 'transaction', path: null, outcome: 'unknown' });
}

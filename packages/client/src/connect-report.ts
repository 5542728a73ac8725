import type { AttemptFailure, FailedAttempt } from './machine/ports.ts';

/**
 * Describes why no server could be reached: each address once, why it failed and how often, then what to do.
 *
 *     no server answered within 4 attempts:
 *       zk1:2181 (10.0.0.1): connection refused, 2 times (connect ECONNREFUSED 10.0.0.1:2181)
 *       zk2:2181: the name could not be looked up, 2 times (getaddrinfo ENOTFOUND zk2)
 *     Is the server running there, and is 2181 its client port? …
 */
export function describeAttempts(attempts: readonly FailedAttempt[]): string {
  if (attempts.length === 0) return 'no server was tried. Give at least one, and more time.';
  const times = new Map<string, { readonly attempt: FailedAttempt; count: number }>();
  for (const attempt of attempts) {
    const key = `${attempt.host} ${attempt.port} ${attempt.address} ${attempt.failure} ${attempt.detail}`;
    const known = times.get(key);
    if (known === undefined) times.set(key, { attempt, count: 1 });
    else known.count++;
  }
  const lines = [...times.values()].map(({ attempt, count }) => `  ${describeAttempt(attempt, count)}`);
  const failures = new Set(attempts.map((attempt) => attempt.failure));
  const advice = [...failures].map((failure) => ATTEMPT_FAILURES[failure].advice);
  const count = attempts.length === 1 ? 'the one attempt' : `${attempts.length} attempts`;
  return [`no server answered within ${count}:`, ...lines, ...advice].join('\n');
}

function describeAttempt(attempt: FailedAttempt, count: number): string {
  const host = attempt.host.includes(':') ? `[${attempt.host}]` : attempt.host;
  const address = attempt.address === null || attempt.address === attempt.host ? '' : ` (${attempt.address})`;
  const repeated = count === 1 ? '' : `, ${count} times`;
  const detail = attempt.detail === '' ? '' : ` (${attempt.detail})`;
  return `${host}:${attempt.port}${address}: ${ATTEMPT_FAILURES[attempt.failure].meaning}${repeated}${detail}`;
}

const ATTEMPT_FAILURES: Readonly<Record<AttemptFailure, { readonly meaning: string; readonly advice: string }>> = {
  dns: {
    meaning: 'the name could not be looked up',
    advice: 'A name without an address: check its spelling and the resolver of this machine.',
  },
  refused: {
    meaning: 'connection refused',
    advice: 'Connection refused: check that the server runs there and that the port is its client port.',
  },
  unreachable: {
    meaning: 'unreachable',
    advice: 'Unreachable: check routes and firewalls between this machine and the server.',
  },
  'timed-out': {
    meaning: 'no answer in time',
    advice: 'No answer in time: a firewall may drop the packets, or the server is overloaded or frozen.',
  },
  tls: {
    meaning: 'the TLS handshake failed',
    advice: 'TLS: check that the port is the secure one, and the certificates of both sides.',
  },
  'not-zookeeper': {
    meaning: "what answers there does not speak ZooKeeper's protocol",
    advice:
      'Not ZooKeeper: check the port; a secure port needs the option tls, an election, quorum or admin port never works.',
  },
  'not-serving': {
    meaning: 'the server closed the connection without an answer',
    advice:
      'Closed without an answer: the server has no quorum, is still starting, allows no more connections from here, or speaks TLS only on this port.',
  },
  sasl: {
    meaning: 'SASL authentication failed',
    advice: 'SASL: check the credentials, and the mechanisms that the server offers.',
  },
};

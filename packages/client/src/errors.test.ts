import { ErrorCode } from '@meerkat/protocol';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { ERRORS } from './error-table.ts';
import {
  AbortedError,
  type AnyZooKeeperError,
  BadVersionError,
  ConnectError,
  ConnectionLossError,
  isZooKeeperError,
  NoNodeError,
  SessionExpiredError,
  SessionLostError,
  TimeoutError,
  UnknownCodeError,
} from './errors.ts';
import type { FailureKind } from './machine/call.ts';
import type { FailedAttempt } from './machine/ports.ts';
import { asDoubtful, makeError, retryClassOf } from './make-error.ts';
import { ZooKeeperError } from './zookeeper-error.ts';

const about = { operation: 'set', path: '/config' };
const server = '10.0.0.7:2181';

describe('an error', () => {
  test('says what was attempted, on what, what was found, what to do, and who reported it', () => {
    const error = makeError({ kind: 'refused', code: ErrorCode.badVersion, server }, about);
    expect(error).toBeInstanceOf(BadVersionError);
    expect(error.message).toBe(
      'set /config: the znode has another version than expected: another client has changed it; read it again and decide ' +
        'again (BADVERSION -103, 10.0.0.7:2181)',
    );
    expect(error).toMatchObject({
      name: 'BadVersionError',
      code: 'BADVERSION',
      errorCode: -103,
      operation: 'set',
      path: '/config',
      server,
      outcome: 'not-applied',
      isRetryable: false,
    });
  });

  test('has its name in the first line of its stack', () => {
    expect(new NoNodeError(about).stack).toMatch(/^NoNodeError: set \/config: there is no such znode/);
  });

  // Numbers and names from KeeperException.Code.
  test.each([
    [-1, 'SYSTEMERROR'],
    [-2, 'RUNTIMEINCONSISTENCY'],
    [-3, 'DATAINCONSISTENCY'],
    [-4, 'CONNECTIONLOSS'],
    [-5, 'MARSHALLINGERROR'],
    [-6, 'UNIMPLEMENTED'],
    [-7, 'OPERATIONTIMEOUT'],
    [-8, 'BADARGUMENTS'],
    [-12, 'UNKNOWNSESSION'],
    [-13, 'NEWCONFIGNOQUORUM'],
    [-14, 'RECONFIGINPROGRESS'],
    [-100, 'APIERROR'],
    [-101, 'NONODE'],
    [-102, 'NOAUTH'],
    [-103, 'BADVERSION'],
    [-108, 'NOCHILDRENFOREPHEMERALS'],
    [-110, 'NODEEXISTS'],
    [-111, 'NOTEMPTY'],
    [-112, 'SESSIONEXPIRED'],
    [-113, 'INVALIDCALLBACK'],
    [-114, 'INVALIDACL'],
    [-115, 'AUTHFAILED'],
    [-118, 'SESSIONMOVED'],
    [-119, 'NOTREADONLY'],
    [-120, 'EPHEMERALONLOCALSESSION'],
    [-121, 'NOWATCHER'],
    [-122, 'REQUESTTIMEOUT'],
    [-123, 'RECONFIGDISABLED'],
    [-124, 'SESSIONCLOSEDREQUIRESASLAUTH'],
    [-125, 'QUOTAEXCEEDED'],
    [-127, 'THROTTLEDOP'],
  ])('with the number %d is a %s', (number, code) => {
    const error = makeError({ kind: 'refused', code: number, server }, about);
    expect(error).toMatchObject({ code, errorCode: number });
    expect(error.constructor).not.toBe(ZooKeeperError);
    expect(error.message.length).toBeGreaterThan(40);
  });

  test('has its own class for each number of the protocol', () => {
    const numbers = Object.values(ErrorCode).filter((number) => number !== ErrorCode.ok);
    const types = numbers.map((code) => makeError({ kind: 'refused', code, server }, about).constructor);
    expect(new Set(types).size).toBe(numbers.length);
  });

  test('keeps an unknown number, and has an unknown outcome', () => {
    const error = makeError({ kind: 'refused', code: -777, server }, about);
    expect(error).toBeInstanceOf(UnknownCodeError);
    expect(error).toMatchObject({ code: 'UNKNOWNCODE', errorCode: -777, outcome: 'unknown' });
    expect(error.message).toContain('UNKNOWNCODE -777');
  });
});

describe('the outcome', () => {
  test.each<FailureKind>([
    'connection-lost',
    'session-lost',
    'session-expired',
    'auth-failed',
    'closed',
    'timed-out',
    'aborted',
    'bad-reply',
  ])('of a write that ended by %s is unknown when it was sent, and only then', (kind) => {
    const sent = makeError({ kind, wasSent: true, server, detail: 'x' }, about);
    const waiting = makeError({ kind, wasSent: false, server, detail: 'x' }, about);
    expect(sent.outcome).toBe('unknown');
    expect(sent.message).toContain('it may have taken effect');
    expect(waiting.outcome).toBe('not-applied');
    expect(waiting.message).not.toContain('it may have taken effect');
  });

  test('of a read is never unknown: it changes nothing', () => {
    const failure = { kind: 'timed-out', wasSent: true, server, detail: '' } as const;
    for (const operation of ['get', 'hasLeasedAnswers', 'ping']) {
      expect(makeError(failure, { operation, path: '/a' })).toMatchObject({ outcome: 'not-applied' });
    }
  });

  test('of a larger operation may be unknown when a part of it fails', () => {
    const reason = new Error('enough');
    const aborted = new AbortedError({ operation: 'children', path: '/a', outcome: 'not-applied', cause: reason });
    const error = asDoubtful(aborted, { operation: 'createProtected', path: '/a/b' });
    expect(error).toBeInstanceOf(AbortedError);
    expect(error).toMatchObject({ outcome: 'unknown', operation: 'createProtected', path: '/a/b', cause: reason });
    const expired = asDoubtful(new SessionExpiredError(about), about);
    expect(expired).toMatchObject({ errorCode: -112, outcome: 'unknown', cause: { outcome: 'not-applied' } });
    const lost = new ConnectionLossError(about);
    expect(asDoubtful(lost, about)).toBe(lost);
  });
});

describe('an aborted call', () => {
  test('is an AbortError with the reason of its signal as the cause', () => {
    const reason = new Error('the user left');
    const error = makeError({ kind: 'aborted', wasSent: false, server: null, detail: '' }, about, reason);
    expect(error).toMatchObject({ name: 'AbortError', code: 'ABORTED', cause: reason, errorCode: null });
  });

  test('without a cause has none', () => {
    expect(new TimeoutError(about)).not.toHaveProperty('cause');
  });
});

describe('a failed connect', () => {
  const attempt = (fields: Partial<FailedAttempt>): FailedAttempt => ({
    host: 'zk1',
    port: 2181,
    address: '10.0.0.1',
    failure: 'refused',
    detail: 'connect ECONNREFUSED',
    ...fields,
  });

  test('lists every address once with why and how often, then what to do', () => {
    const error = new ConnectError([
      attempt({}),
      attempt({ host: 'zk2', address: null, failure: 'dns', detail: 'getaddrinfo ENOTFOUND zk2' }),
      attempt({}),
      attempt({ host: '::1', address: '::1', failure: 'not-zookeeper', detail: '' }),
    ]);
    expect(error.message).toBe(
      [
        'connect: no server answered within 4 attempts:',
        '  zk1:2181 (10.0.0.1): connection refused, 2 times (connect ECONNREFUSED)',
        '  zk2:2181: the name could not be looked up (getaddrinfo ENOTFOUND zk2)',
        "  [::1]:2181: what answers there does not speak ZooKeeper's protocol",
        'Connection refused: check that the server runs there and that the port is its client port.',
        'A name without an address: check its spelling and the resolver of this machine.',
        'Not ZooKeeper: check the port; a secure port needs the option tls, an election, quorum or admin port never ' +
          'works. (CONNECTFAILED)',
      ].join('\n'),
    );
    expect(error.attempts).toHaveLength(4);
    expect(error).toMatchObject({ code: 'CONNECTFAILED', outcome: 'not-applied', isRetryable: true });
  });

  test('reports when nothing was tried', () => {
    expect(new ConnectError([]).message).toBe(
      'connect: no server was tried. Give at least one, and more time. (CONNECTFAILED)',
    );
  });
});

describe('telling errors apart', () => {
  test('works by code in a complete switch, and narrows to the class', () => {
    const describeIt = (error: AnyZooKeeperError): string => {
      switch (error.code) {
        case 'CONNECTFAILED':
          expectTypeOf(error).toEqualTypeOf<ConnectError>();
          return `${error.attempts.length} attempts`;
        case 'TRANSACTIONFAILED':
          return `operation ${error.index}`;
        default:
          expectTypeOf(error).not.toEqualTypeOf<AnyZooKeeperError>();
          return error.code;
      }
    };
    const error: unknown = new ConnectError([]);
    expect(isZooKeeperError(error) && describeIt(error)).toBe('0 attempts');
    expect(isZooKeeperError(new Error('other'))).toBe(false);
  });

  test('a class of another package defines its own code, or inherits it', () => {
    class Missing extends NoNodeError {}
    expect(new Missing(about).code).toBe('NONODE');
    class Odd extends ZooKeeperError {}
    expect(() => new Odd(about)).toThrow(/Odd must pass its code/);
    expect(new Odd(about, 'DECODEFAILED').code).toBe('DECODEFAILED');
    expect(isZooKeeperError(new Odd(about, 'DECODEFAILED'))).toBe(false);
  });
});

describe('the class of a retry', () => {
  test.each([
    ['connection', ['CONNECTIONLOSS', 'SESSIONMOVED']],
    ['session', ['UNKNOWNSESSION', 'SESSIONEXPIRED', 'SESSIONLOST']],
    ['quorum', ['NOTREADONLY']],
    [
      'pause',
      ['OPERATIONTIMEOUT', 'NEWCONFIGNOQUORUM', 'RECONFIGINPROGRESS', 'REQUESTTIMEOUT', 'THROTTLEDOP', 'CONNECTFAILED'],
    ],
    ['over', ['AUTHFAILED', 'CLOSED', 'TIMEOUT', 'ABORTED']],
  ] as const)('is %s for %s', (retryClass, codes) => {
    const found = Object.entries(ERRORS).filter(([, meaning]) => meaning.retryClass === retryClass);
    expect(found.map(([code]) => code)).toEqual(codes);
  });

  test("is 'refused' for errors that are not of the service", () => {
    expect([new NoNodeError(about), new Error('a bug'), null].map(retryClassOf)).toEqual(Array(3).fill('refused'));
    expect(retryClassOf(new SessionLostError(about))).toBe('session');
  });
});

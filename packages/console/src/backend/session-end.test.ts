import { expect, test } from 'vitest';
import { NoAnswerError } from './four-letter-word.ts';
import type { AdminAnswer, AdminPorts, AdminQuestion, MonitoredServer } from './options.ts';
import { type AdminIdentity, endSession, type FoundSession, lookAtSession } from './session-end.ts';

const ID = '0x100000000000001';
const ANN: AdminIdentity = { authorization: 'digest ann:secret', tls: null };

const server = (host: string, tls: MonitoredServer['tls'] = null): MonitoredServer => {
  return { host, port: 2181, name: `${host}:2181`, tls };
};

/** The answers of a Meerkat server to requests without and with credentials. */
function ours(status: number, fields: object = {}): (question: AdminQuestion) => AdminAnswer {
  return ({ authorization }) => {
    if (authorization === null) return { status: 401, body: { command: 'end_session', error: 'Auth info is missing' } };
    return { status, body: { ...fields, command: 'end_session', error: status === 200 ? null : `it says ${status}` } };
  };
}

const FOUND = ours(200, { session: ID, ephemerals: 3, ephemeral_paths: ['/a', '/b', '/c'], is_ended: false });

type Answers = Readonly<Record<string, (question: AdminQuestion) => AdminAnswer>>;

function portsOf(answers: Answers, isSecure = false): AdminPorts & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    isSecure,
    asked,
    async ask({ host }, question) {
      asked.push(`${question.method} ${host} ${question.authorization}`);
      const answer = answers[host];
      if (answer === undefined) throw new NoAnswerError('unreachable', `${host}: nothing listens there`);
      return answer(question);
    },
  };
}

test('servers are asked until one knows the session', async () => {
  const ports = portsOf({ b: ours(404), c: FOUND, d: FOUND });
  const found = await lookAtSession(
    ['a', 'b', 'c', 'd'].map((host) => server(host)),
    ports,
    ANN,
    ID,
  );
  expect(found).toMatchObject({ kind: 'found', server: { host: 'c' }, ephemerals: 3, paths: ['/a', '/b', '/c'] });
  expect(ports.asked.map((text) => text.split(' ')[1])).toEqual(['a', 'b', 'b', 'c', 'c']);
});

test.each([
  ['of Apache 3.8', { status: 200, body: { command: 'end_session', error: 'Unknown command: end_session' } }],
  ['of a later Apache', { status: 404, body: { command: 'end_session', error: 'Unknown command: end_session' } }],
  ['of another program', { status: 200, body: {} }],
  ['of another program that asks for a password', { status: 401, body: { error: 'who are you?' } }],
])('a port %s is not told the credentials', async (_whose, answer) => {
  const ports = portsOf({ a: () => answer });
  expect(await lookAtSession([server('a')], ports, ANN, ID)).toMatchObject({ kind: 'unsupported' });
  expect(ports.asked).toEqual(['GET a null']);
});

test.each([
  ['with TLS for clients alone they would be read on the way', server('a', {}), ANN, false, 'plain'],
  ['on loopback nobody is on the way', server('127.0.0.1', {}), ANN, false, 'found'],
  ['an address is no secret', server('a', {}), { authorization: 'ip', tls: null }, false, 'found'],
  ['a certificate is shown with TLS alone', server('127.0.0.1'), { authorization: 'x509', tls: {} }, false, 'plain'],
  ['with TLS all may be shown', server('a', {}), ANN, true, 'found'],
])('credentials: %s', async (_why, at, identity, isSecure, kind) => {
  const ports = portsOf({ a: FOUND, '127.0.0.1': FOUND }, isSecure);
  expect(await lookAtSession([at], ports, identity, ID)).toMatchObject({ kind });
  expect(ports.asked).toHaveLength(kind === 'plain' ? 1 : 2);
});

test.each([
  ['refused', { a: ours(403), b: ours(404) }],
  ['no-quorum', { a: ours(503), b: ours(404) }],
  ['unknown', { a: ours(404) }],
  ['unsupported', { a: () => ({ status: 200, body: {} }) }],
  ['unreachable', {}],
] as const)('when no server knows it, what says most is told, with what each has said: %s', async (kind, answers) => {
  const reported = await lookAtSession([server('a'), server('b')], portsOf(answers), ANN, ID);
  expect(reported).toMatchObject({ kind });
  expect((reported as { message: string }).message).toMatch(/a[:\d]*.*; .*b/);
});

test.each([
  [200, 'ended'],
  [404, 'unknown'],
  [503, 'no-quorum'],
  [504, 'unconfirmed'],
  [500, 'unconfirmed'],
] as const)('an order that is answered with %i: %s', async (status, kind) => {
  const found: FoundSession = { kind: 'found', server: server('a'), ephemerals: 1, paths: ['/a'] };
  const ports = portsOf({ a: ours(status, { ephemerals: 1, ephemeral_paths: ['/a'], is_ended: true }) });
  expect(await endSession(found, ports, ANN, ID)).toMatchObject({ kind });
  expect(ports.asked).toEqual(['POST a digest ann:secret']);
});

test('a request whose reply is lost may have been applied', async () => {
  const found: FoundSession = { kind: 'found', server: server('a'), ephemerals: 1, paths: ['/a'] };
  expect(await endSession(found, portsOf({}), ANN, ID)).toMatchObject({
    kind: 'unconfirmed',
    message: `session ${ID} was to be ended at a:2181, and how it went is not known: a: nothing listens there`,
  });
});

import { ErrorCode, OPEN_ACL, OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { type Authenticator, type Identity, type SaslConversation, SaslFailure } from '../base/ports.ts';
import { MemoryDisk } from '../storage/memory-disk.ts';
import { PLAIN_AUTHENTICATOR } from '../testing/plain-authenticator.ts';
import { ManualClock, type TestClient, TestServer } from '../testing/test-server.ts';

const text = (value: string): Uint8Array => new TextEncoder().encode(value);
/** The length -1: there is no token. */
const NO_TOKEN = Uint8Array.of(0xff, 0xff, 0xff, 0xff);
const withLength = (value: string): Uint8Array => Uint8Array.of(0, 0, 0, value.length, ...text(value));

/** Asks "who?", and accepts every name but "nobody". */
class Naive implements SaslConversation {
  #hasAsked = false;

  step(token: Uint8Array): ReturnType<SaslConversation['step']> {
    if (!this.#hasAsked) {
      this.#hasAsked = true;
      return { kind: 'challenge', token: text('who?') };
    }
    const name = new TextDecoder().decode(token);
    if (name === 'nobody') return { kind: 'failure', reason: 'nobody is not wanted' };
    return { kind: 'success', token: name === 'quiet' ? null : text('hi'), identities: [{ scheme: 'sasl', id: name }] };
  }
}

function serve(changes: Partial<Authenticator> = {}): TestServer {
  const authenticator: Authenticator = {
    ...PLAIN_AUTHENTICATOR,
    startSasl: () => new Naive(),
    isAuthenticatedScheme: (scheme) => scheme === 'sasl',
    isValidAclId: (scheme) => scheme === 'sasl',
    ...changes,
  };
  return new TestServer({}, new MemoryDisk(), new ManualClock(), authenticator);
}

function exchange(server: TestServer, client: TestClient, ...tokens: readonly string[]): unknown[] {
  for (const token of tokens) client.send({ op: OpCode.sasl, token: text(token) });
  server.run();
  return client.takeArrivals();
}

/** The logged reasons of failed exchanges. */
function reasonsOf(server: TestServer): unknown[] {
  return server.trace.filter(({ kind }) => kind === 'auth-failed').map((event) => 'reason' in event && event.reason);
}

const reply = (error: ErrorCode, body: Uint8Array): object => ({ kind: 'reply', header: { zxid: 0, error }, body });

describe('a SASL exchange', () => {
  test('authenticates its client, which ACLs may name from then on', () => {
    const server = serve();
    const client = server.connect();
    expect(exchange(server, client, '', 'bob')).toMatchObject([
      reply(ErrorCode.ok, withLength('who?')),
      reply(ErrorCode.ok, withLength('hi')),
    ]);
    const acl = [{ perms: 31, scheme: 'auth', id: '' }];
    client.send({ op: OpCode.create, path: '/mine', data: text('x'), acl, flags: 0, ttl: 0 });
    const other = server.connect();
    other.send({ op: OpCode.getData, path: '/mine', watch: false });
    client.send({ op: OpCode.getData, path: '/mine', watch: false });
    server.run();
    expect(other.takeArrivals()).toMatchObject([{ kind: 'reply', header: { error: ErrorCode.noAuth } }]);
    expect(client.takeArrivals()).toMatchObject([
      { kind: 'reply', header: { error: ErrorCode.ok } },
      { kind: 'reply', header: { error: ErrorCode.ok } },
    ]);
  });

  test('may end without a last token', () => {
    const server = serve();
    expect(exchange(server, server.connect(), '', 'quiet').at(-1)).toMatchObject(reply(ErrorCode.ok, NO_TOKEN));
  });

  test('belongs to one connection', () => {
    const server = serve();
    const [a, b] = [server.connect(), server.connect()];
    exchange(server, a, '');
    expect(exchange(server, b, 'bob')).toMatchObject([reply(ErrorCode.ok, withLength('who?'))]);
  });

  test('that fails is answered with AUTHFAILED, and the connection ends', () => {
    const server = serve();
    const client = server.connect();
    expect(exchange(server, client, '', 'nobody')).toMatchObject([
      reply(ErrorCode.ok, withLength('who?')),
      reply(ErrorCode.authFailed, NO_TOKEN),
      { kind: 'closed' },
    ]);
    expect(server.trace).toContainEqual(
      expect.objectContaining({ kind: 'auth-failed', scheme: 'sasl', reason: 'nobody is not wanted' }),
    );
  });

  test('that is bound to fail is logged once, regardless of what its client still sends', () => {
    const warning = 'it begins as with another mechanism';
    const startSasl = (): SaslConversation => ({
      step: (token) =>
        token.length === 0
          ? { kind: 'challenge', token: text('who?'), warning }
          : { kind: 'failure', reason: 'no answer to that' },
    });
    const server = serve({ startSasl });
    expect(exchange(server, server.connect(), '', 'what?')).toMatchObject([
      reply(ErrorCode.ok, withLength('who?')),
      reply(ErrorCode.authFailed, NO_TOKEN),
      { kind: 'closed' },
    ]);
    expect(reasonsOf(server)).toEqual([warning]);
  });

  test('with a server without a login is logged once, and the client continues', () => {
    const server = serve({ startSasl: () => null });
    expect(exchange(server, server.connect(), '', 'bob')).toMatchObject([
      reply(ErrorCode.ok, NO_TOKEN),
      reply(ErrorCode.ok, NO_TOKEN),
    ]);
    expect(reasonsOf(server)).toEqual([expect.stringMatching(/^this server has no login, .*: set java.security.auth/)]);
  });

  test('cannot be repeated', () => {
    const server = serve();
    expect(exchange(server, server.connect(), '', 'bob', '').slice(2)).toMatchObject([
      reply(ErrorCode.authFailed, NO_TOKEN),
      { kind: 'closed' },
    ]);
  });

  test('that fails is answered with SESSIONCLOSEDREQUIRESASLAUTH if SASL is required', () => {
    const server = serve({ saslFailure: SaslFailure.closesAsRequired });
    expect(exchange(server, server.connect(), '', 'nobody').at(1)).toMatchObject(
      reply(ErrorCode.sessionClosedRequireSaslAuth, NO_TOKEN),
    );
  });

  test('that fails leaves the connection unchanged if failures are ignored', () => {
    const server = serve({ saslFailure: SaslFailure.isIgnored });
    const client = server.connect();
    expect(exchange(server, client, '', 'nobody', 'bob')).toMatchObject([
      reply(ErrorCode.ok, withLength('who?')),
      reply(ErrorCode.ok, NO_TOKEN),
      reply(ErrorCode.ok, NO_TOKEN),
    ]);
    client.send({ op: OpCode.whoAmI });
    server.run();
    const [answer] = client.takeArrivals();
    expect(answer).toMatchObject({ kind: 'reply', header: { error: ErrorCode.ok } });
    expect(new TextDecoder().decode(answer?.kind === 'reply' ? answer.body : undefined)).not.toContain('sasl');
  });
});

describe('a server that requires authentication', () => {
  const isAdmitted = (identities: readonly Identity[]): boolean => identities.some(({ scheme }) => scheme === 'sasl');

  test.each([
    ['a ping', { op: OpCode.ping }, -2],
    ['a read', { op: OpCode.exists, path: '/', watch: false }, 7],
    ['the end of the session', { op: OpCode.closeSession }, 8],
  ] as const)('answers %s with SESSIONCLOSEDREQUIRESASLAUTH and closes', (_, request, xid) => {
    const server = serve({ isAdmitted });
    const client = server.connect();
    client.send(request, xid);
    client.send({ op: OpCode.exists, path: '/', watch: false });
    server.run();
    expect(client.takeArrivals()).toEqual([
      {
        kind: 'reply',
        header: { xid, zxid: 0, error: ErrorCode.sessionClosedRequireSaslAuth },
        body: new Uint8Array(0),
      },
      { kind: 'closed' },
    ]);
  });

  test('serves a client that has authenticated', () => {
    const server = serve({ isAdmitted });
    const client = server.connect();
    exchange(server, client, '', 'bob');
    client.send({ op: OpCode.exists, path: '/', watch: false });
    server.run();
    expect(client.takeArrivals()).toMatchObject([{ kind: 'reply', header: { error: ErrorCode.ok } }]);
  });
});

test('a silent refusal only closes the connection, so that the client tries another server', () => {
  const server = serve({ authenticate: () => null, refusesSilently: (scheme) => scheme === 'ensemble' });
  const client = server.connect();
  client.send({ op: OpCode.auth, scheme: 'ensemble', auth: text('red') }, -4);
  server.run();
  expect(client.takeArrivals()).toEqual([{ kind: 'closed' }]);
});

test('an authentication scheme may read the data of a znode', () => {
  const seen: (string | null)[] = [];
  const server = serve({
    authenticate: (_scheme, _auth, _remote, _certificate, dataOf = () => null) => {
      for (const path of ['/key', '/none']) {
        const data = dataOf(path);
        seen.push(data === null ? null : new TextDecoder().decode(data));
      }
      return [];
    },
  });
  const client = server.connect();
  client.send({ op: OpCode.create, path: '/key', data: text('7'), acl: OPEN_ACL, flags: 0, ttl: 0 });
  server.run();
  client.send({ op: OpCode.auth, scheme: 'key', auth: text('21') }, -4);
  server.run();
  expect(seen).toEqual(['7', null]);
});

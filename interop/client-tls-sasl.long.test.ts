import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { acl } from '../packages/client/src/acl.ts';
import type { Client } from '../packages/client/src/client.ts';
import { connect } from '../packages/client/src/connect.ts';
import { AuthFailedError, ConnectError, NoAuthError } from '../packages/client/src/errors.ts';
import type { ConnectOptions } from '../packages/client/src/options.ts';
import { digestMd5 } from '../packages/client/src/sasl/digest-md5.ts';
import { CertificateAuthority, type KeyPair } from '../packages/client/src/testing/certificates.ts';
import { makeNodeTransport } from '../packages/client/src/transport/node-transport.ts';
import { describeWith } from './harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from './harness/server-process.ts';

/** User name and password configured at the server. */
const BOB = { username: 'bob', password: 'builder' };
/** Outside of ISO 8859-1, where the hash is computed differently. */
const LUKASZ = { username: 'Łukasz', password: 'żółć' };

/** Enough for at least one attempt, even on a busy machine. */
const FAIL_AFTER_MS = 5000;

const clients: Client[] = [];

afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
});

for (const kind of SERVER_KINDS) {
  describeWith(kind === 'apache' ? ['apache', 'openssl'] : ['openssl'], `our client with TLS (${kind})`, () => {
    let authority: CertificateAuthority;
    let alice: KeyPair;
    let eve: KeyPair;
    let strict: ServerProcess;
    let lenient: ServerProcess;

    beforeAll(async () => {
      authority = new CertificateAuthority();
      alice = authority.issue('alice');
      eve = authority.issue('eve');
      const trustStorePath = authority.path;
      const { path: keyStorePath } = authority.issue('server', { subjectAltName: 'IP:127.0.0.1,DNS:localhost' });
      const { path: otherPath } = authority.issue('other-server', { subjectAltName: 'DNS:zk.example' });
      [strict, lenient] = await Promise.all([
        ServerProcess.start(kind, { tls: { keyStorePath, trustStorePath }, saslUsers: { bob: BOB.password } }),
        ServerProcess.start(kind, { tls: { keyStorePath: otherPath, trustStorePath, clientAuth: 'none' } }),
      ]);
    });
    afterAll(async () => {
      await Promise.all([strict?.dispose(), lenient?.dispose()]);
      authority[Symbol.dispose]();
    });

    const tlsOf = ({ cert, key }: KeyPair) => ({ ca: authority.cert, cert, key });

    test('a session runs over the secure port', async () => {
      const client = await open(strict.securePort, { tls: tlsOf(alice) });
      const { changed } = await client.get((await client.create('/tls', 'one')).path, { watch: true });
      await client.set('/tls', 'two');
      expect(await changed).toMatchObject({ type: 'changed', path: '/tls' });
    });

    test('large values and many requests in flight arrive intact', async () => {
      const client = await open(strict.securePort, { tls: tlsOf(alice) });
      const values = Array.from({ length: 20 }, (_, i) =>
        new Uint8Array(500_000).map((_, at) => (at * (i + 3)) & 0xff),
      );
      await Promise.all(values.map((value, i) => client.create(`/large-${i}`, value)));
      const read = await Promise.all(values.map((_, i) => client.get(`/large-${i}`)));
      for (const [i, { data }] of read.entries()) expect(Buffer.compare(data, values[i]!)).toBe(0);
    });

    test('the certificate of the client is its identity for ACLs', async () => {
      const owner = await open(strict.securePort, { tls: tlsOf(alice) });
      const identities = (await owner.whoAmI()).map(({ scheme, user }) => `${scheme}:${user}`);
      expect(identities).toContain('x509:CN=alice,O=Meerkat');
      await owner.create('/of-alice', 'x', { acl: [acl.x509('CN=alice,O=Meerkat')] });

      const other = await open(strict.securePort, { tls: tlsOf(eve) });
      await expect(other.get('/of-alice')).rejects.toThrow(NoAuthError);
      expect((await owner.get('/of-alice')).stat.version).toBe(0);
    });

    test('a renewed certificate is presented on the next connection, in the same session', async () => {
      let pair = alice;
      const client = await open(strict.securePort, { tls: () => tlsOf(pair) });
      const sessionId = client.session?.id;
      pair = eve;
      await client.moveTo();
      const identities = (await client.whoAmI()).map(({ user }) => user);
      expect(identities).toContain('CN=eve,O=Meerkat');
      expect(client.session?.id).toBe(sessionId);
    });

    test('four-letter words are answered over TLS', async () => {
      const transport = makeNodeTransport({ tls: tlsOf(alice) });
      const target = { host: 'localhost', address: '127.0.0.1', port: strict.securePort };
      expect(await transport.probe(target, 'ruok', 60_000)).toBe('imok');
    });

    test('SASL works over TLS, and the connection has both identities', async () => {
      const client = await open(strict.securePort, { tls: tlsOf(alice), sasl: digestMd5(BOB) });
      const identities = (await client.whoAmI()).map(({ scheme, user }) => `${scheme}:${user}`);
      expect(identities).toEqual(expect.arrayContaining(['x509:CN=alice,O=Meerkat', 'sasl:bob']));
    });

    test('a server that asks for no certificate gets none', async () => {
      const client = await open(lenient.securePort, { tls: { ca: authority.cert, servername: 'zk.example' } });
      expect((await client.whoAmI()).map(({ scheme }) => scheme)).toEqual(['ip']);
    });

    // In parallel, because each waits for its timeout.
    describe.concurrent('the error of a failed connection states the reason:', () => {
      test('the client has no certificate', async () => {
        const { attempts } = await fail(strict.securePort, { tls: { ca: authority.cert } });
        // The alert may be lost when the server closes the connection after it.
        expect(attempts[0]?.detail).toMatch(/alert|may have refused the certificate of this client, or miss one/);
      });

      test("the server's certificate has another name", async () => {
        const { attempts } = await fail(lenient.securePort, { tls: { ca: authority.cert } });
        expect(attempts[0]).toMatchObject({ failure: 'tls', detail: expect.stringContaining('127.0.0.1') });
      });

      test('the certificate of the server is not trusted', async () => {
        const { attempts } = await fail(lenient.securePort, { tls: { servername: 'zk.example' } });
        expect(attempts[0]).toMatchObject({ failure: 'tls', detail: expect.stringContaining('certificate') });
      });

      test('the port speaks no TLS', async () => {
        const { attempts } = await fail(strict.port, { tls: tlsOf(alice) });
        expect(attempts[0]).toMatchObject({ failure: 'tls' });
      });

      test('the port speaks TLS only', async () => {
        const error = await fail(strict.securePort, {});
        expect(error.attempts[0]).toMatchObject({ failure: 'not-serving' });
        expect(error.message).toContain('TLS');
      });
    });
  });
}

describeWith(['apache'], 'our client with SASL DIGEST-MD5 (apache)', () => {
  let server: ServerProcess;

  beforeAll(async () => {
    const saslUsers = { [BOB.username]: BOB.password, [LUKASZ.username]: LUKASZ.password };
    server = await ServerProcess.start('apache', { saslUsers });
  });
  afterAll(() => server?.dispose());

  test.each([BOB, LUKASZ])('the server knows $username by name', async (user) => {
    const client = await open(server.port, { sasl: digestMd5(user) });
    const identities = (await client.whoAmI()).map(({ scheme, user }) => `${scheme}:${user}`);
    expect(identities.sort()).toEqual(['ip:127.0.0.1', `sasl:${user.username}`]);
  });

  test('an ACL admits the user and no others, also on later connections', async () => {
    const client = await open(server.port, { sasl: digestMd5(BOB) });
    await client.create('/of-bob', 'x', { acl: [acl.sasl('bob')] });
    await client.moveTo();
    expect((await client.get('/of-bob')).stat.version).toBe(0);
    await server.restart();
    expect((await client.set('/of-bob', 'y')).version).toBe(1);

    const stranger = await open(server.port, {});
    await expect(stranger.get('/of-bob')).rejects.toThrow(NoAuthError);
    const other = await open(server.port, { sasl: digestMd5(LUKASZ) });
    await expect(other.get('/of-bob')).rejects.toThrow(NoAuthError);
  });

  test.each([
    ['a wrong password', { ...BOB, password: 'wrong' }],
    // Not with Bob's password: Apache 3.8.0 tries an unknown name with the password of the user who was named last.
    ['an unknown user', { username: 'nobody', password: 'wrong' }],
  ])('%s is reported at once', async (_, user) => {
    await expect(open(server.port, { sasl: digestMd5(user) })).rejects.toThrow(AuthFailedError);
  });

  test('a server without SASL is refused', async () => {
    await using plain = await ServerProcess.start('apache');
    const { attempts } = await fail(plain.port, { sasl: digestMd5(BOB) });
    expect(attempts[0]).toMatchObject({ failure: 'sasl', detail: 'the server has no SASL configured' });
  });
});

async function open(port: number, options: Omit<ConnectOptions, 'servers'>): Promise<Client> {
  const client = await connect(`127.0.0.1:${port}`, { sessionTimeoutMs: 40_000, ...options });
  clients.push(client);
  return client;
}

/** Expects connect to fail, and returns its error. */
async function fail(port: number, options: Omit<ConnectOptions, 'servers'>): Promise<ConnectError> {
  const error: unknown = await open(port, {
    connectTimeoutMs: FAIL_AFTER_MS,
    attemptTimeoutMs: 60_000,
    ...options,
  }).catch((reason: unknown) => reason);
  if (!(error instanceof ConnectError)) throw new Error('it did not fail as a connection', { cause: error });
  return error;
}

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, digestMd5 } from '@meerkat/client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { ConnectionClosed, Op, RawClient } from '../harness/raw-client.ts';
import { record } from '../harness/record-builder.ts';
import { RecordReader } from '../harness/record-reader.ts';
import { SERVER_KINDS, type ServerKind, type ServerOptions, ServerProcess } from '../harness/server-process.ts';
import { digestResponse, format, type User } from './digest-response.ts';
import { keytabOf } from './keytab.ts';

const BOB: User = { username: 'bob', password: 'bobsecret' };
const USERS = { bob: BOB.password, ann: 'annsecret', super: 'supersecret' };

/** The replies to a client, as text: all bytes except the nonce, and whether the connection was closed. */
type Transcript = readonly string[];

/** Creates the second token from the challenge's nonce. */
type Answer = (nonce: string) => string | Buffer;

const of = (change: (directives: Map<string, string>) => void, user = BOB): Answer => {
  return (nonce) => {
    const directives = digestResponse({ ...user, nonce });
    change(directives);
    return format(directives);
  };
};
const set = (name: string, value: string): Answer => of((directives) => directives.set(name, value));
const without = (name: string): Answer => of((directives) => directives.delete(name));
const text =
  (change: (whole: string) => string): Answer =>
  (nonce) =>
    change(format(digestResponse({ ...BOB, nonce })));
const padded = (length: number): Answer => text((whole) => `${whole},x="${'y'.repeat(length - whole.length - 5)}"`);

/** Tokens that both servers must answer equally. */
const ALIKE: Readonly<Record<string, Answer>> = {
  'a correct response': text((whole) => whole),
  'no qop': without('qop'),
  'no charset': without('charset'),
  'no maxbuf': without('maxbuf'),
  'unknown directives': set('color', '"blue"'),
  'nc again': text((whole) => `${whole},nc=00000001`),
  'another nc behind the first': text((whole) => `${whole},nc=00000002`),
  'another username behind the first': text((whole) => `${whole},username="ann"`),
  'another realm behind the first': text((whole) => `${whole},realm="x"`),
  'nc with fewer digits': set('nc', '1'),
  'nc with a sign': set('nc', '+1'),
  'blanks around commas': text((whole) => whole.replaceAll(',', ' ,\t ')),
  'blanks in place of commas': text((whole) => whole.replaceAll(',', ' ')),
  'blanks around equals signs': text((whole) => whole.replaceAll(/([a-z])=/g, '$1 = ')),
  'empty elements': text((whole) => `,,${whole.replaceAll(',', ',,')},`),
  'names of directives in upper case': text((whole) => whole.replace('nc=', 'NC=').replace('realm=', 'Realm=')),
  'an escaped character': set('username', '"b\\ob"'),
  'a user name without quotes': set('username', 'bob'),
  'the digest-uri in another case': (nonce) =>
    format(digestResponse({ ...BOB, nonce, digestUri: 'ZooKeeper/ZK-sasl-md5' })),
  'an authzid that is the name': (nonce) => format(digestResponse({ ...BOB, nonce, authzid: 'bob' })),
  'a wrong realm': set('realm', '"x"'),
  'no realm': without('realm'),
  'another service': set('digest-uri', '"ldap/zk-sasl-md5"'),
  'no digest-uri': without('digest-uri'),
  'a second use of the nonce': set('nc', '00000002'),
  'no nc': without('nc'),
  'a response in upper case': of((directives) =>
    directives.set('response', (directives.get('response') ?? '').toUpperCase()),
  ),
  'no response': without('response'),
  'qop=auth-int': set('qop', 'auth-int'),
  'qop in upper case': set('qop', 'AUTH'),
  'a foreign nonce': set('nonce', '"abcdef"'),
  'no nonce': without('nonce'),
  'no cnonce': without('cnonce'),
  'no user name': without('username'),
  'charset in upper case': set('charset', 'UTF-8'),
  'an unknown user': of(() => {}, { username: 'eve', password: 'x' }),
  'a wrong password': of(() => {}, { ...BOB, password: 'x' }),
  'an empty second token': () => '',
  garbage: () => Buffer.from([0, 255, 1, 2, 3]),
  'a quote that does not end': text((whole) => `${whole},x="`),
  'text behind a quote': text((whole) => `${whole},x="a"b`),
  'a name without a value': text((whole) => `${whole},x=`),
  'a value without a name': text((whole) => `${whole},=x`),
  'a name alone': text((whole) => `${whole},x`),
  '4095 bytes': padded(4095),
  '4096 bytes': padded(4096),
  '4097 bytes': padded(4097),
};

const UNKNOWN = 'an unknown mechanism';

/** First tokens of mechanisms, by their name in the log. */
const BEGINNINGS: readonly (readonly [string, Buffer])[] = [
  ['Kerberos (GSSAPI)', Buffer.from('6082020006092a864886f7120102020100', 'hex')],
  ['SPNEGO', Buffer.from('600806062b0601050502', 'hex')],
  ['SCRAM', Buffer.from('n,,n=bob,r=SECRET')],
  ['PLAIN', Buffer.from('\0bob\0SECRET')],
  [UNKNOWN, Buffer.from([0xff, 1, 2, 3])],
];

const begins = (name: string): string =>
  name === UNKNOWN ? 'its first token is of no known mechanism' : `it begins as with ${name}`;

/** Formats a reply, with variable parts replaced. */
function show(error: number, zxid: bigint, body: Buffer): string {
  const token =
    body.length === 0 ? 'no body' : JSON.stringify(new RecordReader(body).buffer()?.toString('latin1') ?? null);
  const masked = token.replace(/nonce=\\"[^"]*\\"/, 'nonce').replace(/rspauth=[0-9a-f]{32}/, 'rspauth');
  return `${error} zxid=${zxid} ${masked}`;
}

async function converse(port: number, tokens: readonly (string | Buffer | Answer | null)[]): Promise<Transcript> {
  const client = await RawClient.connect(port);
  const said: string[] = [];
  let nonce = '';
  for (const each of tokens) {
    const token = typeof each === 'function' ? each(nonce) : each;
    const reply = await client.request(Op.sasl, record().buffer(token).build()).catch((error: unknown) => error);
    if (reply instanceof ConnectionClosed) {
      said.push('closed');
      return said;
    }
    const { error, zxid, body } = reply as Awaited<ReturnType<RawClient['request']>>;
    said.push(show(error, zxid, body));
    nonce = /nonce="([^"]*)"/.exec(body.toString('latin1'))?.[1] ?? nonce;
  }
  // After a reported failure the connection is closed.
  if (!(said.at(-1) ?? '').startsWith('0 ')) {
    await client.closed;
    said.push('closed');
    return said;
  }
  const whoAmI = await client.demand(Op.whoAmI);
  said.push(
    [...whoAmI.body.toString('latin1').matchAll(/sasl.{4}[a-z]+|super/gs)]
      .map(([id]) => id.replace(/[^a-z]/g, ' '))
      .sort()
      .join(', '),
  );
  await client.close();
  return said;
}

const FIRST = '';

describeWith(['apache'], 'SASL over the wire', () => {
  const servers = new Map<ServerKind, ServerProcess>();

  async function startBoth(options: ServerOptions): Promise<void> {
    await Promise.all(
      SERVER_KINDS.map(async (kind) => {
        const server = await ServerProcess.start(kind, { saslUsers: USERS, ...options });
        servers.set(kind, server);
      }),
    );
  }
  async function stopBoth(): Promise<void> {
    await Promise.all([...servers.values()].map((server) => server.dispose()));
    servers.clear();
  }

  async function both(tokens: readonly (string | Buffer | Answer | null)[]): Promise<Record<ServerKind, Transcript>> {
    const [apache, meerkat] = await Promise.all(
      SERVER_KINDS.map((kind) => converse(servers.get(kind)?.port ?? 0, tokens)),
    );
    return { apache: apache ?? [], meerkat: meerkat ?? [] };
  }

  let loggedBefore = 0;
  beforeEach(() => {
    loggedBefore = servers.get('meerkat')?.output.length ?? 0;
  });

  /** Expects the failures logged by our server in this test, by reason, without secrets. */
  async function expectLines(reasons: readonly string[]): Promise<void> {
    const lines = (): string[] => {
      const output = servers.get('meerkat')?.output.slice(loggedBefore) ?? '';
      return output.split('\n').filter((line) => /WARN|ERROR/.test(line));
    };
    await expect.poll(lines).toHaveLength(reasons.length);
    for (const [i, reason] of reasons.entries()) {
      expect(lines()[i]).toMatch(/client 127\.0\.0\.1:\d+ failed to authenticate by "sasl": /);
      expect(lines()[i]?.split('"sasl": ')[1]).toBe(reason);
    }
    expect(servers.get('meerkat')?.output).not.toContain('SECRET');
  }

  describe('with users', () => {
    beforeAll(() => startBoth({ config: { superUser: 'super', 'superUser.2': 'ann' } }));
    afterAll(stopBoth);

    test.each(Object.entries(ALIKE))('%s is answered as by Apache', async (_, answer) => {
      const { apache, meerkat } = await both([FIRST, answer]);
      expect(meerkat).toEqual(apache);
      expect(meerkat.length).toBeGreaterThanOrEqual(2);
    });

    test('the first token is ignored', async () => {
      const { apache, meerkat } = await both([Buffer.from('anything'), of(() => {})]);
      expect(meerkat).toEqual(apache);
      expect(meerkat.at(-1)).toMatch(/sasl.*bob/);
    });

    test.each(BEGINNINGS)(
      'a client that begins as with %s is answered as by Apache, and one line says so',
      async (name, token) => {
        const { apache, meerkat } = await both([token, token]);
        expect(meerkat).toEqual(apache);
        expect(meerkat.slice(1)).toEqual(['-115 zxid=0 null', 'closed']);
        await expectLines([
          `${begins(name)}, and this server takes a password (DIGEST-MD5) alone: let it log in by one, or give this server a keytab in place of users`,
        ]);
      },
    );

    test('an exchange after a success fails', async () => {
      const { apache, meerkat } = await both([FIRST, of(() => {}), FIRST]);
      expect(meerkat).toEqual(apache);
      expect(meerkat.at(-2)).toBe('-115 zxid=0 null');
    });

    test('no token at all closes the connection', async () => {
      const { apache, meerkat } = await both([null]);
      expect(meerkat).toEqual(apache);
      expect(meerkat).toEqual(['closed']);
    });

    test.each(['super', 'ann'] as const)('%s is the super user', async (username) => {
      const { apache, meerkat } = await both([FIRST, of(() => {}, { username, password: USERS[username] })]);
      expect(meerkat).toEqual(apache);
    });

    test('an auth packet of the scheme sasl is refused', async () => {
      for (const server of servers.values()) {
        const client = await RawClient.connect(server.port);
        const reply = await client.request(Op.auth, record().int(0).ustring('sasl').buffer('bob').build(), -4);
        expect(reply.error, server.kind).toBe(-115);
        await client.closed;
      }
    });

    // Deliberately unlike Apache: the identity is the authenticated name.
    test('an authzid other than the name is refused by ours', async () => {
      const other: Answer = (nonce) => format(digestResponse({ ...BOB, nonce, authzid: 'super' }));
      const { meerkat } = await both([FIRST, other]);
      expect(meerkat.slice(1)).toEqual(['-115 zxid=0 null', 'closed']);
    });

    test('an unknown user with the password of the previous user is refused by ours (ZOOKEEPER-4839)', async () => {
      const eve = of(() => {}, { username: 'eve', password: BOB.password });
      await both([FIRST, of(() => {})]);
      const { apache, meerkat } = await both([FIRST, eve]);
      expect(meerkat.slice(1)).toEqual(['-115 zxid=0 null', 'closed']);
      expect(apache.at(-1), 'Apache 3.8.0 has that hole').toMatch(/sasl.*eve/);
    });
  });

  describe('when required', () => {
    beforeAll(() => startBoth({ config: { sessionRequireClientSASLAuth: true, allowSaslFailedClients: true } }));
    afterAll(stopBoth);

    test('a wrong password is answered with SESSIONCLOSEDREQUIRESASLAUTH', async () => {
      const { apache, meerkat } = await both([FIRST, of(() => {}, { ...BOB, password: 'x' })]);
      expect(meerkat).toEqual(apache);
      expect(meerkat.at(-2)).toBe('-124 zxid=0 null');
    });

    test.each([
      ['a read', Op.exists, record().ustring('/').bool(false).build(), 5],
      ['a ping', Op.ping, Buffer.alloc(0), -2],
      ['the end of the session', Op.closeSession, Buffer.alloc(0), 6],
      ['an unknown operation', 999, Buffer.alloc(0), 7],
    ] as const)('%s without it ends the connection as with Apache', async (_, op, body, xid) => {
      const answers = await Promise.all(
        SERVER_KINDS.map(async (kind) => {
          const client = await RawClient.connect(servers.get(kind)?.port ?? 0);
          const reply = await client.request(op, body, xid);
          await client.closed;
          return { ...reply, body: reply.body.toString('hex') };
        }),
      );
      expect(answers[1]).toEqual(answers[0]);
      expect(answers[1]).toMatchObject({ error: -124, xid });
    });

    test('digest is not enough, SASL is', async () => {
      for (const server of servers.values()) {
        const client = await RawClient.connect(server.port);
        await client.auth('digest', 'super:test');
        expect((await client.request(Op.ping, undefined, -2)).error, server.kind).toBe(-124);
        expect((await converse(server.port, [FIRST, of(() => {})])).at(-1), server.kind).toMatch(/sasl.*bob/);
      }
    });
  });

  describe('when failures are tolerated', () => {
    beforeAll(() => startBoth({ config: { allowSaslFailedClients: true } }));
    afterAll(stopBoth);

    test('leaves the connection without an identity', async () => {
      const { apache, meerkat } = await both([FIRST, of(() => {}, { ...BOB, password: 'x' })]);
      expect(meerkat).toEqual(apache);
      expect(meerkat.at(-2)).toBe('0 zxid=0 null');
      expect(meerkat.at(-1)).toBe('');
    });
  });

  describe('by Kerberos alone', () => {
    const directory = mkdtempSync(join(tmpdir(), 'interop-wire-'));
    const path = (name: string): string => join(directory, name);

    beforeAll(async () => {
      writeFileSync(path('zk.keytab'), keytabOf('zookeeper', 'localhost', 'SECRET-of-a-keytab-with-32-bytes'));
      const module =
        'com.sun.security.auth.module.Krb5LoginModule required isInitiator=false useKeyTab=true storeKey=true';
      const jaas = `Server { ${module} keyTab="${path('zk.keytab')}" principal="zookeeper/localhost@R"; };`;
      // No KDC is needed, because no ticket gets that far.
      const env = { JAVA_TOOL_OPTIONS: '-Djava.security.krb5.realm=R -Djava.security.krb5.kdc=127.0.0.1:1' };
      await startBoth({ jaas, env });
    });
    afterAll(async () => {
      await stopBoth();
      rmSync(directory, { recursive: true });
    });

    test.each([['a password (DIGEST-MD5)', Buffer.alloc(0)] as const, ...BEGINNINGS.slice(1)])(
      'a client that begins as with %s is answered as by Apache, and one line says so',
      async (name, token) => {
        const { apache, meerkat } = await both([token]);
        expect(meerkat).toEqual(apache);
        expect(meerkat).toEqual(['-115 zxid=0 null', 'closed']);
        await expectLines([
          `${begins(name)}, and this server takes Kerberos (GSSAPI) alone: let it log in by that, or give this server users in place of a keytab`,
        ]);
      },
    );

    test("our client reports that the server, ours or Apache's, does not support its mechanism", async () => {
      for (const server of servers.values()) {
        const place = `127.0.0.1:${server.port}`;
        await expect(connect(place, { sasl: digestMd5(BOB) }), server.kind).rejects.toThrow(
          `${place} refused SASL (code -115): it does not take passwords (DIGEST-MD5): log in by Kerberos, or give it users`,
        );
      }
    });
  });

  describe('when not configured', () => {
    beforeAll(async () => {
      for (const kind of SERVER_KINDS) servers.set(kind, await ServerProcess.start(kind));
    });
    afterAll(stopBoth);

    test('answers every token with an empty one', async () => {
      const { apache, meerkat } = await both([FIRST, 'anything']);
      expect(meerkat).toEqual(apache);
      expect(meerkat.slice(0, 2)).toEqual(['0 zxid=0 null', '0 zxid=0 null']);
      await expectLines([
        'this server has no login, so it continues unauthenticated: set java.security.auth.login.config or sasl.usersFile',
      ]);
    });
  });
});

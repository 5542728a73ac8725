import { describe, expect, test } from 'vitest';
import { DigestMd5Exchange, type DigestMd5Options, digestMd5 } from './digest-md5.ts';

/** Complete exchanges, published or recorded with real servers. */
const EXCHANGES: readonly {
  readonly source: string;
  readonly options: DigestMd5Options;
  readonly cnonce: string;
  readonly challenge: string;
  /** Directives in any order. */
  readonly answer: readonly string[];
  readonly proof: string;
}[] = [
  {
    source: 'RFC 2831 §4, IMAP',
    options: { username: 'chris', password: 'secret', service: 'imap', serverName: 'elwood.innosoft.com' },
    cnonce: 'OA6MHXh6VqTrRk',
    challenge: 'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8',
    answer: [
      'charset=utf-8',
      'username="chris"',
      'realm="elwood.innosoft.com"',
      'nonce="OA6MG9tEQGm2hh"',
      'nc=00000001',
      'cnonce="OA6MHXh6VqTrRk"',
      'digest-uri="imap/elwood.innosoft.com"',
      'response=d388dad90d4bbd760a152321f2143af7',
      'qop=auth',
    ],
    proof: 'rspauth=ea40f60335c427b5527b84dbabcdfffd',
  },
  {
    source: 'RFC 2831 §4, ACAP',
    options: { username: 'chris', password: 'secret', service: 'acap', serverName: 'elwood.innosoft.com' },
    cnonce: 'OA9BSuZWMSpW8m',
    challenge: 'realm="elwood.innosoft.com",nonce="OA9BSXrbuRhWay",qop="auth",algorithm=md5-sess,charset=utf-8',
    answer: [
      'charset=utf-8',
      'username="chris"',
      'realm="elwood.innosoft.com"',
      'nonce="OA9BSXrbuRhWay"',
      'nc=00000001',
      'cnonce="OA9BSuZWMSpW8m"',
      'digest-uri="acap/elwood.innosoft.com"',
      'response=6084c6db3fede7352c551284490fd0fc',
      'qop=auth',
    ],
    proof: 'rspauth=2f0b3d7c3c2e486600ef710726aa2eae',
  },
  // The server accepted these, and sent this proof. They cover the ways in which names and passwords enter the hash:
  // ASCII, ISO 8859-1, UTF-8.
  ...(
    [
      [
        'bob',
        'builder',
        '/P6r8UXGkM4rWB5b2CUz71nWrLteafHskGPwyvgF',
        'QKfvq9FQ440FJfuKQ398XA==',
        '9f0ea08fa0938022768c2b02a8405f24',
        'ca936ee4e2adbe364dea0bd43a82201a',
      ],
      [
        'müller',
        'grün',
        'JpkIZLN3wgTbKz/Ja/syw5PwJqD4nOM4PS0wUMPz',
        'ArSqPVMajXp3O8Vlxvmj7A==',
        '0eae86875691d725d9dbc655e9f8416e',
        'e6dea88437cfbb20890f83d06cd6aac9',
      ],
      [
        'Łukasz',
        'żółć',
        'Ofwr8ceUZl63aejDAVjGEwL97Eqq8NxVOqjZcwtV',
        'CjxTy45geHv85t9T9jr8EQ==',
        'f06df79f278448903246df2892315236',
        '20efb2c6033582c869cad70ebf712edb',
      ],
      [
        'bü',
        'Łé',
        'QOvH1NkPS1OEzvFQRwoyC3eMdWZi9rM962uC1DSm',
        'hXl9OlQ2suTcz9uCr6DAUw==',
        '178d27b1717012f44e63fccaa9ddf328',
        'c53b7820ab92b11c31d8d7e81c6e3c0b',
      ],
    ] as const
  ).map(([username, password, nonce, cnonce, response, rspauth]) => ({
    source: `Apache ZooKeeper 3.8.0, user ${username}`,
    options: { username, password },
    cnonce,
    challenge: `realm="zk-sasl-md5",nonce="${nonce}",charset=utf-8,algorithm=md5-sess`,
    answer: [
      'charset=utf-8',
      `username="${username}"`,
      'realm="zk-sasl-md5"',
      `nonce="${nonce}"`,
      'nc=00000001',
      `cnonce="${cnonce}"`,
      'digest-uri="zookeeper/zk-sasl-md5"',
      `response=${response}`,
      'qop=auth',
    ],
    proof: `rspauth=${rspauth}`,
  })),
];

describe('a DIGEST-MD5 exchange', () => {
  test.each(EXCHANGES)('is that of $source', ({ options, cnonce, challenge, answer, proof }) => {
    const exchange = new DigestMd5Exchange(options, cnonce);
    expect(exchange.start()).toEqual(new Uint8Array(0));
    expect(directivesOf(exchange.respond(bytes(challenge)))).toEqual([...answer].sort());
    expect(exchange.respond(bytes(proof))).toBe(null);
  });

  test('reads blanks, empty elements, names in any case and escaped characters', () => {
    const exchange = begin({ username: 'a"b\\c', password: 'x' });
    const challenge = ' Realm = "say \\"hi\\"" ,, NONCE="\\n\\1", Algorithm=MD5-sess , charset=utf-8, stale=false,';
    const answer = directivesOf(exchange.respond(bytes(challenge)));
    expect(answer).toContain('realm="say \\"hi\\""');
    expect(answer).toContain('nonce="n1"');
    expect(answer).toContain('username="a\\"b\\\\c"');
  });

  test('uses the given realm, else the first', () => {
    const challenge = bytes(`realm="one",realm="two",${OFFER}`);
    expect(directivesOf(begin().respond(challenge))).toContain('realm="one"');
    expect(directivesOf(begin({ realm: 'two' }).respond(challenge))).toContain('realm="two"');
    expect(() => begin({ realm: 'three' }).respond(challenge)).toThrow('no SASL realm "three"; it has "one", "two"');
  });

  test('sends no realm to a server that has none', () => {
    expect(directivesOf(begin().respond(bytes(OFFER))).join()).not.toContain('realm');
    expect(directivesOf(begin({ realm: 'mine' }).respond(bytes(OFFER)))).toContain('realm="mine"');
  });

  test('sends ISO 8859-1 to a server without UTF-8, and reports when that is impossible', () => {
    const answer = begin({ username: 'é' }).respond(bytes(OFFER));
    expect(Buffer.from(answer ?? []).toString('latin1')).toContain('username="é"');
    expect(() => begin({ password: 'ł' }).respond(bytes(OFFER))).toThrow('ISO 8859-1 only');
  });

  test('refuses a server that does not prove that it knows the password', () => {
    for (const proof of ['', 'rspauth=00000000000000000000000000000000', 'realm="zk-sasl-md5"']) {
      const exchange = begin();
      exchange.respond(bytes(OFFER));
      expect(() => exchange.respond(bytes(proof))).toThrow(/rspauth/);
    }
  });

  test('distinguishes an unsupported mechanism from a wrong password', () => {
    const exchange = begin();
    exchange.start();
    expect(exchange.whyRefused).toMatch(/does not take passwords .*: log in by Kerberos, or give it users/);
    exchange.respond(bytes(OFFER));
    expect(exchange.whyRefused).toMatch(/user or password is wrong/);
  });

  test('ends with the proof', () => {
    const { options, cnonce, challenge, proof } = EXCHANGES[0]!;
    const exchange = new DigestMd5Exchange(options, cnonce);
    exchange.respond(bytes(challenge));
    exchange.respond(bytes(proof));
    expect(() => exchange.respond(bytes(proof))).toThrow('after its end');
  });

  test.each([
    ['nonce="x"', 'the SASL algorithm (none)'],
    ['nonce="x",algorithm=md5', 'the SASL algorithm md5,'],
    ['algorithm=md5-sess', 'no nonce'],
    ['nonce="x",nonce="y",algorithm=md5-sess', '2 times nonce'],
    ['nonce="x",algorithm=md5-sess,qop="auth-int,auth-conf"', 'insists on the SASL protection "auth-int,auth-conf"'],
    ['nonce="x', 'no list of directives'],
    ['nonce="x" algorithm=md5-sess', 'no list of directives'],
    ['nonce', 'no list of directives'],
    ['\0\0\0', 'no list of directives'],
    [`nonce="${'x'.repeat(2048)}"`, 'takes 2056 bytes'],
  ])('refuses the challenge %j', (challenge, message) => {
    expect(() => begin().respond(bytes(challenge))).toThrow(message);
  });

  test('is new for each connection', () => {
    const make = digestMd5({ username: 'bob', password: 'builder' });
    const cnonces = [make(), make()].map((exchange) => {
      const answer = directivesOf(exchange.respond(bytes(OFFER)));
      return answer.find((directive) => directive.startsWith('cnonce='));
    });
    expect(cnonces[0]).toMatch(/^cnonce="[A-Za-z0-9+/]{22}=="$/);
    expect(cnonces[0]).not.toBe(cnonces[1]);
  });
});

/** The minimum that a server must send. */
const OFFER = 'nonce="abc",algorithm=md5-sess';

function begin(options: Partial<DigestMd5Options> = {}): DigestMd5Exchange {
  return new DigestMd5Exchange({ username: 'bob', password: 'builder', ...options }, 'cnonce');
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** The texts in these tests have no commas in their values. */
function directivesOf(token: Uint8Array | null): string[] {
  return new TextDecoder()
    .decode(token ?? new Uint8Array(0))
    .split(',')
    .sort();
}

import type { SaslStep } from '@meerkat/core';
import { describe, expect, test } from 'vitest';
import { DigestMd5Server } from './digest-md5-server.ts';
import { Passwords } from './passwords.ts';

// An exchange with Apache ZooKeeper 3.8.0, as recorded.
const NONCE = 'Ge9fwlRA5pbvK1kclO1Ny44NbMSMV0e6JG32Ixez';
const ANSWER = [
  'charset=utf-8',
  'username="bob"',
  'realm="zk-sasl-md5"',
  `nonce="${NONCE}"`,
  'nc=00000001',
  'cnonce="zfEP7rHDGKYCwNZ+DHhqq3jSWyC5a//qAK8t06da"',
  'digest-uri="zookeeper/zk-sasl-md5"',
  'maxbuf=65536',
  'response=ce2a610246bc868a080486bfce93866b',
  'qop=auth',
];
const PROOF = 'rspauth=deb22930c79e347c371c724638487ad1';

const USERS = new Passwords(
  new Map([
    ['bob', 'bobsecret'],
    ['müller', 'grün'],
    ['Łukasz', 'żółć'],
  ]),
);

function begin(nonce = NONCE): DigestMd5Server {
  const server = new DigestMd5Server(
    {
      service: 'zookeeper',
      serverName: 'zk-sasl-md5',
      users: USERS,
      authorize: (name) => (name === 'müller' ? 'not wanted here' : [{ scheme: 'sasl', id: name }]),
    },
    nonce,
  );
  server.step(new Uint8Array(0));
  return server;
}

function answer(changes: Readonly<Record<string, string | null>> = {}): string {
  const rest = { ...changes };
  const directives = ANSWER.flatMap((directive) => {
    const name = directive.slice(0, directive.indexOf('='));
    const change = rest[name];
    delete rest[name];
    return change === undefined ? [directive] : change === null ? [] : [`${name}=${change}`];
  });
  return [...directives, ...Object.entries(rest).map(([name, value]) => `${name}=${value}`)].join(',');
}

function check(text: string): SaslStep {
  return begin().step(Buffer.from(text));
}

const SUCCESS = { kind: 'success', token: Buffer.from(PROOF), identities: [{ scheme: 'sasl', id: 'bob' }] };

describe('the DIGEST-MD5 server', () => {
  test('begins with a challenge of 101 bytes, regardless of the first token', () => {
    for (const first of ['', 'x', 'n,,']) {
      const server = new DigestMd5Server({
        service: 's',
        serverName: 'zk-sasl-md5',
        users: USERS,
        authorize: () => [],
      });
      const step = server.step(Buffer.from(first));
      expect(step.kind).toBe('challenge');
      expect(step.kind === 'challenge' && Buffer.from(step.token).toString()).toMatch(
        /^realm="zk-sasl-md5",nonce="[A-Za-z0-9+/]{40}",charset=utf-8,algorithm=md5-sess$/,
      );
      expect(step.kind === 'challenge' && step.token).toHaveLength(101);
    }
  });

  test.each([
    ['Kerberos \\(GSSAPI\\)', '6082020006092a864886f7120102020100'],
    ['SPNEGO', '600806062b0601050502'],
    ['NTLM', Buffer.from('NTLMSSP\0\x01\0').toString('hex')],
    ['SCRAM', Buffer.from('n,,n=bob,r=fyko').toString('hex')],
    ['PLAIN', Buffer.from('\0bob\0bobsecret').toString('hex')],
  ])('says for the log that a client begins as with %s, and shows nothing of its token', (mechanism, token) => {
    const server = new DigestMd5Server({ service: 's', serverName: 'zk-sasl-md5', users: USERS, authorize: () => [] });
    const step = server.step(Buffer.from(token, 'hex'));
    const warning = new RegExp(
      `^it begins as with ${mechanism}, and this server takes a password .* alone: let it log in by one`,
    );
    expect(step).toMatchObject({ kind: 'challenge', warning: expect.stringMatching(warning) });
    expect(JSON.stringify(step)).not.toContain('bobsecret');
    expect(server.step(Buffer.from(token, 'hex')).kind).toBe('failure');
  });

  test('reports an unknown first token only when the response cannot be parsed either', () => {
    const begun = (): DigestMd5Server => {
      const options = { service: 'zookeeper', serverName: 'zk-sasl-md5', users: USERS, authorize: () => [] };
      const server = new DigestMd5Server(options, NONCE);
      expect(server.step(Buffer.from('anything'))).not.toHaveProperty('warning');
      return server;
    };
    for (const second of ['anything', 'n=x']) {
      const step = begun().step(Buffer.from(second));
      expect(step).toMatchObject({ reason: expect.stringMatching(/^its first token is of no known mechanism, and/) });
    }
    expect(begun().step(Buffer.from(answer())).kind).toBe('success');
  });

  test('takes the answer of a Java client and proves in turn that it knows the password', () => {
    expect(check(answer())).toEqual(SUCCESS);
  });

  test.each([
    [
      'müller',
      'JpkIZLN3wgTbKz/Ja/syw5PwJqD4nOM4PS0wUMPz',
      'ArSqPVMajXp3O8Vlxvmj7A==',
      '0eae86875691d725d9dbc655e9f8416e',
    ],
    [
      'Łukasz',
      'Ofwr8ceUZl63aejDAVjGEwL97Eqq8NxVOqjZcwtV',
      'CjxTy45geHv85t9T9jr8EQ==',
      'f06df79f278448903246df2892315236',
    ],
  ])('hashes the name and password of %s as Apache does', (username, nonce, cnonce, response) => {
    const text = answer({ username: `"${username}"`, nonce: `"${nonce}"`, cnonce: `"${cnonce}"`, response });
    const step = begin(nonce).step(Buffer.from(text));
    if (username === 'müller') expect(step).toEqual({ kind: 'failure', reason: 'not wanted here' });
    else expect(step).toMatchObject({ kind: 'success', identities: [{ scheme: 'sasl', id: username }] });
  });

  // Each was seen with Apache's 3.8.0, see interop/sasl.long.test.ts.
  test.each([
    ['no qop', answer({ qop: null })],
    ['no charset', answer({ charset: null })],
    ['no count of uses of the nonce, or another one', answer({ nc: null })],
    ['a name alone at the end', `${answer()},x`],
    ['unknown directives', answer({ color: 'blue', 'x"y': '"z"' })],
    [
      'blanks around commas and equals signs',
      answer().replaceAll(',', ' , ').replaceAll('=', ' = ').replace('a//q', 'a//q'),
    ],
    ['blanks in place of commas', answer().replaceAll(',', '\r\n\t ')],
    ['empty elements', `,, ${answer().replaceAll(',', ',,')},`],
    ['names of directives in upper case', answer().replace('nc=', 'NC=').replace('username=', 'UserName=')],
    ['an escaped character', answer({ username: '"b\\ob"' })],
  ])('%s is accepted', (_, text) => {
    expect(check(text)).toMatchObject({ kind: 'success' });
  });

  test.each([
    ['another realm', answer({ realm: '"x"' }), /realm/],
    ['no realm', answer({ realm: null }), /realm/],
    ['another service', answer({ 'digest-uri': '"ldap/zk-sasl-md5"' }), /digest-uri/],
    ['a directive twice', `${answer()},username="eve"`, /no list of directives/],
    ['an integrity layer', answer({ qop: 'auth-int' }), /qop/],
    ['the nonce of another exchange', answer({ nonce: '"x"' }), /nonce/],
    ['another charset', answer({ charset: 'UTF-8' }), /charset/],
    ['no user', answer({ username: null }), /names no user/],
    ['no cnonce', answer({ cnonce: null }), /cnonce/],
    ['no response', answer({ response: null }), /response/],
    [
      'a response in upper case',
      answer({ response: 'CE2A610246BC868A080486BFCE93866B' }),
      /password of "bob" is wrong/,
    ],
    ['an unknown user', answer({ username: '"eve"' }), /there is no user "eve"/],
    ['a name that an object has by itself', answer({ username: '"__proto__"' }), /there is no user/],
    ['nothing', '', /names no user|realm/],
    ['no directives', 'garbage and more', /no list of directives/],
    ['a quote that does not end', `${answer()},x="`, /no list of directives/],
    ['text behind a quote', answer({ x: '"a"b' }), /no list of directives/],
    ['a name without a value', `${answer()},x=`, /no list of directives/],
    ['a value without a name', `${answer()},=x`, /no list of directives/],
    ['more than 4096 bytes', answer({ x: 'y'.repeat(4096) }), /takes \d+ bytes/],
  ])('%s fails', (_, text, reason) => {
    expect(check(text)).toEqual({ kind: 'failure', reason: expect.stringMatching(reason) });
  });

  test('never says a password or a proof in its reasons', () => {
    const step = check(answer({ username: '"eve\\"\u0000"' }));
    expect(JSON.stringify(step)).not.toMatch(/bobsecret|ce2a61/);
  });
});

test('passwords are not shown by what prints their object', () => {
  expect(JSON.stringify(USERS)).toBe('{}');
  expect(String(USERS)).not.toContain('bobsecret');
});

import { ENCRYPTION_TYPES, type EncryptionType, GssapiInitiator, Keytab, MicroClock } from '@meerkat/client/kerberos';
import type { SaslStep } from '@meerkat/core';
import { writeDer } from '@meerkat/protocol/der';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { GssapiServer } from './gssapi-server.ts';
import { ReplayCache } from './replay-cache.ts';

const SERVICE = 'zookeeper/localhost@R';
const NOW = Date.UTC(2026, 10, 23, 9, 0, 0);
const MINUTE = 60_000;
const type: EncryptionType = ENCRYPTION_TYPES.get(18)!;
const SERVICE_KEY = Buffer.alloc(32, 1);
const SESSION_KEY = Buffer.alloc(32, 2);
const SUBKEY = Buffer.alloc(32, 3);
const KEYTAB = new Keytab([{ principal: SERVICE, version: 3, encryptionType: 18, bytes: SERVICE_KEY }]);

/* A client, in the words of RFC 4120 and 4121. */
const seq = (...fields: readonly Uint8Array[]): Uint8Array => writeDer(0x30, ...fields);
const ctx = (number: number, value: Uint8Array): Uint8Array => writeDer(0xa0 + number, value);
const int = (value: number): Uint8Array =>
  writeDer(0x02, Buffer.from([0, value >> 24, value >> 16, value >> 8, value]));
const text = (value: string): Uint8Array => writeDer(0x1b, Buffer.from(value));
const time = (ms: number): Uint8Array =>
  writeDer(0x18, Buffer.from(new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '')));
const octets = (value: Uint8Array): Uint8Array => writeDer(0x04, value);
const name = (...parts: readonly string[]): Uint8Array => seq(ctx(0, int(1)), ctx(1, seq(...parts.map(text))));
const key = (bytes: Uint8Array, number = 18): Uint8Array => seq(ctx(0, int(number)), ctx(1, octets(bytes)));
const encrypted = (cipher: Uint8Array, version: number | null = null, number = 18): Uint8Array =>
  seq(ctx(0, int(number)), ...(version === null ? [] : [ctx(1, int(version))]), ctx(2, octets(cipher)));

interface Changes {
  readonly client?: string;
  readonly user?: string;
  readonly service?: readonly string[];
  readonly starts?: number;
  readonly ends?: number;
  readonly made?: number;
  readonly isMutual?: boolean;
  readonly isInvalid?: boolean;
  readonly hasChecksum?: boolean;
  readonly version?: number;
  readonly sessionType?: number;
  readonly authenticatorKey?: Uint8Array;
}

function ticketOf(changes: Changes = {}): Uint8Array {
  const { client = 'ann', service = ['zookeeper', 'localhost'], version = 3 } = changes;
  const flags = Buffer.alloc(5);
  if (changes.isInvalid === true) flags[1] = 1;
  const ticketPart = writeDer(
    0x63,
    seq(
      ctx(0, writeDer(0x03, flags)),
      ctx(1, key(SESSION_KEY, changes.sessionType)),
      ctx(2, text('R')),
      ctx(3, name(client)),
      ctx(4, seq(ctx(0, int(0)), ctx(1, octets(Buffer.alloc(0))))),
      ctx(5, time(changes.starts ?? NOW - MINUTE)),
      ctx(7, time(changes.ends ?? NOW + 60 * MINUTE)),
    ),
  );
  return writeDer(
    0x61,
    seq(
      ctx(0, int(5)),
      ctx(1, text('R')),
      ctx(2, name(...service)),
      ctx(3, encrypted(type.encrypt(SERVICE_KEY, 2, ticketPart), version)),
    ),
  );
}

function request(changes: Changes = {}): Buffer {
  const { client = 'ann', user = client, made = NOW } = changes;
  const ticket = ticketOf(changes);
  const checksum = Buffer.alloc(24);
  checksum[0] = 16;
  checksum[20] = changes.isMutual === true ? 2 : 0;
  const authenticator = writeDer(
    0x62,
    seq(
      ctx(0, int(5)),
      ctx(1, text('R')),
      ctx(2, name(user)),
      ...(changes.hasChecksum === false ? [] : [ctx(3, seq(ctx(0, int(0x8003)), ctx(1, octets(checksum))))]),
      ctx(4, int(5000)),
      ctx(5, time(made)),
      ctx(6, key(SUBKEY)),
      ctx(7, int(0x11223344)),
    ),
  );
  const sealed = type.encrypt(changes.authenticatorKey ?? SESSION_KEY, 11, authenticator);
  const apRequest = writeDer(
    0x6e,
    seq(
      ctx(0, int(5)),
      ctx(1, int(14)),
      ctx(2, writeDer(0x03, Buffer.alloc(5))),
      ctx(3, ticket),
      ctx(4, encrypted(sealed)),
    ),
  );
  return Buffer.from(writeDer(0x60, Buffer.from('06092a864886f7120102020100', 'hex'), apRequest));
}

interface Choice {
  readonly layer?: number;
  readonly authzid?: string;
  readonly rotation?: number;
  readonly flags?: number;
  readonly usage?: number;
}

function wrap({ layer = 1, authzid = 'ann@R', rotation = 0, flags = 0, usage = 24 }: Choice = {}): Buffer {
  const plain = Buffer.concat([Buffer.from([layer, 1, 0, 0]), Buffer.from(authzid)]);
  const header = Buffer.from([5, 4, flags, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44]);
  const body = Buffer.concat([plain, type.checksum(SUBKEY, usage, Buffer.concat([plain, header]))]);
  header.writeUInt16BE(12, 4);
  header.writeUInt16BE(rotation, 6);
  const turn = body.length - (rotation % body.length);
  return Buffer.concat([header, body.subarray(turn), body.subarray(0, turn)]);
}

function begin(replays = new ReplayCache(), nowMs = NOW, keytabFault: string | null = null): GssapiServer {
  return new GssapiServer({
    principal: SERVICE,
    keytab: () => KEYTAB,
    keytabFault: () => keytabFault,
    replays,
    nowMs: () => nowMs,
    authorize: (principal) => (principal === 'eve@R' ? 'eve is not wanted' : [{ scheme: 'sasl', id: principal }]),
  });
}

function tokenOf(step: SaslStep): Buffer {
  if (step.kind !== 'challenge') throw new Error(JSON.stringify(step));
  return Buffer.from(step.token);
}

function reasonOf(step: SaslStep): string {
  return step.kind === 'failure' ? step.reason : `no failure: ${step.kind}`;
}

describe('the GSSAPI acceptor', () => {
  test('offers no layer at once to a client that does not ask for mutual authentication', () => {
    const server = begin();
    const offer = tokenOf(server.step(request()));
    // As captured from Apache 3.8.0, but for sequence number and checksum.
    expect(offer.subarray(0, 12).toString('hex')).toBe('050401ff000c000000000000');
    expect(offer.readUInt32BE(12)).toBe(0x11223344);
    expect(offer.subarray(16, 20).toString('hex')).toBe('01010000');
    expect(offer).toHaveLength(32);
    expect(server.step(wrap())).toEqual({
      kind: 'success',
      token: null,
      identities: [{ scheme: 'sasl', id: 'ann@R' }],
    });
  });

  test('proves itself first to one that does', () => {
    const server = begin();
    const reply = tokenOf(server.step(request({ isMutual: true })));
    expect(reply[0]).toBe(0x60);
    expect(tokenOf(server.step(Buffer.alloc(0)))).toHaveLength(32);
    expect(server.step(wrap({ authzid: '' })).kind).toBe('success');
  });

  test('reads a wrapped token that is rotated by any number of bytes', () => {
    for (const rotation of [0, 1, 12, 20, 21, 22, 1000]) {
      const server = begin();
      server.step(request());
      expect(server.step(wrap({ rotation })).kind, String(rotation)).toBe('success');
    }
  });

  test.each([
    [
      'a ticket for another service',
      { service: ['kafka', 'localhost'] },
      /is for kafka\/localhost@R, and this service is/,
    ],
    ['a ticket that has ended', { ends: NOW - 6 * MINUTE }, /the ticket of ann@R ended at 2026-11-23T08:54/],
    ['a ticket that has not begun', { starts: NOW + 6 * MINUTE }, /begins at/],
    ['a ticket that is marked as invalid', { isInvalid: true }, /marked as invalid/],
    ['a clock that is behind', { made: NOW - 6 * MINUTE }, /is -360 s from this one/],
    ['a clock that is ahead', { made: NOW + 6 * MINUTE }, /is 360 s from this one/],
    ["another one's ticket", { user: 'eve' }, /the ticket of ann@R is used by eve@R/],
    ['no checksum of GSS-API', { hasChecksum: false }, /no checksum of GSS-API/],
    ['an authenticator of another key', { authenticatorKey: SUBKEY }, /not made with the key of its ticket/],
    ['a key of RC4', { sessionType: 23 }, /encryption type 23; AES is demanded/],
    [
      'a key of a version that is not there',
      { version: 9 },
      /needs type 18 version 9 of .*; the keytab has type 18 version 3/,
    ],
    ['a name that reads as another one', { client: 'ann@R/x' }, /cannot be read/],
  ] as const)('refuses %s', (_, changes, reason) => {
    expect(reasonOf(begin().step(request(changes)))).toMatch(reason);
  });

  test('says so when the key of a ticket may be in a keytab that can no longer be read', () => {
    const fault = 'the keytab /zk.keytab cannot be read: permission denied';
    const step = begin(new ReplayCache(), NOW, fault).step(request({ version: 9 }));
    expect(reasonOf(step)).toMatch(
      /; the keytab had type 18 version 3, and now the keytab \/zk.keytab cannot be read: perm/,
    );
  });

  test('takes clocks that differ by less than five minutes', () => {
    for (const made of [NOW - 299_000, NOW + 299_000]) expect(begin().step(request({ made })).kind).toBe('challenge');
  });

  test('refuses a token that was used before, by whomever', () => {
    const replays = new ReplayCache();
    const token = request();
    expect(begin(replays).step(token).kind).toBe('challenge');
    expect(reasonOf(begin(replays).step(token))).toMatch(/used before: a replay/);
    expect(begin(replays).step(request()).kind).toBe('challenge');
    // Long after, the clock tells.
    expect(reasonOf(begin(replays, NOW + 11 * MINUTE).step(token))).toMatch(/the clock of ann@R/);
  });

  test.each([
    ['a layer', { layer: 2 }, /asks for a security layer/],
    ['to act as another', { authzid: 'root@R' }, /ann@R asks to act as "root@R"/],
    ['to be believed without a checksum', { usage: 22 }, /its last token has a wrong checksum/],
    ['to be taken for a server', { flags: 1 }, /has the flags 1/],
  ] as const)('refuses a client that asks %s', (_, choice, reason) => {
    const server = begin();
    server.step(request());
    expect(reasonOf(server.step(wrap(choice)))).toMatch(reason);
  });

  test('refuses an unknown principal', () => {
    const server = begin();
    server.step(request({ client: 'eve' }));
    expect(reasonOf(server.step(wrap({ authzid: '' })))).toBe('eve is not wanted');
  });

  test('refuses garbage in every place, and never throws', () => {
    const first = request();
    const last = wrap();
    fc.assert(
      fc.property(
        fc.boolean(),
        fc.array(fc.tuple(fc.nat(2000), fc.nat(255)), { maxLength: 4 }),
        fc.nat(700),
        (isFirst, changes, length) => {
          const token = Buffer.from(isFirst ? first : last);
          for (const [at, byte] of changes) token[at % token.length] = byte;
          const cut = token.subarray(0, length % 3 === 0 ? length % token.length : token.length);
          const server = begin();
          if (!isFirst) server.step(first);
          const step = server.step(cut);
          const original = isFirst ? first : last;
          // How far the rest is rotated (RRC, RFC 4121 §4.2.5) is not signed: a whole number of turns changes nothing.
          if (!isFirst && cut.length === last.length) last.copy(cut, 6, 6, 8);
          if (!cut.equals(original)) expect(['failure', 'challenge']).toContain(step.kind);
        },
      ),
      { numRuns: 2000 },
    );
  });

  test.each([
    ['a password', '', /^it begins as with a password \(DIGEST-MD5\), and/],
    ['SPNEGO', '600806062b0601050502', /^it begins as with SPNEGO, and/],
    ['PLAIN', Buffer.from('\0bob\0bobsecret').toString('hex'), /^it begins as with PLAIN, and/],
    ['an unknown mechanism', '6003060100', /^its first token is of no known mechanism, and/],
  ])('refuses who begins as with %s, and says so', (_, token, begins) => {
    const reason = reasonOf(begin().step(Buffer.from(token, 'hex')));
    expect(reason).toMatch(begins);
    expect(reason).toMatch(/this server takes Kerberos \(GSSAPI\) alone: let it log in by that, or give/);
    expect(reason).not.toContain('bobsecret');
  });
});

describe('the initiator', () => {
  const start = (service = SERVICE): GssapiInitiator => {
    const sessionKey = { encryptionType: 18, bytes: SESSION_KEY };
    const times = { startsMs: NOW - MINUTE, endsMs: NOW + 60 * MINUTE };
    const ticket = { client: 'ann@R', service, ticket: ticketOf(), sessionKey, ...times };
    return new GssapiInitiator(ticket, new MicroClock(() => NOW));
  };

  test('shows its ticket, checks the server, and takes no layer', () => {
    const [client, server] = [start(), begin()];
    const answer = client.step(tokenOf(server.step(client.start())));
    expect(answer).toHaveLength(0);
    expect(client.isComplete).toBe(false);
    const last = client.step(tokenOf(server.step(answer)));
    expect(client.isComplete).toBe(true);
    expect(server.step(last)).toMatchObject({ kind: 'success', identities: [{ scheme: 'sasl', id: 'ann@R' }] });
    expect(() => client.step(last)).toThrow('after its end');
  });

  test('never sends the same authenticator twice', () => {
    const clock = new MicroClock(() => NOW);
    expect([clock.next(), clock.next(), clock.next()]).toEqual([0, 1, 2].map((micros) => NOW * 1000 + micros));
  });

  test('refuses a server that does not prove that it knows the key', () => {
    const reply = (key: Uint8Array, ctime: number): Uint8Array => {
      const part = writeDer(0x7b, seq(ctx(0, time(ctime)), ctx(1, int(0)), ctx(3, int(1))));
      const message = seq(ctx(0, int(5)), ctx(1, int(15)), ctx(2, encrypted(type.encrypt(key, 12, part))));
      return writeDer(0x60, Buffer.from('06092a864886f7120102020200', 'hex'), writeDer(0x6f, message));
    };
    const answerTo = (token: Uint8Array): (() => Uint8Array) => {
      const client = start();
      client.start();
      return () => client.step(token);
    };
    expect(answerTo(reply(SESSION_KEY, NOW))()).toHaveLength(0);
    expect(answerTo(reply(SERVICE_KEY, NOW))).toThrow(/does not prove that it is .*: it does not know the key/);
    expect(answerTo(reply(SESSION_KEY, NOW + 1000))).toThrow(/it answers another request/);
    expect(answerTo(wrap())).toThrow(/does not prove that it is zookeeper\/localhost@R/);
    expect(answerTo(request())).toThrow(/its first token is no AP-REP/);
    expect(answerTo(Buffer.alloc(0))).toThrow(/cannot be read/);
    const digest = 'realm="zk-sasl-md5",nonce="x",charset=utf-8,algorithm=md5-sess';
    expect(answerTo(Buffer.from(digest))).toThrow(/the server takes passwords \(DIGEST-MD5\), not Kerberos/);
  });

  test('refuses layers that were changed on the way, or that it does not have', () => {
    const offer = (): readonly [GssapiInitiator, Buffer] => {
      const [client, server] = [start(), begin()];
      const token = tokenOf(server.step(client.step(tokenOf(server.step(client.start())))));
      return [client, token];
    };
    const [first, changed] = offer();
    changed[16] = 7;
    expect(() => first.step(changed)).toThrow(/with its layers has a wrong checksum/);
    const [second] = offer();
    expect(() => second.step(wrap())).toThrow(/has the flags 0, expected 1/);
  });
});

test('a replay cache forgets what can no longer be used, and is bounded', () => {
  const cache = new ReplayCache(2);
  expect(cache.add('a', 0, 10)).toBe(true);
  expect(cache.add('b', 0, 20)).toBe(true);
  expect(cache.add('c', 5, 30)).toBe(false);
  expect(cache.add('c', 10, 30)).toBe(true);
  expect(cache.add('b', 11, 30)).toBe(false);
});

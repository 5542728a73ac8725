import { createSocket } from 'node:dgram';
import { findFreePorts } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { KDC_SURROUNDINGS, KeyDistribution } from './key-distribution.ts';
import { Keytab } from './keytab.ts';
import type { Krb5Config } from './krb5-config.ts';

const KEYTAB = new Keytab([{ principal: 'ann@R', version: 1, encryptionType: 18, bytes: Buffer.alloc(32) }]);
const CONFIG: Krb5Config = {
  path: '/etc/krb5.conf',
  defaultRealm: 'R',
  defaultCacheName: null,
  looksUpKdcs: true,
  kdcs: new Map(),
  realmOfDomain: new Map(),
};

test('a center that only supports UDP is asked by UDP', async () => {
  const [port = 0] = await findFreePorts(1);
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve));
  socket.on('message', (_, from) => socket.send('no message of Kerberos', from.port, from.address));
  const config = { ...CONFIG, kdcs: new Map([['R', [`127.0.0.1:${port}`]]]) };
  const center = new KeyDistribution('R', config, KDC_SURROUNDINGS);
  await expect(center.login('ann@R', KEYTAB, '/keytab')).rejects.toThrow(
    /no key distribution center of the realm R answers \(127.0.0.1:\d+: it answers with what is no message of Kerberos/,
  );
  socket.close();
});

test('DNS is used when krb5.conf names no center', async () => {
  const asked: string[] = [];
  const surroundings = {
    ...KDC_SURROUNDINGS,
    lookUp: async (name: string) => {
      asked.push(name);
      return [
        { name: 'kdc2', port: 88, priority: 10 },
        { name: 'kdc1', port: 88, priority: 0 },
      ];
    },
    askByTcp: async () => Promise.reject(new Error('nobody there')),
  };
  const login = new KeyDistribution('R', CONFIG, surroundings).login('ann@R', KEYTAB, '/keytab');
  await expect(login).rejects.toThrow(
    'no key distribution center of the realm R answers (kdc1:88: nobody there; kdc2:88: nobody there)',
  );
  expect(asked).toEqual(['_kerberos._tcp.R']);
  const silent = new KeyDistribution('R', { ...CONFIG, looksUpKdcs: false }, surroundings);
  await expect(silent.login('ann@R', KEYTAB, '/keytab')).rejects.toThrow(
    '/etc/krb5.conf names no kdc of the realm R: add it below',
  );
  // RFC 2782: a record without a name says that there is no such service.
  const none = { ...surroundings, lookUp: async () => [{ name: '', port: 0, priority: 0 }] };
  await expect(new KeyDistribution('R', CONFIG, none).login('ann@R', KEYTAB, '/keytab')).rejects.toThrow(
    /and the name service has none \(no record\)/,
  );
});

/* KRB-ERROR, as described by RFC 4120 §5.9.1. */
const der = (tag: number, ...parts: readonly Buffer[]): Buffer => {
  const contents = Buffer.concat(parts);
  const length = contents.length < 128 ? [contents.length] : [0x82, contents.length >> 8, contents.length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...length), contents]);
};
const error = (code: number, text: string, ...data: readonly Buffer[]): Buffer =>
  der(
    0x7e,
    der(
      0x30,
      der(0xa0, der(2, Buffer.of(5))),
      der(0xa1, der(2, Buffer.of(30))),
      der(0xa4, der(0x18, Buffer.from('20260101000000Z'))),
      der(0xa5, der(2, Buffer.of(0))),
      der(0xa6, der(2, Buffer.of(code))),
      der(0xa9, der(0x1b, Buffer.from('R'))),
      der(0xab, der(0x1b, Buffer.from(text))),
      ...data.map((each) => der(0xac, der(4, each))),
    ),
  );
/* PA-DATA, RFC 4120 §5.2.7. */
const method = (type: number, value: Buffer): Buffer =>
  der(0x30, der(0xa1, der(2, Buffer.of(...(type < 128 ? [type] : [0, type])))), der(0xa2, der(4, value)));

test('a cookie sent with the pre-authentication request is returned with the proof (RFC 6113 §5.2)', async () => {
  const aes256 = method(19, der(0x30, der(0x30, der(0xa0, der(2, Buffer.of(18))))));
  const cookie = method(133, Buffer.from('MIT, or whoever'));
  const other = method(136, Buffer.alloc(0));
  for (const offered of [[aes256, cookie, other], [aes256]]) {
    const asked: Buffer[] = [];
    const answers = [error(25, 'NEEDED_PREAUTH', der(0x30, ...offered)), error(24, 'PREAUTH_FAILED')];
    const askThem = async (_kdc: unknown, message: Uint8Array): Promise<Uint8Array> => {
      asked.push(Buffer.from(message));
      return answers.shift() ?? Buffer.alloc(0);
    };
    const config = { ...CONFIG, kdcs: new Map([['R', ['kdc']]]) };
    const center = new KeyDistribution('R', config, { ...KDC_SURROUNDINGS, askByTcp: askThem });
    await expect(center.login('ann@R', KEYTAB, '/keytab')).rejects.toThrow(/error 24/);
    const hasCookie = asked.map((message) => message.includes(cookie));
    expect(hasCookie).toEqual([false, offered.includes(cookie)]);
    expect(asked[1]?.includes(der(0xa1, der(2, Buffer.of(2)))), 'the proof of the time, type 2').toBe(true);
    expect(asked[1]?.includes(other)).toBe(false);
  }
});

test('the next center is asked when one answers with garbage, or is unavailable', async () => {
  const answers = [Buffer.from('garbage'), error(29, 'busy'), error(6, 'a stranger')];
  const config = { ...CONFIG, kdcs: new Map([['R', ['one', 'two', 'three']]]) };
  const asked: string[] = [];
  const askThem = async ({ host }: { host: string }): Promise<Uint8Array> => {
    asked.push(host);
    return answers.shift() ?? Buffer.alloc(0);
  };
  const center = new KeyDistribution('R', config, { ...KDC_SURROUNDINGS, askByTcp: askThem });
  await expect(center.login('ann@R', KEYTAB, '/keytab')).rejects.toThrow(/does not know ann@R \(error 6, a stranger\)/);
  // The one that answered is asked first from now on.
  answers.push(error(29, ''), error(29, ''), error(29, ''));
  await expect(center.login('ann@R', KEYTAB, '/keytab')).rejects.toThrow(/three:88: it is out of service, error 29;/);
  expect(asked).toEqual(['one', 'two', 'three', 'three', 'one', 'two']);
});

test("the text of a center's error is shortened to one line", async () => {
  const config = { ...CONFIG, kdcs: new Map([['R', ['one']]]) };
  const askThem = async (): Promise<Uint8Array> => error(60, `a\nb\u001b[31m${'x'.repeat(5000)}`);
  const center = new KeyDistribution('R', config, { ...KDC_SURROUNDINGS, askByTcp: askThem });
  const message = await center.login('ann@R', KEYTAB, '/keytab').catch((reason: Error) => reason.message);
  expect(message).toMatch(
    /^the key distribution center of R gives ann@R no ticket for krbtgt\/R@R: error 60, a b \[31mx+$/,
  );
  expect(String(message).length).toBeLessThan(300);
});

test('a key with the wrong length for its type is ignored', async () => {
  const damaged = new Keytab([{ principal: 'ann@R', version: 1, encryptionType: 18, bytes: Buffer.alloc(5) }]);
  const config = { ...CONFIG, kdcs: new Map([['R', ['one']]]) };
  const center = new KeyDistribution('R', config, KDC_SURROUNDINGS);
  await expect(center.login('ann@R', damaged, '/keytab')).rejects.toThrow(
    /the keytab \/keytab has no key of AES for ann@R/,
  );
});

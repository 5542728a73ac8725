import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { findFreePorts } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { askByTcp, askByUdp, parseKdc } from './kdc-transport.ts';
import { KDC_SURROUNDINGS, KeyDistribution } from './key-distribution.ts';
import { Keytab } from './keytab.ts';
import type { Krb5Config } from './krb5-config.ts';

const KEYTAB = new Keytab([{ principal: 'ann@R', version: 1, encryptionType: 18, bytes: Buffer.alloc(32) }]);
const CONFIG: Krb5Config = {
  defaultRealm: 'R',
  defaultCacheName: null,
  looksUpKdcs: true,
  kdcs: new Map(),
  realmOfDomain: new Map(),
};

test.each([
  ['kdc', 'kdc', 88],
  ['kdc:750', 'kdc', 750],
  ['127.0.0.1:88', '127.0.0.1', 88],
  ['[::1]:750', '::1', 750],
  ['::1', '::1', 88],
])('the center %j is at %s, port %i', (text, host, port) => {
  expect(parseKdc(text)).toEqual({ host, port });
});

test('a center that only speaks UDP is asked by UDP', async () => {
  const [port = 0] = await findFreePorts(1);
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve));
  socket.on('message', (_, from) => socket.send('no message of Kerberos', from.port, from.address));
  const config = { ...CONFIG, kdcs: new Map([['R', [`127.0.0.1:${port}`]]]) };
  const center = new KeyDistribution('R', config, KDC_SURROUNDINGS);
  await expect(center.login('ann@R', KEYTAB, '/keytab')).rejects.toThrow(
    /the key distribution center of R answers with what is no message of Kerberos/,
  );
  socket.close();
});

test('an answer comes in pieces, is too long, or does not come', async () => {
  const answers = [['0000', '0003', '61', '6263'], ['7fffffff'], []];
  const server = createServer((socket) => {
    socket.resume();
    const pieces = answers.shift() ?? [];
    for (const piece of pieces) socket.write(Buffer.from(piece, 'hex'));
    if (pieces.length === 0) socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const kdc = { host: '127.0.0.1', port: typeof address === 'object' ? (address?.port ?? 0) : 0 };
  expect(Buffer.from(await askByTcp(kdc, Buffer.from('?'))).toString()).toBe('abc');
  await expect(askByTcp(kdc, Buffer.from('?'))).rejects.toThrow(/announces an answer of 2147483647 bytes/);
  await expect(askByTcp(kdc, Buffer.from('?'))).rejects.toThrow(/ECONNRESET|closed the connection|EPIPE/);
  await new Promise((resolve) => server.close(resolve));
  await expect(askByUdp({ ...kdc, port: 1 }, Buffer.from('?'))).rejects.toThrow(/ECONNREFUSED/);
});

test('the name service is asked where krb5.conf names no center', async () => {
  const asked: string[] = [];
  const surroundings = {
    ...KDC_SURROUNDINGS,
    lookUp: async (name: string) => {
      asked.push(name);
      return [{ name: 'kdc1', port: 88 }];
    },
    askByTcp: async () => Promise.reject(new Error('nobody there')),
  };
  const login = new KeyDistribution('R', CONFIG, surroundings).login('ann@R', KEYTAB, '/keytab');
  await expect(login).rejects.toThrow('no key distribution center of the realm R answers (kdc1:88: nobody there)');
  expect(asked).toEqual(['_kerberos._tcp.R']);
  const silent = new KeyDistribution('R', { ...CONFIG, looksUpKdcs: false }, surroundings);
  await expect(silent.login('ann@R', KEYTAB, '/keytab')).rejects.toThrow(/names no kdc of the realm R: add it below/);
});

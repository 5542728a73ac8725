import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect as dial } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { TestServer } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { CertificateAuthority, hasOpenssl } from '../packages/client/src/testing/certificates.ts';
import { connectSecurely } from './tls.ts';

// Certificates are made by openssl; in CI a missing one is a failure.
test.runIf(process.env['CI'] === 'true' || hasOpenssl())('tls.ts connects to a server with mutual TLS', async () => {
  using authority = new CertificateAuthority();
  const { cert, key } = authority.issue('server', { subjectAltName: 'DNS:localhost' });
  const client = authority.issue('client');
  const directory = join(client.path, '..');
  for (const [name, text] of [
    ['ca.pem', authority.cert],
    ['client.pem', client.cert],
    ['client.key', client.key],
  ] as const) {
    writeFileSync(join(directory, name), text);
  }

  // The embedded server does not support TLS, so a TLS proxy is put in front of it.
  await using server = await TestServer.start();
  const front = createServer({ cert, key, ca: authority.cert, requestCert: true, rejectUnauthorized: true });
  front.on('secureConnection', (socket) => {
    const inner = dial(server.port, '127.0.0.1');
    for (const end of [socket, inner]) end.on('error', () => undefined);
    socket.pipe(inner).pipe(socket);
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  try {
    await using connected = await connectSecurely(`localhost:${(front.address() as AddressInfo).port}`, directory);
    await connected.create('/secret', 'x');
    expect((await connected.get('/secret')).stat.dataLength).toBe(1);
  } finally {
    front.close();
  }
});

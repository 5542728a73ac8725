import { acl, type Client, connect } from '@meerkat/client';
import { afterEach, expect, test } from 'vitest';
import { TestCertificates } from './test-certificates.ts';
import { TestEnsemble } from './test-ensemble.ts';
import { TestServer } from './test-server.ts';

const clients: Client[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});

test('a server with certificates knows its clients by theirs', async () => {
  using certificates = new TestCertificates();
  await using server = await TestServer.start({ tls: certificates });
  const ann = await open(server.connectString, certificates.client('ann'));
  const bob = await open(server.connectString, certificates.client('bob'));
  expect((await ann.whoAmI()).map(({ scheme, user }) => `${scheme}:${user}`)).toContain('x509:CN=ann');
  await ann.create('/of-ann', 'x', { acl: [acl.x509('CN=ann')] });
  await expect(bob.get('/of-ann')).rejects.toMatchObject({ code: 'NOAUTH' });
  await server.restart();
  expect((await ann.get('/of-ann')).stat.version).toBe(0);
});

test('a server may serve clients without a certificate', async () => {
  using certificates = new TestCertificates({ clientAuth: 'none' });
  await using server = await TestServer.start({ tls: certificates });
  const client = await open(server.connectString, { ca: certificates.ca });
  expect((await client.whoAmI()).map(({ scheme }) => scheme)).toEqual(['ip']);
});

test('an ensemble speaks TLS with its clients and between its servers, and survives its leader', async () => {
  using certificates = new TestCertificates();
  await using ensemble = await TestEnsemble.start({ tls: certificates });
  const client = await open(ensemble.connectString, certificates.client());
  await client.create('/a', new Uint8Array(500_000));
  await ensemble.leader.kill();
  await ensemble.whenServing();
  expect((await client.set('/a', 'b')).version).toBe(1);
});

async function open(
  servers: string,
  tls: { readonly ca: string; readonly cert?: string; readonly key?: string },
): Promise<Client> {
  const client = await connect(servers, { tls, sessionTimeoutMs: 30_000 });
  clients.push(client);
  return client;
}

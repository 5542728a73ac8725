import { acl, connect } from '@meerkat/client';
import { TestCertificates, TestServer } from '@meerkat/testing';
import { expect, test } from 'vitest';

test("a client cannot access another client's znodes", async () => {
  using certificates = new TestCertificates();
  await using server = await TestServer.start({ tls: certificates });
  await using ann = await connect(server.connectString, { tls: certificates.client('ann') });
  await using bob = await connect(server.connectString, { tls: certificates.client('bob') });

  await ann.create('/of-ann', 'secret', { acl: [acl.x509('CN=ann')] });
  await expect(bob.get('/of-ann')).rejects.toMatchObject({ code: 'NOAUTH' });
});

import { acl, connect } from '@meerkat/client';
import { expect, test } from 'vitest';
import { describeWith } from './harness/peers.ts';
import { ServerProcess } from './harness/server-process.ts';

/** A provider that neither server has. */
const UNKNOWN = { 'authProvider.1': 'com.example.Badge' };

describeWith(['apache'], 'a class of authProvider that is not known', () => {
  test('stops neither server by itself', async () => {
    for (const kind of ['apache', 'meerkat'] as const) {
      await using server = await ServerProcess.start(kind, { config: UNKNOWN });
      await using client = await connect(`127.0.0.1:${server.port}`);
      await client.create('/a');
      if (kind === 'meerkat')
        await expect.poll(() => server.output).toMatch(/authProvider\.1 names the class com\.example\.Badge, which/);
    }
  });

  test('stops ours where ACLs of the directory name an unknown scheme', async () => {
    await using apache = await ServerProcess.start('apache', { saslUsers: { bob: 'builder' } });
    {
      await using client = await connect(`127.0.0.1:${apache.port}`);
      await client.create('/badge', '', { acl: [acl.sasl('bob')] });
    }
    await apache.stop();
    const { directory } = apache;
    {
      await using ours = await ServerProcess.start('meerkat', { directory });
      await ours.stop();
    }
    await expect(ServerProcess.start('meerkat', { directory, config: UNKNOWN })).rejects.toThrow(
      /ACLs of this directory name the scheme "sasl", and authProvider names com\.example\.Badge/,
    );
    await apache.restart();
  });
});

import { expect, test } from 'vitest';
import { TicketSource } from './ticket-source.ts';

const CONFIG = new URL('../../package.json', import.meta.url).pathname;
const KEYTAB = '/no/such/keytab';

/** The error when there is no ticket. */
const refusalOf = (options: { cache?: string; keytab?: string }, env: NodeJS.ProcessEnv): Promise<string> =>
  new TicketSource({ config: CONFIG, ...options }, env).get('zookeeper/host').then(
    () => 'a ticket',
    ({ message }: Error) => message,
  );

test('with a cache of an unsupported type, such as KCM, an existing keytab is used', async () => {
  for (const cache of ['KCM:', 'KCM:0:1', 'KEYRING:persistent:0', 'DIR:/run/tickets', 'API:']) {
    expect(await refusalOf({}, { KRB5CCNAME: cache })).toMatch(/only FILE is read: .*KRB5_CLIENT_KTNAME/);
    expect(await refusalOf({}, { KRB5CCNAME: cache, KRB5_CLIENT_KTNAME: `FILE:${KEYTAB}` })).toMatch(
      /^the keytab \/no\/such\/keytab cannot be read: ENOENT/,
    );
    expect(await refusalOf({ keytab: KEYTAB }, { KRB5CCNAME: cache })).toMatch(/^the keytab \/no\/such\/keytab/);
    // A cache that the program names explicitly is used.
    expect(await refusalOf({ cache }, { KRB5_CLIENT_KTNAME: KEYTAB })).toMatch(/only FILE is read/);
  }
});

test('looks again after it has found no ticket', async () => {
  const env: NodeJS.ProcessEnv = { KRB5CCNAME: 'KCM:' };
  const source = new TicketSource({ config: CONFIG }, env);
  await expect(source.get('zookeeper/host')).rejects.toThrow('only FILE is read');
  env['KRB5CCNAME'] = 'FILE:/no/such/cache';
  await expect(source.get('zookeeper/host')).rejects.toThrow('there is no ticket cache /no/such/cache');
});
